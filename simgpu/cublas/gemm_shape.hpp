// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What all products of matrices are told of their operands.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simgpu/cublas/operands.hpp"

namespace libswap::simgpu::cublas {

/// C is m by n, op(A) m by k, op(B) k by n; leading dimensions in elements.
struct GemmShape {
    cublasOperation_t transa;
    cublasOperation_t transb;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t lda;
    std::int64_t ldb;
    std::int64_t ldc;
    std::int64_t batch = 1;
};

inline bool is_valid(const GemmShape& s) {
    if (!is_operation(s.transa) || !is_operation(s.transb)) return false;
    if (s.m < 0 || s.n < 0 || s.k < 0 || s.batch < 0) return false;
    const std::int64_t a_rows = s.transa == CUBLAS_OP_N ? s.m : s.k;
    const std::int64_t b_rows = s.transb == CUBLAS_OP_N ? s.k : s.n;
    return s.lda >= std::max<std::int64_t>(1, a_rows) &&
           s.ldb >= std::max<std::int64_t>(1, b_rows) && s.ldc >= std::max<std::int64_t>(1, s.m);
}

}  // namespace libswap::simgpu::cublas
