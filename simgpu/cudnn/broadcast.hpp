// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

/// For each element of a large tensor in row-major order, the element of a small one that meets it,
/// where extents of 1 are repeated. Both of the same rank.
class Broadcast {
  public:
    Broadcast(const Tensor& large, const Tensor& small) : large_(large) {
        std::int64_t stride = 1;
        for (int i = large.rank - 1; i >= 0; --i) {
            step_[i] = small.dims[i] == 1 ? 0 : stride;
            stride *= small.dims[i];
        }
    }

    /// Calls visit(place in large, place in small).
    template <typename Visit>
    void for_each(const Visit& visit) const {
        std::int32_t index[Tensor::kMaxRank] = {};
        std::int64_t small = 0;
        const std::int64_t count = large_.elements();
        for (std::int64_t at = 0; at < count; ++at) {
            visit(static_cast<std::size_t>(at), static_cast<std::size_t>(small));
            for (int i = large_.rank - 1; i >= 0; --i) {
                small += step_[i];
                if (++index[i] < large_.dims[i]) {
                    break;
                }
                small -= step_[i] * large_.dims[i];
                index[i] = 0;
            }
        }
    }

  private:
    const Tensor& large_;
    std::int64_t step_[Tensor::kMaxRank];
};

/// Of the same rank, each extent of `small` that of `large` or 1.
inline bool can_repeat(const Tensor& small, const Tensor& large) {
    bool can = small.rank == large.rank;
    for (int i = 0; can && i < small.rank; ++i) {
        can = small.dims[i] == large.dims[i] || small.dims[i] == 1;
    }
    return can;
}

}  // namespace libswap::simgpu::cudnn
