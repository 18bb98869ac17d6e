// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>

#include "simgpu/cublas/kernels.hpp"

namespace libswap::simgpu::cublaslt {

enum class Activation : std::int32_t { None, Relu, Gelu };

/// D = activation(alpha op(A) op(B) + beta C + bias): the kernel's only parameter. The product's
/// `c` is D; `source` is C, where that is another matrix.
struct MatmulParams {
    cublas::GemmParams product;
    std::uint64_t source;
    std::uint64_t bias;
    std::int64_t source_ld;
    std::int64_t source_stride;
    std::int64_t bias_stride;
    Activation activation;
    cublas::Element bias_element;
};

/// Launches on `stream` of the current context. @thread any
CUresult launch(const MatmulParams& params, CUstream stream);

}  // namespace libswap::simgpu::cublaslt
