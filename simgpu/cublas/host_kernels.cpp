// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/host_kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cublas/kernels.hpp"
#include "simgpu/half_float.hpp"
#include "simgpu/launch_memory.hpp"

namespace libswap::simgpu::cublas {
namespace {

class Work : public LaunchMemory {
  public:
    using LaunchMemory::LaunchMemory;

    template <typename T>
    T scalar(const Scalar& scalar) {
        if (scalar.device == 0) {
            return static_cast<T>(scalar.value);
        }
        const T* pointer = span<const T>(scalar.device, 1);
        return pointer == nullptr ? T{} : *pointer;
    }
};

template <typename T>
void widen(Element element, const std::uint16_t* from, std::vector<T>& to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = element == Element::Half ? ::simgpu::half_to_float(from[i])
                                         : ::simgpu::bf16_to_float(from[i]);
    }
}

template <typename T>
void narrow_columns(const GemmParams& p, const std::vector<T>& from, std::uint16_t* to) {
    for (std::int64_t column = 0; column < p.n; ++column) {
        for (std::int64_t row = 0; row < p.m; ++row) {
            const std::int64_t at = row + column * p.ldc;
            const auto value = static_cast<double>(from[static_cast<std::size_t>(at)]);
            to[at] = p.result == Element::Half ? ::simgpu::double_to_half(value)
                                               : ::simgpu::double_to_bf16(value);
        }
    }
}

/// Elements from the first of a column-major matrix to its last.
std::int64_t vector_extent(std::int64_t n, std::int64_t increment) {
    return n <= 0 ? 0 : (n - 1) * std::abs(increment) + 1;
}

double product(std::int64_t x, std::int64_t y, std::int64_t z = 1) {
    return static_cast<double>(x) * static_cast<double>(y) * static_cast<double>(z);
}

/// One product's matrices, where they lie.
struct Matrices {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t c;
};

/// A matrix as T: where it lies, or a copy if its elements are halves.
template <typename T>
class Operand {
  public:
    Operand(Work& work, std::uint64_t va, std::int64_t elements, Element element) : data_(nullptr) {
        if (bytes_of(element) == sizeof(T)) {
            data_ = work.span<const T>(va, elements);
            return;
        }
        const auto* halves = work.span<const std::uint16_t>(va, elements);
        if (halves == nullptr) return;
        copy_.resize(static_cast<std::size_t>(elements));
        widen(element, halves, copy_);
        data_ = copy_.data();
    }
    const T* data() const { return data_; }

  private:
    std::vector<T> copy_;
    const T* data_;
};

template <typename T>
void gemm_one(Work& work, const GemmParams& p, const Matrices& at, T alpha, T beta) {
    const bool reads = alpha != T{} && p.k > 0;
    const bool narrow = bytes_of(p.result) != sizeof(T);
    const std::int64_t c_elements = extent(p.m, p.n, p.ldc);
    T* c = narrow ? nullptr : work.span<T>(at.c, c_elements);
    auto* halves = narrow ? work.span<std::uint16_t>(at.c, c_elements) : nullptr;
    if (work.faulted()) return;
    std::vector<T> wide(narrow ? static_cast<std::size_t>(c_elements) : 0);
    // What lies between the columns is not ours: it goes back as it came.
    if (narrow) widen(p.result, halves, wide);
    blas::Gemm<T> g{.transpose_a = p.transpose_a != 0,
                    .transpose_b = p.transpose_b != 0,
                    .m = p.m,
                    .n = p.n,
                    .k = reads ? p.k : 0,
                    .alpha = alpha,
                    .a = nullptr,
                    .lda = p.lda,
                    .b = nullptr,
                    .ldb = p.ldb,
                    .beta = beta,
                    .c = narrow ? wide.data() : c,
                    .ldc = p.ldc};
    const std::int64_t a_elements =
        g.transpose_a ? extent(p.k, p.m, p.lda) : extent(p.m, p.k, p.lda);
    const std::int64_t b_elements =
        g.transpose_b ? extent(p.n, p.k, p.ldb) : extent(p.k, p.n, p.ldb);
    const Operand<T> a(work, at.a, reads ? a_elements : 0, p.element);
    const Operand<T> b(work, at.b, reads ? b_elements : 0, p.element);
    if (work.faulted()) return;
    // Never read where there is nothing to read, but the library wants addresses.
    g.a = reads ? a.data() : g.c;
    g.b = reads ? b.data() : g.c;
    blas::gemm(g);
    if (narrow) narrow_columns(p, wide, halves);
    const double passes_over_c = beta == T{} ? 1 : 2;
    const auto in = static_cast<double>(bytes_of(p.element));
    const auto out = static_cast<double>(bytes_of(p.result));
    work.cost(2 * product(p.m, p.n, g.k), in * (product(p.m, g.k) + product(g.k, p.n)) +
                                              out * passes_over_c * product(p.m, p.n));
}

template <typename T>
void gemm_all(Work& work, const GemmParams& p) {
    const T alpha = work.scalar<T>(p.alpha);
    const T beta = work.scalar<T>(p.beta);
    for (std::int64_t i = 0; i < p.batch && !work.faulted(); ++i) {
        if (p.tables != 0) {
            auto address = [&](std::uint64_t table) {
                const auto* entries = work.span<const std::uint64_t>(table, p.batch);
                return entries == nullptr ? 0 : entries[i];
            };
            gemm_one<T>(work, p, {address(p.a), address(p.b), address(p.c)}, alpha, beta);
        } else {
            auto at = [&](std::uint64_t base, std::int64_t stride, Element element) {
                return base + static_cast<std::uint64_t>(i * stride * bytes_of(element));
            };
            gemm_one<T>(work, p,
                        {at(p.a, p.stride_a, p.element), at(p.b, p.stride_b, p.element),
                         at(p.c, p.stride_c, p.result)},
                        alpha, beta);
        }
    }
}

template <typename T>
void gemv(Work& work, const MatrixParams& p) {
    const T alpha = work.scalar<T>(p.alpha);
    const T beta = work.scalar<T>(p.beta);
    const bool transpose = p.transpose_a != 0;
    const std::int64_t in = transpose ? p.m : p.n;
    const std::int64_t out = transpose ? p.n : p.m;
    T* y = work.span<T>(p.y, vector_extent(out, p.incy));
    if (alpha == T{} || in == 0) {
        for (std::int64_t i = 0; i < out && y != nullptr; ++i) {
            T& value = y[i * std::abs(p.incy)];
            value = beta == T{} ? T{} : value * beta;
        }
        return;
    }
    const T* a = work.span<const T>(p.a, extent(p.m, p.n, p.lda));
    const T* x = work.span<const T>(p.x, vector_extent(in, p.incx));
    if (work.faulted()) {
        return;
    }
    blas::gemv<T>(transpose, p.m, p.n, alpha, a, p.lda, x, p.incx, beta, y, p.incy);
    work.cost(2 * product(p.m, p.n), sizeof(T) * (product(p.m, p.n) + product(in + 2 * out, 1)));
}

template <typename T>
void ger(Work& work, const MatrixParams& p) {
    const T alpha = work.scalar<T>(p.alpha);
    T* a = work.span<T>(p.a, extent(p.m, p.n, p.lda));
    const T* x = work.span<const T>(p.x, vector_extent(p.m, p.incx));
    const T* y = work.span<const T>(p.y, vector_extent(p.n, p.incy));
    if (work.faulted()) {
        return;
    }
    blas::ger<T>(p.m, p.n, alpha, x, p.incx, y, p.incy, a, p.lda);
    work.cost(2 * product(p.m, p.n), sizeof(T) * (2 * product(p.m, p.n) + product(p.m + p.n, 1)));
}

template <typename T>
void geam(Work& work, const MatrixParams& p) {
    const T alpha = work.scalar<T>(p.alpha);
    const T beta = work.scalar<T>(p.beta);
    auto input = [&](std::uint64_t va, bool transposed, std::int64_t ld, T factor) -> const T* {
        if (factor == T{}) {
            return nullptr;
        }
        return work.span<const T>(va, transposed ? extent(p.n, p.m, ld) : extent(p.m, p.n, ld));
    };
    const T* a = input(p.a, p.transpose_a != 0, p.lda, alpha);
    const T* b = input(p.b, p.transpose_b != 0, p.ldb, beta);
    T* c = work.span<T>(p.c, extent(p.m, p.n, p.ldc));
    if (work.faulted()) {
        return;
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
        for (std::int64_t i = 0; i < p.m; ++i) {
            T sum{};
            if (a != nullptr) {
                sum += alpha * (p.transpose_a != 0 ? a[j + i * p.lda] : a[i + j * p.lda]);
            }
            if (b != nullptr) {
                sum += beta * (p.transpose_b != 0 ? b[j + i * p.ldb] : b[i + j * p.ldb]);
            }
            c[i + j * p.ldc] = sum;
        }
    }
    const int passes = 1 + (a != nullptr ? 1 : 0) + (b != nullptr ? 1 : 0);
    work.cost(2 * product(p.m, p.n), sizeof(T) * passes * product(p.m, p.n));
}

template <typename T>
void dgmm(Work& work, const MatrixParams& p) {
    const T* a = work.span<const T>(p.a, extent(p.m, p.n, p.lda));
    const std::int64_t length = p.left != 0 ? p.m : p.n;
    const T* x = work.span<const T>(p.x, vector_extent(length, p.incx));
    T* c = work.span<T>(p.c, extent(p.m, p.n, p.ldc));
    if (work.faulted()) {
        return;
    }
    const T* first = p.incx < 0 ? x - (length - 1) * p.incx : x;
    for (std::int64_t j = 0; j < p.n; ++j) {
        for (std::int64_t i = 0; i < p.m; ++i) {
            c[i + j * p.ldc] = a[i + j * p.lda] * first[(p.left != 0 ? i : j) * p.incx];
        }
    }
    work.cost(product(p.m, p.n), sizeof(T) * (2 * product(p.m, p.n) + product(length, 1)));
}

template <typename T>
void matrix(Work& work, const MatrixParams& p) {
    switch (p.op) {
        case MatrixOp::Gemv:
            return gemv<T>(work, p);
        case MatrixOp::Ger:
            return ger<T>(work, p);
        case MatrixOp::Geam:
            return geam<T>(work, p);
        case MatrixOp::Dgmm:
            return dgmm<T>(work, p);
    }
}

/// The operations that change vectors. The second pass over a written vector is its read.
template <typename T>
void vector_update(Work& work, const VectorParams& p) {
    const std::int64_t x_elements = vector_extent(p.n, p.incx);
    const std::int64_t y_elements = vector_extent(p.n, p.incy);
    if (p.op == VectorOp::Scal) {
        const T alpha = work.scalar<T>(p.alpha);
        T* x = work.span<T>(p.x, x_elements);
        if (x != nullptr) {
            blas::scal<T>(p.n, alpha, x, p.incx);
        }
        return work.cost(product(p.n, 1), sizeof(T) * product(p.n, 2));
    }
    if (p.op == VectorOp::Swap) {
        T* x = work.span<T>(p.x, x_elements);
        T* y = work.span<T>(p.y, y_elements);
        if (!work.faulted()) {
            blas::swap<T>(p.n, x, p.incx, y, p.incy);
        }
        return work.cost(0, sizeof(T) * product(p.n, 4));
    }
    const bool adds = p.op == VectorOp::Axpy;
    const T alpha = adds ? work.scalar<T>(p.alpha) : T{};
    const T* x = work.span<const T>(p.x, x_elements);
    T* y = work.span<T>(p.y, y_elements);
    if (work.faulted()) {
        return;
    }
    if (adds) {
        blas::axpy<T>(p.n, alpha, x, p.incx, y, p.incy);
    } else {
        blas::copy<T>(p.n, x, p.incx, y, p.incy);
    }
    work.cost(adds ? product(p.n, 2) : 0, sizeof(T) * product(p.n, adds ? 3 : 2));
}

template <typename T>
void vector_reduce(Work& work, const VectorParams& p) {
    const bool two = p.op == VectorOp::Dot;
    const T* x = work.span<const T>(p.x, vector_extent(p.n, p.incx));
    const T* y = two ? work.span<const T>(p.y, vector_extent(p.n, p.incy)) : nullptr;
    if (p.op == VectorOp::Amax) {
        const std::int64_t place =
            work.faulted() || x == nullptr ? 0 : blas::amax<T>(p.n, x, p.incx) + 1;
        if (p.narrow_result != 0) {
            if (auto* result = work.span<std::int32_t>(p.result, 1); result != nullptr) {
                *result = static_cast<std::int32_t>(place);
            }
        } else if (auto* result = work.span<std::int64_t>(p.result, 1); result != nullptr) {
            *result = place;
        }
    } else if (T* result = work.span<T>(p.result, 1); result != nullptr) {
        const std::int64_t n = x == nullptr ? 0 : p.n;
        *result = two                      ? blas::dot<T>(n, x, p.incx, y, p.incy)
                  : p.op == VectorOp::Nrm2 ? blas::nrm2<T>(n, x, p.incx)
                                           : blas::asum<T>(n, x, p.incx);
    }
    work.cost(product(p.n, 2), sizeof(T) * product(p.n, two ? 2 : 1));
}

template <typename T>
void vector(Work& work, const VectorParams& p) {
    switch (p.op) {
        case VectorOp::Axpy:
        case VectorOp::Scal:
        case VectorOp::Copy:
        case VectorOp::Swap:
            return vector_update<T>(work, p);
        case VectorOp::Dot:
        case VectorOp::Nrm2:
        case VectorOp::Asum:
        case VectorOp::Amax:
            return vector_reduce<T>(work, p);
    }
}

template <typename Params>
Params read_params(const SimgpuHostLaunch* launch) {
    Params params{};
    std::memcpy(&params, launch->params,
                std::min<std::size_t>(sizeof(params), launch->param_bytes));
    return params;
}

}  // namespace

void host_gemm(const SimgpuHostLaunch* launch) {
    const auto p = read_params<GemmParams>(launch);
    Work work(launch);
    if (p.element == Element::Double) {
        gemm_all<double>(work, p);
    } else {
        gemm_all<float>(work, p);
    }
}

void host_matrix(const SimgpuHostLaunch* launch) {
    const auto p = read_params<MatrixParams>(launch);
    Work work(launch);
    p.element == Element::Float ? matrix<float>(work, p) : matrix<double>(work, p);
}

void host_vector(const SimgpuHostLaunch* launch) {
    const auto p = read_params<VectorParams>(launch);
    Work work(launch);
    p.element == Element::Float ? vector<float>(work, p) : vector<double>(work, p);
}

}  // namespace libswap::simgpu::cublas
