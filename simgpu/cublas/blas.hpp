// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>

/// The arithmetic, by OpenBLAS, on host pointers. Column-major as cuBLAS; beta == 0 never reads
/// what it overwrites, alpha == 0 never reads what it scales. Deterministic: work is cut at fixed
/// places, whatever the machine has to offer.
namespace libswap::simgpu::cublas::blas {

/// Loads OpenBLAS if that has not happened; false, said once, where there is none. @thread any
bool load();

/// C = alpha op(A) op(B) + beta C. The flags say transpose.
template <typename T>
struct Gemm {
    bool transpose_a;
    bool transpose_b;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    T alpha;
    const T* a;
    std::int64_t lda;
    const T* b;
    std::int64_t ldb;
    T beta;
    T* c;
    std::int64_t ldc;
};

/// All of these: after load() has answered true, on any thread; calls from several threads at once
/// are in order.
template <typename T>
void gemm(const Gemm<T>& arguments);
template <typename T>
void gemv(bool transpose, std::int64_t m, std::int64_t n, T alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, T beta, T* y, std::int64_t incy);
template <typename T>
void ger(std::int64_t m, std::int64_t n, T alpha, const T* x, std::int64_t incx, const T* y,
         std::int64_t incy, T* a, std::int64_t lda);
template <typename T>
void axpy(std::int64_t n, T alpha, const T* x, std::int64_t incx, T* y, std::int64_t incy);
template <typename T>
void scal(std::int64_t n, T alpha, T* x, std::int64_t incx);
template <typename T>
void copy(std::int64_t n, const T* x, std::int64_t incx, T* y, std::int64_t incy);
template <typename T>
void swap(std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy);
template <typename T>
T dot(std::int64_t n, const T* x, std::int64_t incx, const T* y, std::int64_t incy);
template <typename T>
T nrm2(std::int64_t n, const T* x, std::int64_t incx);
template <typename T>
T asum(std::int64_t n, const T* x, std::int64_t incx);
/// Place of the first element of largest magnitude, counted from 0.
template <typename T>
std::int64_t amax(std::int64_t n, const T* x, std::int64_t incx);

}  // namespace libswap::simgpu::cublas::blas
