// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The kernels of the stand-in: one struct is a kernel's only parameter. Device addresses come
// first, each in an 8-byte word of its own, where whoever reads parameters finds them, as in the
// vendor's kernels.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace libswap::simgpu::cublas {

enum class Element : std::int32_t { Float, Double, Half, BFloat };

constexpr std::int64_t bytes_of(Element element) {
    return element == Element::Double ? 8 : element == Element::Float ? 4 : 2;
}

/// A factor by value, or to be read on the device where `device` is not 0.
struct Scalar {
    std::uint64_t device;
    double value;
};

struct GemmParams {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t c;
    std::uint64_t workspace;
    Scalar alpha;
    Scalar beta;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t lda;
    std::int64_t ldb;
    std::int64_t ldc;
    std::int64_t stride_a;
    std::int64_t stride_b;
    std::int64_t stride_c;
    std::int64_t batch;
    std::int32_t transpose_a;
    std::int32_t transpose_b;
    /// a, b and c are tables of `batch` addresses, on the device.
    std::int32_t tables;
    /// Of a and b, and of c. Halves are multiplied in float; the factors are floats then.
    Element element;
    Element result;
    std::int32_t unused;
};

/// A complex factor, by value or to be read on the device where `device` is not 0.
struct ComplexScalar {
    std::uint64_t device;
    double real;
    double imaginary;
};

/// C = alpha op(A) op(B) + beta C of complex numbers, Float or Double ones.
struct ComplexGemmParams {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t c;
    ComplexScalar alpha;
    ComplexScalar beta;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t lda;
    std::int64_t ldb;
    std::int64_t ldc;
    std::int64_t stride_a;
    std::int64_t stride_b;
    std::int64_t stride_c;
    std::int64_t batch;
    std::int32_t transpose_a;
    std::int32_t conjugate_a;
    std::int32_t transpose_b;
    std::int32_t conjugate_b;
    /// a, b and c are tables of `batch` addresses, on the device.
    std::int32_t tables;
    Element element;
};

enum class MatrixOp : std::int32_t { Gemv, Ger, Geam, Dgmm };

/// Gemv: y = alpha op(A) x + beta y. Ger: A += alpha x y'. Geam: C = alpha op(A) + beta op(B).
/// Dgmm: C = A diag(x), or diag(x) A where `left`.
struct MatrixParams {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t c;
    std::uint64_t x;
    std::uint64_t y;
    Scalar alpha;
    Scalar beta;
    std::int64_t m;
    std::int64_t n;
    std::int64_t lda;
    std::int64_t ldb;
    std::int64_t ldc;
    std::int64_t incx;
    std::int64_t incy;
    std::int32_t transpose_a;
    std::int32_t transpose_b;
    std::int32_t left;
    MatrixOp op;
    Element element;
    std::int32_t unused;
};

enum class VectorOp : std::int32_t { Axpy, Scal, Copy, Swap, Dot, Nrm2, Asum, Amax };

struct VectorParams {
    std::uint64_t x;
    std::uint64_t y;
    /// Where Dot, Nrm2, Asum write their element, and Amax an int64 or, where `narrow_result`, an
    /// int32.
    std::uint64_t result;
    Scalar alpha;
    std::int64_t n;
    std::int64_t incx;
    std::int64_t incy;
    VectorOp op;
    Element element;
    std::int32_t narrow_result;
    std::int32_t unused;
};

/// Launches on `stream` of the current context. The first launch of a process loads the kernels.
/// @thread any
CUresult launch(const GemmParams& params, CUstream stream);
CUresult launch(const ComplexGemmParams& params, CUstream stream);
CUresult launch(const MatrixParams& params, CUstream stream);
CUresult launch(const VectorParams& params, CUstream stream);

}  // namespace libswap::simgpu::cublas
