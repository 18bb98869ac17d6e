// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "interposer/cuda_abi.hpp"

#include "runtime/engine.hpp"

#include <cstddef>
#include <cstdint>

// Turns the driver's many ways to describe a copy or a fill into the engine's requests.

namespace libswap {

inline std::uint64_t address_of(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

inline CopyRequest linear_copy(CopySide dst_side, std::uint64_t dst, CopySide src_side,
                               std::uint64_t src, std::size_t bytes, bool async,
                               CUstream stream) noexcept {
    CopyRequest request;
    request.dst_side = dst_side;
    request.src_side = src_side;
    request.dst = Rows::range(dst, bytes);
    request.src = Rows::range(src, bytes);
    request.async = async;
    request.stream = stream;
    return request;
}

CopyRequest copy_2d(const CUDA_MEMCPY2D& shape, bool async, CUstream stream) noexcept;
CopyRequest copy_3d(const CUDA_MEMCPY3D& shape, bool async, CUstream stream) noexcept;
CopyRequest copy_3d_batched(const CUDA_MEMCPY3D_BATCH_OP& op, CUstream stream) noexcept;
CopyRequest copy_3d_peer(const CUDA_MEMCPY3D_PEER& shape, bool async, CUstream stream) noexcept;

inline MemsetRequest fill(std::uint64_t dst, std::size_t element_bytes, std::size_t count,
                          bool async, CUstream stream) noexcept {
    return {Rows::range(dst, element_bytes * count), async, stream};
}
inline MemsetRequest fill_2d(std::uint64_t dst, std::size_t pitch, std::size_t element_bytes,
                             std::size_t width, std::size_t height, bool async,
                             CUstream stream) noexcept {
    return {{dst, width * element_bytes, height, pitch, 1, 0}, async, stream};
}

}  // namespace libswap
