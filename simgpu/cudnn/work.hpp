// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simgpu/cudnn/tensor.hpp"
#include "simgpu/launch_memory.hpp"

namespace libswap::simgpu::cudnn {

/// The memory of one launch, its parameters, and tensors in that memory.
class Work : public LaunchMemory {
  public:
    using LaunchMemory::LaunchMemory;

    /// The launch's parameter block as a struct.
    template <typename Params>
    Params params() const {
        static_assert(std::is_trivially_copyable_v<Params>);
        Params params{};
        std::memcpy(&params, launch().params,
                    std::min<std::size_t>(sizeof(params), launch().param_bytes));
        return params;
    }

    /// The tensor's values in row-major order, as T: float, or double. Empty once faulted. Counts
    /// the bytes read.
    template <typename T>
    std::vector<T> load(std::uint64_t va, const Tensor& tensor);

    /// tensor = alpha * values + beta * tensor, values in row-major order; beta == 0 does not read.
    /// Between the elements of a tensor with gaps nothing is written. Counts the bytes.
    template <typename T>
    void store(std::uint64_t va, const Tensor& tensor, const std::vector<T>& values,
               double alpha = 1, double beta = 0);

    /// Uses scratch memory as a kernel would: what lies there is overwritten.
    void use_workspace(std::uint64_t va, std::uint64_t bytes);
};

}  // namespace libswap::simgpu::cudnn
