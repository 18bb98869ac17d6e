// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Level 2, and the extensions that work on one matrix at a time.

#include <algorithm>
#include <type_traits>

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/handle.hpp"
#include "simgpu/cublas/operands.hpp"

namespace libswap::simgpu::cublas {
namespace {

bool is_ld(std::int64_t ld, std::int64_t rows) { return ld >= std::max<std::int64_t>(1, rows); }

template <typename T>
MatrixParams params_of(MatrixOp op, std::int64_t m, std::int64_t n) {
    MatrixParams params{};
    params.op = op;
    params.m = m;
    params.n = n;
    params.element = std::is_same_v<T, float> ? Element::Float : Element::Double;
    return params;
}

cublasStatus_t submit(const cublasContext& handle, const MatrixParams& params) {
    ensure_context(handle);
    return status_of(launch(params, handle.stream));
}

template <typename T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t trans, std::int64_t m, std::int64_t n,
                    const T* alpha, const T* a, std::int64_t lda, const T* x, std::int64_t incx,
                    const T* beta, T* y, std::int64_t incy) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!is_operation(trans) || m < 0 || n < 0 || !is_ld(lda, m) || incx == 0 || incy == 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    auto params = params_of<T>(MatrixOp::Gemv, m, n);
    params.transpose_a = trans != CUBLAS_OP_N;
    params.alpha = scalar(*handle, alpha);
    params.beta = scalar(*handle, beta);
    params.a = address(a);
    params.lda = lda;
    params.x = address(x);
    params.incx = incx;
    params.y = address(y);
    params.incy = incy;
    return submit(*handle, params);
}

template <typename T>
cublasStatus_t ger(cublasHandle_t handle, std::int64_t m, std::int64_t n, const T* alpha,
                   const T* x, std::int64_t incx, const T* y, std::int64_t incy, T* a,
                   std::int64_t lda) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (m < 0 || n < 0 || !is_ld(lda, m) || incx == 0 || incy == 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    auto params = params_of<T>(MatrixOp::Ger, m, n);
    params.alpha = scalar(*handle, alpha);
    params.a = address(a);
    params.lda = lda;
    params.x = address(x);
    params.incx = incx;
    params.y = address(y);
    params.incy = incy;
    return submit(*handle, params);
}

template <typename T>
cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                    std::int64_t m, std::int64_t n, const T* alpha, const T* a, std::int64_t lda,
                    const T* beta, const T* b, std::int64_t ldb, T* c, std::int64_t ldc) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!is_operation(transa) || !is_operation(transb) || m < 0 || n < 0 ||
        !is_ld(lda, transa == CUBLAS_OP_N ? m : n) || !is_ld(ldb, transb == CUBLAS_OP_N ? m : n) ||
        !is_ld(ldc, m)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    // In place only as it is, and with the same leading dimension.
    if ((c == a && (transa != CUBLAS_OP_N || lda != ldc)) ||
        (c == b && (transb != CUBLAS_OP_N || ldb != ldc))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    auto params = params_of<T>(MatrixOp::Geam, m, n);
    params.transpose_a = transa != CUBLAS_OP_N;
    params.transpose_b = transb != CUBLAS_OP_N;
    params.alpha = scalar(*handle, alpha);
    params.beta = scalar(*handle, beta);
    params.a = address(a);
    params.lda = lda;
    params.b = address(b);
    params.ldb = ldb;
    params.c = address(c);
    params.ldc = ldc;
    return submit(*handle, params);
}

template <typename T>
cublasStatus_t dgmm(cublasHandle_t handle, cublasSideMode_t mode, std::int64_t m, std::int64_t n,
                    const T* a, std::int64_t lda, const T* x, std::int64_t incx, T* c,
                    std::int64_t ldc) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if ((mode != CUBLAS_SIDE_LEFT && mode != CUBLAS_SIDE_RIGHT) || m < 0 || n < 0 ||
        !is_ld(lda, m) || !is_ld(ldc, m)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    auto params = params_of<T>(MatrixOp::Dgmm, m, n);
    params.left = mode == CUBLAS_SIDE_LEFT;
    params.a = address(a);
    params.lda = lda;
    params.x = address(x);
    params.incx = incx;
    params.c = address(c);
    params.ldc = ldc;
    return submit(*handle, params);
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

// Each entry exists twice, its counts and leading dimensions as int and, under the name with _64,
// as int64_t.
#define SIMGPU_CUBLAS_MATRIX(T, S, suffix, Int)                                                    \
    cublasStatus_t cublas##S##gemv_v2##suffix(                                                     \
        cublasHandle_t handle, cublasOperation_t trans, Int m, Int n, const T* alpha, const T* A,  \
        Int lda, const T* x, Int incx, const T* beta, T* y, Int incy) {                            \
        return gemv(handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy);                   \
    }                                                                                              \
    cublasStatus_t cublas##S##ger_v2##suffix(cublasHandle_t handle, Int m, Int n, const T* alpha,  \
                                             const T* x, Int incx, const T* y, Int incy, T* A,     \
                                             Int lda) {                                            \
        return ger(handle, m, n, alpha, x, incx, y, incy, A, lda);                                 \
    }                                                                                              \
    cublasStatus_t cublas##S##geam##suffix(                                                        \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        const T* alpha, const T* A, Int lda, const T* beta, const T* B, Int ldb, T* C, Int ldc) {  \
        return geam(handle, transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc);            \
    }                                                                                              \
    cublasStatus_t cublas##S##dgmm##suffix(cublasHandle_t handle, cublasSideMode_t mode, Int m,    \
                                           Int n, const T* A, Int lda, const T* x, Int incx, T* C, \
                                           Int ldc) {                                              \
        return dgmm(handle, mode, m, n, A, lda, x, incx, C, ldc);                                  \
    }

extern "C" {
SIMGPU_CUBLAS_MATRIX(float, S, , int)
SIMGPU_CUBLAS_MATRIX(float, S, _64, std::int64_t)
SIMGPU_CUBLAS_MATRIX(double, D, , int)
SIMGPU_CUBLAS_MATRIX(double, D, _64, std::int64_t)
}
