// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Products of complex matrices, each sum in double precision. OpenBLAS's are not asked: these are
// small where programs have them, and a sum's order is the same on every computer.

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "simgpu/cublas/host_kernels.hpp"
#include "simgpu/cublas/kernels.hpp"
#include "simgpu/launch_memory.hpp"

namespace libswap::simgpu::cublas {
namespace {

using Complex = std::complex<double>;

template <typename T>
Complex factor(LaunchMemory& memory, const ComplexScalar& scalar) {
    if (scalar.device == 0) return {scalar.real, scalar.imaginary};
    const auto* at = memory.span<const std::complex<T>>(scalar.device, 1);
    return at == nullptr ? Complex() : Complex(*at);
}

/// op(X), row by row where `by_rows`, else column by column.
template <typename T>
std::vector<Complex> operand(const std::complex<T>* x, std::int64_t rows, std::int64_t columns,
                             std::int64_t ld, bool transpose, bool conjugate, bool by_rows) {
    std::vector<Complex> all;
    all.reserve(static_cast<std::size_t>(rows * columns));
    for (std::int64_t i = 0; i < rows * columns; ++i) {
        const std::int64_t row = by_rows ? i / columns : i % rows;
        const std::int64_t column = by_rows ? i % columns : i / rows;
        const Complex value(transpose ? x[column + row * ld] : x[row + column * ld]);
        all.push_back(conjugate ? std::conj(value) : value);
    }
    return all;
}

// std::complex's operator looks for infinities that came of a product of NaNs: not here.
void add_product(Complex& sum, const Complex& x, const Complex& y) {
    sum = {sum.real() + x.real() * y.real() - x.imag() * y.imag(),
           sum.imag() + x.real() * y.imag() + x.imag() * y.real()};
}

template <typename T>
void gemm_one(LaunchMemory& memory, const ComplexGemmParams& p, std::uint64_t a_va,
              std::uint64_t b_va, std::uint64_t c_va) {
    const Complex alpha = factor<T>(memory, p.alpha);
    const Complex beta = factor<T>(memory, p.beta);
    auto* c = memory.span<std::complex<T>>(c_va, extent(p.m, p.n, p.ldc));
    const std::int64_t k = alpha == Complex() ? 0 : p.k;
    std::vector<Complex> left;
    std::vector<Complex> right;
    if (k > 0) {
        const auto* a = memory.span<const std::complex<T>>(
            a_va, p.transpose_a ? extent(k, p.m, p.lda) : extent(p.m, k, p.lda));
        const auto* b = memory.span<const std::complex<T>>(
            b_va, p.transpose_b ? extent(p.n, k, p.ldb) : extent(k, p.n, p.ldb));
        if (memory.faulted()) return;
        left = operand(a, p.m, k, p.lda, p.transpose_a != 0, p.conjugate_a != 0, true);
        right = operand(b, k, p.n, p.ldb, p.transpose_b != 0, p.conjugate_b != 0, false);
    }
    if (memory.faulted()) return;
    for (std::int64_t column = 0; column < p.n; ++column)
        for (std::int64_t row = 0; row < p.m; ++row) {
            Complex sum;
            for (std::int64_t i = 0; i < k; ++i)
                add_product(sum, left[static_cast<std::size_t>(row * k + i)],
                            right[static_cast<std::size_t>(column * k + i)]);
            std::complex<T>& to = c[row + column * p.ldc];
            Complex result;
            if (beta != Complex()) add_product(result, beta, Complex(to));
            add_product(result, alpha, sum);
            to = std::complex<T>(result);
        }
    const auto m = static_cast<double>(p.m);
    const auto n = static_cast<double>(p.n);
    const auto depth = static_cast<double>(k);
    memory.cost(8 * m * n * depth, sizeof(std::complex<T>) * (m * depth + depth * n + 2 * m * n));
}

template <typename T>
void gemm_all(LaunchMemory& memory, const ComplexGemmParams& p) {
    for (std::int64_t i = 0; i < p.batch && !memory.faulted(); ++i) {
        const auto at = [&](std::uint64_t base, std::int64_t stride) -> std::uint64_t {
            if (p.tables == 0)
                return base + static_cast<std::uint64_t>(i * stride) * sizeof(std::complex<T>);
            const auto* entries = memory.span<const std::uint64_t>(base, p.batch);
            return entries == nullptr ? 0 : entries[i];
        };
        gemm_one<T>(memory, p, at(p.a, p.stride_a), at(p.b, p.stride_b), at(p.c, p.stride_c));
    }
}

}  // namespace

void host_complex_gemm(const SimgpuHostLaunch* launch) {
    ComplexGemmParams p;
    std::memcpy(&p, launch->params, std::min<std::size_t>(sizeof p, launch->param_bytes));
    LaunchMemory memory(launch);
    p.element == Element::Double ? gemm_all<double>(memory, p) : gemm_all<float>(memory, p);
}

}  // namespace libswap::simgpu::cublas
