// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The stand-in's only kernel, and what it is passed. Device addresses come first, as in cuBLAS's.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cufft {

inline constexpr std::size_t kMaxRank = 3;

enum class Precision : std::int32_t { Half, Float, Double };

/// How a batch of arrays lies in memory, in elements. The last dimension is the fastest one.
struct Layout {
    std::array<std::int64_t, kMaxRank> embed{};  ///< extents of the array that it is a corner of
    std::int64_t stride = 1;
    std::int64_t distance = 0;  ///< between the batch's arrays
    Precision precision = Precision::Float;
    std::int32_t is_complex = 1;
};

/// Real arrays have n elements along the last dimension, and their transforms n / 2 + 1.
struct TransformParams {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    Layout from;
    Layout to;
    std::array<std::int64_t, kMaxRank> n{};
    std::int64_t batch = 0;
    std::int32_t rank = 0;
    std::int32_t sign = -1;  ///< of the exponent: -1 forward, 1 inverse
};

/// Elements from an array's first to the last of the batch, with `last` of them along the last
/// dimension.
std::int64_t extent(const Layout& layout, const TransformParams& params, std::int64_t last);

/// Launches on `stream` of the current context. The first launch of a process loads the kernel.
/// @thread any
CUresult launch(const TransformParams& params, CUstream stream);

/// The kernel's work.
void host_transform(const SimgpuHostLaunch* launch);

}  // namespace libswap::simgpu::cufft
