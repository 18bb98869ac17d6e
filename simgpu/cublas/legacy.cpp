// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The interface of cublas.h, without handles: one handle per process, factors and results by value,
// a status that is kept until it is asked for. Trainers from before 2013 call it.

#pragma GCC visibility push(default)
#include <cublas.h>
#pragma GCC visibility pop

#include <utility>

#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cublas {
namespace {

/// As with the vendor's, one thread uses it at a time.
struct Legacy {
    cublasHandle_t handle = nullptr;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
};

Legacy& legacy() {
    static Legacy state;
    return state;
}

cublasStatus_t keep(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) legacy().status = status;
    return status;
}

/// Calls `function` with the process's handle in front.
template <typename Function, typename... Arguments>
void with_handle(Function function, Arguments... arguments) {
    keep(function(legacy().handle, arguments...));
}

/// The same for functions whose last argument takes a result.
template <typename Result, typename Function, typename... Arguments>
Result result_of(Function function, Arguments... arguments) {
    Result result{};
    keep(function(legacy().handle, arguments..., &result));
    return result;
}

cublasOperation_t operation(char letter) {
    switch (letter) {
        case 'n':
        case 'N':
            return CUBLAS_OP_N;
        case 't':
        case 'T':
            return CUBLAS_OP_T;
        case 'c':
        case 'C':
            return CUBLAS_OP_C;
        default:
            return static_cast<cublasOperation_t>(-1);
    }
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

#define SIMGPU_CUBLAS_LEGACY(T, S)                                                                 \
    void cublas##S##gemm(char transa, char transb, int m, int n, int k, T alpha, const T* A,       \
                         int lda, const T* B, int ldb, T beta, T* C, int ldc) {                    \
        with_handle(cublas##S##gemm_v2, operation(transa), operation(transb), m, n, k, &alpha, A,  \
                    lda, B, ldb, &beta, C, ldc);                                                   \
    }                                                                                              \
    void cublas##S##gemv(char trans, int m, int n, T alpha, const T* A, int lda, const T* x,       \
                         int incx, T beta, T* y, int incy) {                                       \
        with_handle(cublas##S##gemv_v2, operation(trans), m, n, &alpha, A, lda, x, incx, &beta, y, \
                    incy);                                                                         \
    }                                                                                              \
    void cublas##S##ger(int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* A,   \
                        int lda) {                                                                 \
        with_handle(cublas##S##ger_v2, m, n, &alpha, x, incx, y, incy, A, lda);                    \
    }                                                                                              \
    void cublas##S##axpy(int n, T alpha, const T* x, int incx, T* y, int incy) {                   \
        with_handle(cublas##S##axpy_v2, n, &alpha, x, incx, y, incy);                              \
    }                                                                                              \
    void cublas##S##scal(int n, T alpha, T* x, int incx) {                                         \
        with_handle(cublas##S##scal_v2, n, &alpha, x, incx);                                       \
    }                                                                                              \
    void cublas##S##copy(int n, const T* x, int incx, T* y, int incy) {                            \
        with_handle(cublas##S##copy_v2, n, x, incx, y, incy);                                      \
    }                                                                                              \
    void cublas##S##swap(int n, T* x, int incx, T* y, int incy) {                                  \
        with_handle(cublas##S##swap_v2, n, x, incx, y, incy);                                      \
    }                                                                                              \
    T cublas##S##dot(int n, const T* x, int incx, const T* y, int incy) {                          \
        return result_of<T>(cublas##S##dot_v2, n, x, incx, y, incy);                               \
    }                                                                                              \
    T cublas##S##nrm2(int n, const T* x, int incx) {                                               \
        return result_of<T>(cublas##S##nrm2_v2, n, x, incx);                                       \
    }                                                                                              \
    T cublas##S##asum(int n, const T* x, int incx) {                                               \
        return result_of<T>(cublas##S##asum_v2, n, x, incx);                                       \
    }

extern "C" {

cublasStatus cublasInit() {
    if (legacy().handle != nullptr) return CUBLAS_STATUS_SUCCESS;
    return keep(cublasCreate_v2(&legacy().handle));
}

cublasStatus cublasShutdown() {
    if (legacy().handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    return cublasDestroy_v2(std::exchange(legacy().handle, nullptr));
}

cublasStatus cublasGetError() { return std::exchange(legacy().status, CUBLAS_STATUS_SUCCESS); }

cublasStatus cublasGetVersion(int* version) {
    return cublasGetVersion_v2(legacy().handle, version);
}

cublasStatus cublasSetKernelStream(cudaStream_t stream) {
    return keep(cublasSetStream_v2(legacy().handle, stream));
}

cublasStatus cublasAlloc(int n, int elemSize, void** devicePtr) {
    if (legacy().handle == nullptr) return keep(CUBLAS_STATUS_NOT_INITIALIZED);
    if (n <= 0 || elemSize <= 0 || devicePtr == nullptr) return keep(CUBLAS_STATUS_INVALID_VALUE);
    CUdeviceptr address = 0;
    const auto bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(elemSize);
    if (driver()->cuMemAlloc_fn(&address, bytes) != CUDA_SUCCESS)
        return keep(CUBLAS_STATUS_ALLOC_FAILED);
    *devicePtr = reinterpret_cast<void*>(address);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus cublasFree(void* devicePtr) {
    if (legacy().handle == nullptr) return keep(CUBLAS_STATUS_NOT_INITIALIZED);
    const CUresult result = driver()->cuMemFree_fn(reinterpret_cast<CUdeviceptr>(devicePtr));
    return keep(result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR);
}

SIMGPU_CUBLAS_LEGACY(float, S)
SIMGPU_CUBLAS_LEGACY(double, D)

int cublasIsamax(int n, const float* x, int incx) {
    return result_of<int>(cublasIsamax_v2, n, x, incx);
}

int cublasIdamax(int n, const double* x, int incx) {
    return result_of<int>(cublasIdamax_v2, n, x, incx);
}
}
