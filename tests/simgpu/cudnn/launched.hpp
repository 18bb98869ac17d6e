// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Runs the stand-in's kernels without a driver: device addresses are host addresses here.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

struct Cost {
    double flops = -1;
    double bytes = -1;
};

/// Nothing is mapped below.
constexpr std::uint64_t kFirstAddress = 1 << 16;

inline void* host_span(const SimgpuHostLaunch*, std::uint64_t va, std::size_t, int) {
    return va < kFirstAddress ? nullptr : reinterpret_cast<void*>(va);
}

template <typename Params>
Cost run(void (*kernel)(const SimgpuHostLaunch*), const Params& params) {
    Cost cost;
    SimgpuHostLaunch launch{};
    launch.params = &params;
    launch.param_bytes = sizeof(params);
    launch.span = host_span;
    launch.flops = &cost.flops;
    launch.bytes = &cost.bytes;
    kernel(&launch);
    return cost;
}

template <typename T>
std::uint64_t address(const std::vector<T>& values) {
    return reinterpret_cast<std::uint64_t>(values.data());
}

/// Numbers within -1 and 1, the same every time.
template <typename T = float>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) {
        seed = seed * 1664525U + 1013904223U;
        value = static_cast<T>(seed >> 20) / 2048 - 1;
    }
    return values;
}

inline Tensor dense(std::initializer_list<int> dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return dense_tensor(type, static_cast<int>(dims.size()), dims.begin());
}

template <typename T>
void expect_near(const std::vector<T>& got, const std::vector<T>& wanted, double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(wanted[i]), tolerance)
            << "at " << i;
    }
}

}  // namespace libswap::simgpu::cudnn
