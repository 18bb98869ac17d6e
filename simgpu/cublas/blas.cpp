// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/blas.hpp"

#include <cblas.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "simgpu/cublas/halves.hpp"
#include "simgpu/cublas/log.hpp"

namespace libswap::simgpu::cublas::blas {
namespace {

// OpenBLAS is opened when work comes, not linked: the stand-in is preloaded into programs that may
// never use it, and its names must not get in the way of a BLAS of the program's own.
#define SIMGPU_BLAS_FUNCTIONS(X) \
    X(gemm) X(gemv) X(ger) X(axpy) X(scal) X(copy) X(swap) X(dot) X(nrm2) X(asum)

struct Functions {
#define SIMGPU_BLAS_MEMBER(name)                  \
    decltype(&::cblas_s##name) s##name = nullptr; \
    decltype(&::cblas_d##name) d##name = nullptr;
    SIMGPU_BLAS_FUNCTIONS(SIMGPU_BLAS_MEMBER)
#undef SIMGPU_BLAS_MEMBER
    decltype(&::cblas_isamax) isamax = nullptr;
    decltype(&::cblas_idamax) idamax = nullptr;
};

Functions g_functions;

bool resolve() {
    void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        say("no libopenblas.so.0: nothing can be computed (package libopenblas0)");
        return false;
    }
    bool complete = true;
    auto find = [&](const std::string& name, auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            ::dlsym(library, name.c_str()));
        complete = complete && function != nullptr;
    };
#define SIMGPU_BLAS_FIND(name)                  \
    find("cblas_s" #name, g_functions.s##name); \
    find("cblas_d" #name, g_functions.d##name);
    SIMGPU_BLAS_FUNCTIONS(SIMGPU_BLAS_FIND)
#undef SIMGPU_BLAS_FIND
    find("cblas_isamax", g_functions.isamax);
    find("cblas_idamax", g_functions.idamax);
    // Its own threads spin while they wait, and cut the work by what is free: the cut is made here
    // instead.
    auto set_threads =
        reinterpret_cast<void (*)(int)>(::dlsym(library, "openblas_set_num_threads"));
    if (!complete || set_threads == nullptr) {
        say("libopenblas.so.0 lacks functions: nothing can be computed");
        return false;
    }
    set_threads(1);
    return true;
}

#define SIMGPU_BLAS_PICK(name)                    \
    template <typename T>                         \
    auto name##_function() {                      \
        if constexpr (std::is_same_v<T, float>) { \
            return g_functions.s##name;           \
        } else {                                  \
            return g_functions.d##name;           \
        }                                         \
    }
SIMGPU_BLAS_FUNCTIONS(SIMGPU_BLAS_PICK)
#undef SIMGPU_BLAS_PICK

blasint narrow(std::int64_t value) { return static_cast<blasint>(value); }

template <typename T>
void gemm_part(const Gemm<T>& g, std::int64_t row, std::int64_t rows, std::int64_t column,
               std::int64_t columns) {
    if (rows <= 0 || columns <= 0) {
        return;
    }
    const T* a = g.a + (g.transpose_a ? row * g.lda : row);
    const T* b = g.b + (g.transpose_b ? column : column * g.ldb);
    gemm_function<T>()(CblasColMajor, g.transpose_a ? CblasTrans : CblasNoTrans,
                       g.transpose_b ? CblasTrans : CblasNoTrans, narrow(rows), narrow(columns),
                       narrow(g.k), g.alpha, a, narrow(g.lda), b, narrow(g.ldb), g.beta,
                       g.c + row + column * g.ldc, narrow(g.ldc));
}

}  // namespace

bool load() {
    static const bool loaded = resolve();
    return loaded;
}

template <typename T>
void gemm(const Gemm<T>& g) {
    // A multiple of what its kernels take at a time.
    constexpr std::int64_t kUnit = 32;
    const bool by_rows = g.m >= g.n;
    const std::int64_t whole = by_rows ? g.m : g.n;
    const std::int64_t half = whole >= 2 * kUnit ? whole / 2 / kUnit * kUnit : whole;
    const double flops =
        2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    auto part = [&](bool second) {
        const std::int64_t begin = second ? half : 0;
        const std::int64_t count = second ? whole - half : half;
        by_rows ? gemm_part(g, begin, count, 0, g.n) : gemm_part(g, 0, g.m, begin, count);
    };
    constexpr double kWorthTwoThreads = 2e6;
    in_halves(part, flops >= kWorthTwoThreads);
}

template <typename T>
void gemv(bool transpose, std::int64_t m, std::int64_t n, T alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, T beta, T* y, std::int64_t incy) {
    gemv_function<T>()(CblasColMajor, transpose ? CblasTrans : CblasNoTrans, narrow(m), narrow(n),
                       alpha, a, narrow(lda), x, narrow(incx), beta, y, narrow(incy));
}

template <typename T>
void ger(std::int64_t m, std::int64_t n, T alpha, const T* x, std::int64_t incx, const T* y,
         std::int64_t incy, T* a, std::int64_t lda) {
    ger_function<T>()(CblasColMajor, narrow(m), narrow(n), alpha, x, narrow(incx), y, narrow(incy),
                      a, narrow(lda));
}

template <typename T>
void axpy(std::int64_t n, T alpha, const T* x, std::int64_t incx, T* y, std::int64_t incy) {
    axpy_function<T>()(narrow(n), alpha, x, narrow(incx), y, narrow(incy));
}

template <typename T>
void scal(std::int64_t n, T alpha, T* x, std::int64_t incx) {
    scal_function<T>()(narrow(n), alpha, x, narrow(incx));
}

template <typename T>
void copy(std::int64_t n, const T* x, std::int64_t incx, T* y, std::int64_t incy) {
    copy_function<T>()(narrow(n), x, narrow(incx), y, narrow(incy));
}

template <typename T>
void swap(std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy) {
    swap_function<T>()(narrow(n), x, narrow(incx), y, narrow(incy));
}

template <typename T>
T dot(std::int64_t n, const T* x, std::int64_t incx, const T* y, std::int64_t incy) {
    return dot_function<T>()(narrow(n), x, narrow(incx), y, narrow(incy));
}

template <typename T>
T nrm2(std::int64_t n, const T* x, std::int64_t incx) {
    return nrm2_function<T>()(narrow(n), x, narrow(incx));
}

template <typename T>
T asum(std::int64_t n, const T* x, std::int64_t incx) {
    return asum_function<T>()(narrow(n), x, narrow(incx));
}

template <typename T>
std::int64_t amax(std::int64_t n, const T* x, std::int64_t incx) {
    if constexpr (std::is_same_v<T, float>) {
        return static_cast<std::int64_t>(g_functions.isamax(narrow(n), x, narrow(incx)));
    } else {
        return static_cast<std::int64_t>(g_functions.idamax(narrow(n), x, narrow(incx)));
    }
}

#define SIMGPU_BLAS_INSTANTIATE(T)                                                               \
    template void gemm<T>(const Gemm<T>&);                                                       \
    template void gemv<T>(bool, std::int64_t, std::int64_t, T, const T*, std::int64_t, const T*, \
                          std::int64_t, T, T*, std::int64_t);                                    \
    template void ger<T>(std::int64_t, std::int64_t, T, const T*, std::int64_t, const T*,        \
                         std::int64_t, T*, std::int64_t);                                        \
    template void axpy<T>(std::int64_t, T, const T*, std::int64_t, T*, std::int64_t);            \
    template void scal<T>(std::int64_t, T, T*, std::int64_t);                                    \
    template void copy<T>(std::int64_t, const T*, std::int64_t, T*, std::int64_t);               \
    template void swap<T>(std::int64_t, T*, std::int64_t, T*, std::int64_t);                     \
    template T dot<T>(std::int64_t, const T*, std::int64_t, const T*, std::int64_t);             \
    template T nrm2<T>(std::int64_t, const T*, std::int64_t);                                    \
    template T asum<T>(std::int64_t, const T*, std::int64_t);                                    \
    template std::int64_t amax<T>(std::int64_t, const T*, std::int64_t);
SIMGPU_BLAS_INSTANTIATE(float)
SIMGPU_BLAS_INSTANTIATE(double)
#undef SIMGPU_BLAS_INSTANTIATE

}  // namespace libswap::simgpu::cublas::blas
