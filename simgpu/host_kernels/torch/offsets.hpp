// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace simgpu::torch {

/// Byte offsets of several tensors' elements by their common index: at::OffsetCalculator<Tensors>
/// with 32-bit indices, read from where it lies in a kernel's parameter. The layout is that of
/// torch 2.15's ATen/cuda/detail/OffsetCalculator.cuh and IntegerDivider.cuh: dimensions; per
/// dimension its size and two words of a precomputed division; per dimension a stride for each
/// tensor.
class Offsets {
  public:
    static constexpr std::size_t kMostDims = 25;
    static constexpr std::size_t kMostTensors = 8;
    static constexpr std::size_t bytes_of(std::size_t tensors) {
        return 4 + kMostDims * 12 + kMostDims * 4 * (tensors == 0 ? 1 : tensors);
    }

    /// False where what lies there is none.
    bool read(std::span<const std::byte> bytes, std::size_t tensors) {
        if (tensors > kMostTensors || bytes.size() < bytes_of(tensors)) return false;
        std::int32_t dims = 0;
        std::memcpy(&dims, bytes.data(), sizeof(dims));
        if (dims < 0 || dims > static_cast<std::int32_t>(kMostDims)) return false;
        dims_ = static_cast<std::size_t>(dims);
        tensors_ = tensors;
        for (std::size_t d = 0; d < dims_; ++d) {
            std::memcpy(&sizes_[d], bytes.data() + 4 + d * 12, 4);
            if (sizes_[d] == 0) return false;
            std::memcpy(strides_[d].data(), bytes.data() + 4 + kMostDims * 12 + d * 4 * tensors,
                        4 * tensors);
        }
        return true;
    }

    /// One dimension, every tensor dense: for launches without a calculator.
    void set_dense(std::span<const std::uint32_t> element_bytes) {
        dims_ = 0;
        tensors_ = element_bytes.size();
        for (std::size_t t = 0; t < tensors_; ++t) dense_[t] = element_bytes[t];
    }

    bool dense() const { return dims_ == 0; }

    /// Calls body(index, offsets) for indices [0, count), offsets in bytes per tensor.
    template <typename Body>
    void for_each(std::uint64_t count, Body body) const {
        std::array<std::uint64_t, kMostTensors> offsets{};
        std::array<std::uint32_t, kMostDims> at{};
        for (std::uint64_t i = 0; i < count; ++i) {
            body(i, offsets);
            if (dims_ == 0) {
                for (std::size_t t = 0; t < tensors_; ++t) offsets[t] += dense_[t];
                continue;
            }
            for (std::size_t d = 0; d < dims_; ++d) {
                for (std::size_t t = 0; t < tensors_; ++t) offsets[t] += strides_[d][t];
                if (++at[d] < sizes_[d]) break;
                for (std::size_t t = 0; t < tensors_; ++t)
                    offsets[t] -= std::uint64_t{strides_[d][t]} * sizes_[d];
                at[d] = 0;
            }
        }
    }

    /// Bytes from a tensor's first element to behind the last of `count`.
    std::uint64_t extent(std::size_t tensor, std::uint64_t count, std::uint32_t element) const {
        if (count == 0) return 0;
        if (dims_ == 0) return (count - 1) * dense_[tensor] + element;
        std::uint64_t last = 0;
        for (std::size_t d = 0; d < dims_; ++d)
            last += std::uint64_t{strides_[d][tensor]} * (sizes_[d] - 1);
        return last + element;
    }

    std::size_t dims() const { return dims_; }
    std::uint32_t size(std::size_t dim) const { return sizes_[dim]; }
    std::uint32_t stride(std::size_t dim, std::size_t tensor) const {
        return strides_[dim][tensor];
    }
    std::uint64_t count() const {
        std::uint64_t all = 1;
        for (std::size_t d = 0; d < dims_; ++d) all *= sizes_[d];
        return all;
    }

  private:
    std::size_t dims_ = 0;
    std::size_t tensors_ = 0;
    std::array<std::uint32_t, kMostDims> sizes_{};
    std::array<std::array<std::uint32_t, kMostTensors>, kMostDims> strides_{};
    std::array<std::uint32_t, kMostTensors> dense_{};
};

}  // namespace simgpu::torch
