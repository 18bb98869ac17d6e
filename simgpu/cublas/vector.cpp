// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Level 1: vectors.

#include <type_traits>

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/driver.hpp"
#include "simgpu/cublas/handle.hpp"

namespace libswap::simgpu::cublas {
namespace {

template <typename T>
constexpr Element kElement = std::is_same_v<T, float> ? Element::Float : Element::Double;

template <typename T>
struct Vector {
    T* data = nullptr;
    std::int64_t increment = 1;
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data); }
};

template <typename T, typename X, typename Y>
cublasStatus_t update(cublasHandle_t handle, VectorOp op, std::int64_t n, const T* alpha,
                      Vector<X> x, Vector<Y> y) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    const bool scaled = op == VectorOp::Axpy || op == VectorOp::Scal;
    if (n <= 0 || (op == VectorOp::Scal && x.increment <= 0)) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (scaled && alpha == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    ensure_context(*handle);
    const VectorParams params{.x = x.address(),
                              .y = y.address(),
                              .result = 0,
                              .alpha = scaled ? scalar(*handle, alpha) : Scalar{},
                              .n = n,
                              .incx = x.increment,
                              .incy = y.increment,
                              .op = op,
                              .element = kElement<T>,
                              .narrow_result = 0,
                              .unused = 0};
    return status_of(launch(params, handle->stream));
}

/// A reduction to *result, which is on the device or, after a wait for the stream, on the host.
template <typename T, typename R>
cublasStatus_t reduce(cublasHandle_t handle, VectorOp op, std::int64_t n, Vector<const T> x,
                      Vector<const T> y, R* result) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (result == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const bool to_host = handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
    const bool empty = n <= 0 || (op != VectorOp::Dot && x.increment <= 0);
    if (empty && to_host) {
        *result = R{};
        return CUBLAS_STATUS_SUCCESS;
    }
    ensure_context(*handle);
    const std::uint64_t place =
        to_host ? results(*handle) : reinterpret_cast<std::uint64_t>(result);
    if (place == 0) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    const VectorParams params{.x = x.address(),
                              .y = y.address(),
                              .result = place,
                              .alpha = {},
                              .n = empty ? 0 : n,
                              .incx = x.increment,
                              .incy = y.increment,
                              .op = op,
                              .element = kElement<T>,
                              .narrow_result = sizeof(R) == sizeof(std::int32_t),
                              .unused = 0};
    CUresult status = launch(params, handle->stream);
    if (status == CUDA_SUCCESS && to_host) {
        status = driver()->cuMemcpyDtoHAsync_fn(result, place, sizeof(R), handle->stream);
        if (status == CUDA_SUCCESS) {
            status = driver()->cuStreamSynchronize_fn(handle->stream);
        }
    }
    return status_of(status);
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

// Each entry exists twice, its counts as int and, under the name with _64, as int64_t.
#define SIMGPU_CUBLAS_VECTOR(T, S, suffix, Int)                                                   \
    cublasStatus_t cublas##S##axpy_v2##suffix(cublasHandle_t handle, Int n, const T* alpha,       \
                                              const T* x, Int incx, T* y, Int incy) {             \
        return update(handle, VectorOp::Axpy, n, alpha, Vector<const T>{x, incx},                 \
                      Vector<T>{y, incy});                                                        \
    }                                                                                             \
    cublasStatus_t cublas##S##scal_v2##suffix(cublasHandle_t handle, Int n, const T* alpha, T* x, \
                                              Int incx) {                                         \
        return update(handle, VectorOp::Scal, n, alpha, Vector<T>{x, incx}, Vector<T>{});         \
    }                                                                                             \
    cublasStatus_t cublas##S##copy_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, \
                                              T* y, Int incy) {                                   \
        return update<T>(handle, VectorOp::Copy, n, nullptr, Vector<const T>{x, incx},            \
                         Vector<T>{y, incy});                                                     \
    }                                                                                             \
    cublasStatus_t cublas##S##swap_v2##suffix(cublasHandle_t handle, Int n, T* x, Int incx, T* y, \
                                              Int incy) {                                         \
        return update<T>(handle, VectorOp::Swap, n, nullptr, Vector<T>{x, incx},                  \
                         Vector<T>{y, incy});                                                     \
    }                                                                                             \
    cublasStatus_t cublas##S##dot_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx,  \
                                             const T* y, Int incy, T* result) {                   \
        return reduce<T>(handle, VectorOp::Dot, n, {x, incx}, {y, incy}, result);                 \
    }                                                                                             \
    cublasStatus_t cublas##S##nrm2_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, \
                                              T* result) {                                        \
        return reduce<T>(handle, VectorOp::Nrm2, n, {x, incx}, {}, result);                       \
    }                                                                                             \
    cublasStatus_t cublas##S##asum_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, \
                                              T* result) {                                        \
        return reduce<T>(handle, VectorOp::Asum, n, {x, incx}, {}, result);                       \
    }
#define SIMGPU_CUBLAS_AMAX(T, s, suffix, Int)                                                      \
    cublasStatus_t cublasI##s##amax_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, \
                                               Int* result) {                                      \
        return reduce<T>(handle, VectorOp::Amax, n, {x, incx}, {}, result);                        \
    }

extern "C" {
SIMGPU_CUBLAS_VECTOR(float, S, , int)
SIMGPU_CUBLAS_VECTOR(float, S, _64, std::int64_t)
SIMGPU_CUBLAS_VECTOR(double, D, , int)
SIMGPU_CUBLAS_VECTOR(double, D, _64, std::int64_t)
SIMGPU_CUBLAS_AMAX(float, s, , int)
SIMGPU_CUBLAS_AMAX(float, s, _64, std::int64_t)
SIMGPU_CUBLAS_AMAX(double, d, , int)
SIMGPU_CUBLAS_AMAX(double, d, _64, std::int64_t)
}
