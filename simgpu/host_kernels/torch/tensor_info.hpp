// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simgpu/host_kernels/named_kernel.hpp"

namespace simgpu::torch {

/// A tensor that a kernel is given by value: at::cuda::detail::TensorInfo of torch 2.15. Its
/// address, sizes and strides in elements with room for 25 dimensions, the number of dimensions.
class TensorInfo {
  public:
    static constexpr std::size_t kMostDims = 25;

    /// `index_bytes`: of a size or stride, 4 or 8. False where what lies there is none.
    bool read(const NamedLaunch& launch, std::size_t parameter, std::uint32_t index_bytes,
              std::size_t at = 0) {
        const std::size_t sizes = at + 8;
        const std::size_t strides = sizes + kMostDims * index_bytes;
        const std::size_t dims = strides + kMostDims * index_bytes;
        if (launch.parameter(parameter).size() < dims + 4) return false;
        const auto number = launch.get<std::int32_t>(parameter, dims);
        if (number < 0 || number > static_cast<std::int32_t>(kMostDims)) return false;
        const auto word = [&](std::size_t place) {
            return index_bytes == 8 ? launch.get<std::uint64_t>(parameter, place)
                                    : launch.get<std::uint32_t>(parameter, place);
        };
        va_ = launch.get<std::uint64_t>(parameter, at);
        dims_ = static_cast<std::size_t>(number);
        for (std::size_t d = 0; d < dims_; ++d) {
            sizes_[d] = word(sizes + d * index_bytes);
            strides_[d] = word(strides + d * index_bytes);
            if (sizes_[d] == 0) return false;
        }
        return true;
    }

    std::uint64_t va() const { return va_; }
    std::size_t dims() const { return dims_; }
    std::uint64_t size(std::size_t dim) const { return sizes_[dim]; }
    std::uint64_t stride(std::size_t dim) const { return strides_[dim]; }

    /// Where the element of this index lies, in elements, the last dimension fastest.
    std::uint64_t offset(std::uint64_t index) const {
        std::uint64_t all = 0;
        for (std::size_t d = dims_; d-- > 1;) {
            all += index % sizes_[d] * strides_[d];
            index /= sizes_[d];
        }
        return dims_ == 0 ? 0 : all + index * strides_[0];
    }

    /// The offsets of the first `count` elements.
    std::vector<std::uint64_t> offsets(std::uint64_t count) const {
        std::vector<std::uint64_t> all(count);
        for (std::uint64_t i = 0; i < count; ++i) all[i] = offset(i);
        return all;
    }

  private:
    std::uint64_t va_ = 0;
    std::size_t dims_ = 0;
    std::array<std::uint64_t, kMostDims> sizes_{};
    std::array<std::uint64_t, kMostDims> strides_{};
};

/// Bytes of the indices of a parameter of this type: TensorInfo<float, unsigned int>.
inline std::uint32_t index_bytes_of(std::string_view type) {
    return type.ends_with("long>") ? 8 : 4;
}

/// Behind the last of elements that begin at `offsets` and reach `reach` further.
inline std::uint64_t extent_of(const std::vector<std::uint64_t>& offsets, std::uint64_t reach) {
    return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + reach + 1;
}

}  // namespace simgpu::torch
