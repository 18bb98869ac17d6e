// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/driver/context.hpp"

namespace simgpu::driver {

/// Memory of the device that no address names; given back with the object.
class HiddenMemory {
  public:
    static CUresult create(Context& context, std::uint64_t bytes,
                           std::shared_ptr<HiddenMemory>& out);
    ~HiddenMemory();
    HiddenMemory(const HiddenMemory&) = delete;
    HiddenMemory& operator=(const HiddenMemory&) = delete;

    Context& context() const { return context_; }
    std::uint64_t va() const { return va_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    HiddenMemory(Context& context, std::uint64_t va, std::uint64_t bytes)
        : context_(context), va_(va), bytes_(bytes) {}

    Context& context_;
    const std::uint64_t va_, bytes_;
};

/// What a CUarray points at: elements row by row, slice by slice (or layer by layer), without gaps.
/// The vendor's layout is another, but no program can see it.
struct Array {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    std::shared_ptr<HiddenMemory> memory;
    std::uint64_t va = 0;  ///< Inside of the memory: a level of a mipmapped array has a part of it.
    bool is_level = false;  ///< Of a mipmapped array, which alone can be destroyed.

    std::uint64_t element_bytes() const;
    std::uint64_t row_bytes() const { return descriptor.Width * element_bytes(); }
    std::uint64_t rows() const { return descriptor.Height != 0 ? descriptor.Height : 1; }
    std::uint64_t slices() const { return descriptor.Depth != 0 ? descriptor.Depth : 1; }
    std::uint64_t bytes() const { return row_bytes() * rows() * slices(); }
    CUarray handle() { return reinterpret_cast<CUarray>(this); }
};

/// What a CUmipmappedArray points at.
struct MipmappedArray {
    std::vector<std::shared_ptr<Array>> levels;

    CUmipmappedArray handle() { return reinterpret_cast<CUmipmappedArray>(this); }
};

/// 0 for a format that arrays cannot have.
unsigned format_bytes(CUarray_format format);

/// CUDA_ERROR_INVALID_HANDLE for a handle that is none.
CUresult find_array(CUarray handle, std::shared_ptr<Array>& out);
CUresult find_mipmapped_array(CUmipmappedArray handle, std::shared_ptr<MipmappedArray>& out);

/// Frees what a context whose work is done still has.
void release_arrays_of(Context& context);

}  // namespace simgpu::driver
