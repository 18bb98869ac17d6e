// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Matrix products: one by one, in strided batches, in batches by tables of addresses.

#include <algorithm>
#include <optional>
#include <type_traits>

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/gemm_shape.hpp"
#include "simgpu/cublas/handle.hpp"
#include "simgpu/cublas/log.hpp"
#include "simgpu/cublas/operands.hpp"
#include "simgpu/half_float.hpp"

namespace libswap::simgpu::cublas {
namespace {

/// Element types of A and B, and of C.
struct Types {
    Element in;
    Element out;
};

template <typename T>
constexpr Types kPlain = std::is_same_v<T, float> ? Types{Element::Float, Element::Float}
                                                  : Types{Element::Double, Element::Double};

/// What the entries below have in common. `strides` in elements; with `tables` the matrices are
/// addresses of tables of addresses. T is the type of the factors.
template <typename T>
cublasStatus_t gemm(cublasHandle_t handle, const GemmShape& s, const T* alpha, const void* a,
                    std::int64_t stride_a, const void* b, std::int64_t stride_b, const T* beta,
                    const void* c, std::int64_t stride_c, bool tables = false,
                    Types types = kPlain<T>) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!is_valid(s)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (s.m == 0 || s.n == 0 || s.batch == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (alpha == nullptr || beta == nullptr || c == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    ensure_context(*handle);
    const GemmParams params{.a = address(a),
                            .b = address(b),
                            .c = address(c),
                            .workspace = workspace(*handle),
                            .alpha = scalar(*handle, alpha),
                            .beta = scalar(*handle, beta),
                            .m = s.m,
                            .n = s.n,
                            .k = s.k,
                            .lda = s.lda,
                            .ldb = s.ldb,
                            .ldc = s.ldc,
                            .stride_a = stride_a,
                            .stride_b = stride_b,
                            .stride_c = stride_c,
                            .batch = s.batch,
                            .transpose_a = s.transa != CUBLAS_OP_N,
                            .transpose_b = s.transb != CUBLAS_OP_N,
                            .tables = tables,
                            .element = types.in,
                            .result = types.out,
                            .unused = 0};
    return status_of(launch(params, handle->stream));
}

/// The element that a data type names, or nothing where it is not built.
std::optional<Element> element_of(cudaDataType type) {
    switch (type) {
        case CUDA_R_32F:
            return Element::Float;
        case CUDA_R_64F:
            return Element::Double;
        case CUDA_R_16F:
            return Element::Half;
        case CUDA_R_16BF:
            return Element::BFloat;
        default:
            return std::nullopt;
    }
}

bool is_half(Element element) { return element == Element::Half || element == Element::BFloat; }

/// The element types of an Ex call, with the factors' type as T's tag; others are not built. With
/// half-precision factors they are given as floats.
template <typename Call>
cublasStatus_t by_type(const char* name, cudaDataType a, cudaDataType b, cudaDataType c,
                       cublasComputeType_t compute, Call call) {
    const auto in = element_of(a);
    const auto out = element_of(c);
    const bool f32 =
        compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
        compute == CUBLAS_COMPUTE_32F_FAST_16F || compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
        compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
    const bool f64 = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    if (in && out && a == b) {
        const bool same_or_float = *out == *in || *out == Element::Float;
        const bool floats = *in == Element::Float && *out == Element::Float;
        if (f32 && (floats || (is_half(*in) && same_or_float)))
            return call(static_cast<const float*>(nullptr), Types{*in, *out});
        if (f64 && *in == Element::Double && *out == Element::Double)
            return call(static_cast<const double*>(nullptr), Types{*in, *out});
    }
    return static_cast<cublasStatus_t>(unbuilt(name));
}

bool is_half_compute(cublasComputeType_t compute) {
    return compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
}

/// An Ex call whose factors are halves on the host: the same with floats.
template <typename Call>
cublasStatus_t with_float_factors(const cublasContext* handle, const char* name, const void* alpha,
                                  const void* beta, cublasComputeType_t compute, Call call) {
    if (!is_half_compute(compute)) return call(alpha, beta, compute);
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        return static_cast<cublasStatus_t>(unbuilt(name));
    if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const float wide_alpha = ::simgpu::half_to_float(*static_cast<const std::uint16_t*>(alpha));
    const float wide_beta = ::simgpu::half_to_float(*static_cast<const std::uint16_t*>(beta));
    return call(&wide_alpha, &wide_beta, CUBLAS_COMPUTE_32F);
}

struct DataTypes {
    cudaDataType a;
    cudaDataType b;
    cudaDataType c;
};

/// Addresses, and elements from one of a batch to the next.
struct Batches {
    const void* a;
    std::int64_t stride_a;
    const void* b;
    std::int64_t stride_b;
    const void* c;
    std::int64_t stride_c;
};

cublasStatus_t gemm_ex(const char* name, cublasHandle_t handle, const GemmShape& shape,
                       const DataTypes& data, cublasComputeType_t compute, const void* alpha,
                       const Batches& at, const void* beta, bool tables) {
    const auto run = [&](const void* scale, const void* keep, cublasComputeType_t type) {
        return by_type(name, data.a, data.b, data.c, type,
                       [&]<typename T>(const T*, const Types& types) {
                           return gemm(handle, shape, static_cast<const T*>(scale), at.a,
                                       at.stride_a, at.b, at.stride_b, static_cast<const T*>(keep),
                                       at.c, at.stride_c, tables, types);
                       });
    };
    return with_float_factors(handle, name, alpha, beta, compute, run);
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

// Each entry exists twice, its counts and leading dimensions as int and, under the name with _64,
// as int64_t.
#define SIMGPU_CUBLAS_GEMM(T, name, suffix, Int)                                                   \
    cublasStatus_t name##_v2##suffix(cublasHandle_t handle, cublasOperation_t transa,              \
                                     cublasOperation_t transb, Int m, Int n, Int k,                \
                                     const T* alpha, const T* A, Int lda, const T* B, Int ldb,     \
                                     const T* beta, T* C, Int ldc) {                               \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc}, alpha, A, 0, B, 0, beta, C,  \
                    0);                                                                            \
    }                                                                                              \
    cublasStatus_t name##StridedBatched##suffix(                                                   \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        Int k, const T* alpha, const T* A, Int lda, long long strideA, const T* B, Int ldb,        \
        long long strideB, const T* beta, T* C, Int ldc, long long strideC, Int batchCount) {      \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc, batchCount}, alpha, A,        \
                    strideA, B, strideB, beta, C, strideC);                                        \
    }                                                                                              \
    cublasStatus_t name##Batched##suffix(                                                          \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,   \
        Int k, const T* alpha, const T* const Aarray[], Int lda, const T* const Barray[], Int ldb, \
        const T* beta, T* const Carray[], Int ldc, Int batchCount) {                               \
        return gemm(handle, {transa, transb, m, n, k, lda, ldb, ldc, batchCount}, alpha, Aarray,   \
                    0, Barray, 0, beta, Carray, 0, true);                                          \
    }

#define SIMGPU_CUBLAS_GEMM_EX(suffix, Int)                                                        \
    cublasStatus_t cublasGemmEx##suffix(                                                          \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,  \
        Int k, const void* alpha, const void* A, cudaDataType Atype, Int lda, const void* B,      \
        cudaDataType Btype, Int ldb, const void* beta, void* C, cudaDataType Ctype, Int ldc,      \
        cublasComputeType_t computeType, cublasGemmAlgo_t) {                                      \
        return gemm_ex("cublasGemmEx" #suffix " of these types", handle,                          \
                       {transa, transb, m, n, k, lda, ldb, ldc}, {Atype, Btype, Ctype},           \
                       computeType, alpha, {A, 0, B, 0, C, 0}, beta, false);                      \
    }                                                                                             \
    cublasStatus_t cublasGemmStridedBatchedEx##suffix(                                            \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,  \
        Int k, const void* alpha, const void* A, cudaDataType Atype, Int lda, long long strideA,  \
        const void* B, cudaDataType Btype, Int ldb, long long strideB, const void* beta, void* C, \
        cudaDataType Ctype, Int ldc, long long strideC, Int batchCount,                           \
        cublasComputeType_t computeType, cublasGemmAlgo_t) {                                      \
        return gemm_ex("cublasGemmStridedBatchedEx" #suffix " of these types", handle,            \
                       {transa, transb, m, n, k, lda, ldb, ldc, batchCount},                      \
                       {Atype, Btype, Ctype}, computeType, alpha,                                 \
                       {A, strideA, B, strideB, C, strideC}, beta, false);                        \
    }                                                                                             \
    cublasStatus_t cublasGemmBatchedEx##suffix(                                                   \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,  \
        Int k, const void* alpha, const void* const Aarray[], cudaDataType Atype, Int lda,        \
        const void* const Barray[], cudaDataType Btype, Int ldb, const void* beta,                \
        void* const Carray[], cudaDataType Ctype, Int ldc, Int batchCount,                        \
        cublasComputeType_t computeType, cublasGemmAlgo_t) {                                      \
        return gemm_ex("cublasGemmBatchedEx" #suffix " of these types", handle,                   \
                       {transa, transb, m, n, k, lda, ldb, ldc, batchCount},                      \
                       {Atype, Btype, Ctype}, computeType, alpha,                                 \
                       {Aarray, 0, Barray, 0, Carray, 0}, beta, true);                            \
    }                                                                                             \
    cublasStatus_t cublasSgemmEx##suffix(                                                         \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,  \
        Int k, const float* alpha, const void* A, cudaDataType Atype, Int lda, const void* B,     \
        cudaDataType Btype, Int ldb, const float* beta, void* C, cudaDataType Ctype, Int ldc) {   \
        return gemm_ex("cublasSgemmEx" #suffix " of these types", handle,                         \
                       {transa, transb, m, n, k, lda, ldb, ldc}, {Atype, Btype, Ctype},           \
                       CUBLAS_COMPUTE_32F, alpha, {A, 0, B, 0, C, 0}, beta, false);               \
    }

extern "C" {
SIMGPU_CUBLAS_GEMM(float, cublasSgemm, , int)
SIMGPU_CUBLAS_GEMM(float, cublasSgemm, _64, std::int64_t)
SIMGPU_CUBLAS_GEMM(double, cublasDgemm, , int)
SIMGPU_CUBLAS_GEMM(double, cublasDgemm, _64, std::int64_t)
SIMGPU_CUBLAS_GEMM_EX(, int)
SIMGPU_CUBLAS_GEMM_EX(_64, std::int64_t)
}
