// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simgpu/cudnn/tensor.hpp"
#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cudnn {

/// The device memory of one launch, and what the launch costs. Once a span is not to be had the
/// launch has faulted, and every later one is null too.
class Work {
  public:
    explicit Work(const SimgpuHostLaunch* launch) : launch_(launch) {}
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
        *launch_->flops = flops_;
        *launch_->bytes = bytes_;
    }

    /// The launch's parameter block as a struct.
    template <typename Params>
    Params params() const {
        static_assert(std::is_trivially_copyable_v<Params>);
        Params params{};
        std::memcpy(&params, launch_->params,
                    std::min<std::size_t>(sizeof(params), launch_->param_bytes));
        return params;
    }

    /// Writable where T is not const.
    template <typename T>
    T* span(std::uint64_t va, std::int64_t elements) {
        constexpr bool kWrite = !std::is_const_v<T>;
        if (faulted_ || elements <= 0) {
            return nullptr;
        }
        void* pointer = launch_->span(launch_, va, static_cast<std::size_t>(elements) * sizeof(T),
                                      kWrite ? 1 : 0);
        faulted_ = pointer == nullptr;
        return static_cast<T*>(pointer);
    }

    bool faulted() const { return faulted_; }

    void cost(double flops, double bytes) {
        flops_ += flops;
        bytes_ += bytes;
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

  private:
    const SimgpuHostLaunch* launch_;
    bool faulted_ = false;
    double flops_ = 0;
    double bytes_ = 0;
};

}  // namespace libswap::simgpu::cudnn
