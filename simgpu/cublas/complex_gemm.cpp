// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Products of complex matrices, and of one with a vector: one by one, in strided batches, in
// batches by tables of addresses.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/gemm_shape.hpp"
#include "simgpu/cublas/handle.hpp"
#include "simgpu/cublas/operands.hpp"

namespace libswap::simgpu::cublas {
namespace {

/// Addresses of matrices, or of tables, and elements from one of a batch to the next.
struct Batches {
    const void* a;
    std::int64_t stride_a;
    const void* b;
    std::int64_t stride_b;
    void* c;
    std::int64_t stride_c;
    bool tables = false;
};

template <typename T>
ComplexScalar complex_scalar(const cublasContext& handle, const T* factor) {
    if (handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return {address(factor), 0, 0};
    return {0, static_cast<double>(factor->x), static_cast<double>(factor->y)};
}

template <typename T>
cublasStatus_t submit(cublasContext& handle, const T* alpha, const T* beta,
                      ComplexGemmParams params) {
    if (params.m == 0 || params.n == 0 || params.batch == 0) return CUBLAS_STATUS_SUCCESS;
    if (alpha == nullptr || beta == nullptr || params.c == 0) return CUBLAS_STATUS_INVALID_VALUE;
    ensure_context(handle);
    params.alpha = complex_scalar(handle, alpha);
    params.beta = complex_scalar(handle, beta);
    params.element = std::is_same_v<T, cuComplex> ? Element::Float : Element::Double;
    return status_of(launch(params, handle.stream));
}

template <typename T>
cublasStatus_t gemm(cublasHandle_t handle, const GemmShape& s, const T* alpha, const T* beta,
                    const Batches& at) {
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_valid(s)) return CUBLAS_STATUS_INVALID_VALUE;
    return submit(*handle, alpha, beta,
                  {.a = address(at.a),
                   .b = address(at.b),
                   .c = address(at.c),
                   .alpha = {},
                   .beta = {},
                   .m = s.m,
                   .n = s.n,
                   .k = s.k,
                   .lda = s.lda,
                   .ldb = s.ldb,
                   .ldc = s.ldc,
                   .stride_a = at.stride_a,
                   .stride_b = at.stride_b,
                   .stride_c = at.stride_c,
                   .batch = s.batch,
                   .transpose_a = s.transa != CUBLAS_OP_N,
                   .conjugate_a = s.transa == CUBLAS_OP_C,
                   .transpose_b = s.transb != CUBLAS_OP_N,
                   .conjugate_b = s.transb == CUBLAS_OP_C,
                   .tables = at.tables,
                   .element = {}});
}

/// y = alpha op(A) x + beta y as a product of rows: y' = alpha x' op(A)' + beta y', whose leading
/// dimensions are the increments.
template <typename T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t trans, std::int64_t m, std::int64_t n,
                    const T* alpha, const T* a, std::int64_t lda, const T* x, std::int64_t incx,
                    const T* beta, T* y, std::int64_t incy) {
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    // Increments below 0 are not built.
    if (!is_operation(trans) || m < 0 || n < 0 || lda < std::max<std::int64_t>(1, m) || incx <= 0 ||
        incy <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const bool plain = trans == CUBLAS_OP_N;
    return submit(*handle, alpha, beta,
                  {.a = address(x),
                   .b = address(a),
                   .c = address(y),
                   .alpha = {},
                   .beta = {},
                   .m = 1,
                   .n = plain ? m : n,
                   .k = plain ? n : m,
                   .lda = incx,
                   .ldb = lda,
                   .ldc = incy,
                   .stride_a = 0,
                   .stride_b = 0,
                   .stride_c = 0,
                   .batch = 1,
                   .transpose_a = 0,
                   .conjugate_a = 0,
                   .transpose_b = plain,
                   .conjugate_b = trans == CUBLAS_OP_C,
                   .tables = 0,
                   .element = {}});
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

// Each entry exists twice, its counts and leading dimensions as int and, under the name with _64,
// as int64_t.
#define SIMGPU_CUBLAS_COMPLEX(T, letter, suffix, Int)                                              \
    cublasStatus_t cublas##letter##gemm_v2##suffix(                                                \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        Int k, const T* alpha, const T* A, Int lda, const T* B, Int ldb, const T* beta, T* C,      \
        Int ldc) {                                                                                 \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc}, alpha, beta,                 \
                    {A, 0, B, 0, C, 0});                                                           \
    }                                                                                              \
    cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                                     \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        Int k, const T* alpha, const T* A, Int lda, long long strideA, const T* B, Int ldb,        \
        long long strideB, const T* beta, T* C, Int ldc, long long strideC, Int batchCount) {      \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc, batchCount}, alpha, beta,     \
                    {A, strideA, B, strideB, C, strideC});                                         \
    }                                                                                              \
    cublasStatus_t cublas##letter##gemmBatched##suffix(                                            \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        Int k, const T* alpha, const T* const Aarray[], Int lda, const T* const Barray[], Int ldb, \
        const T* beta, T* const Carray[], Int ldc, Int batchCount) {                               \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc, batchCount}, alpha, beta,     \
                    {Aarray, 0, Barray, 0, const_cast<T**>(Carray), 0, true});                     \
    }                                                                                              \
    cublasStatus_t cublas##letter##gemv_v2##suffix(                                                \
        cublasHandle_t handle, cublasOperation_t trans, Int m, Int n, const T* alpha, const T* A,  \
        Int lda, const T* x, Int incx, const T* beta, T* y, Int incy) {                            \
        return gemv(handle, trans, m, n, alpha, A, lda, x, incx, beta, y, incy);                   \
    }

extern "C" {
SIMGPU_CUBLAS_COMPLEX(cuComplex, C, , int)
SIMGPU_CUBLAS_COMPLEX(cuComplex, C, _64, std::int64_t)
SIMGPU_CUBLAS_COMPLEX(cuDoubleComplex, Z, , int)
SIMGPU_CUBLAS_COMPLEX(cuDoubleComplex, Z, _64, std::int64_t)
}
