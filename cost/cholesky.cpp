// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace libswap::cost {

namespace {

using Four = double __attribute__((vector_size(32)));
using Eight = double __attribute__((vector_size(64)));

constexpr std::size_t kTile = 4;

template <typename Vector>
inline __attribute__((always_inline)) double sum_of(const Vector& v) {
    double sum = 0;
    for (std::size_t k = 0; k < sizeof(Vector) / sizeof(double); ++k) sum += v[k];
    return sum;
}

/// out[r][c] = dot of rows r and c over `count`, for some rows and columns at a time: each number
/// loaded is used more than once.
template <typename Vector, std::size_t kRows, std::size_t kColumns>
inline __attribute__((always_inline)) void dots(const double* rows, const double* columns,
                                                std::size_t stride, std::size_t count,
                                                double (&out)[kRows][kColumns]) {
    constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double);
    Vector sums[kRows][kColumns] = {};
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        Vector b[kColumns];
        for (std::size_t c = 0; c < kColumns; ++c) {
            std::memcpy(&b[c], columns + c * stride + i, sizeof(Vector));
        }
        for (std::size_t r = 0; r < kRows; ++r) {
            Vector a;
            std::memcpy(&a, rows + r * stride + i, sizeof a);
            for (std::size_t c = 0; c < kColumns; ++c) sums[r][c] += a * b[c];
        }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t c = 0; c < kColumns; ++c) {
            out[r][c] = sum_of(sums[r][c]);
            for (std::size_t k = i; k < count; ++k) {
                out[r][c] += rows[r * stride + k] * columns[c * stride + k];
            }
        }
    }
}

/// Row by row of tiles, each tile from what is to its left, kRows of its rows at a time.
template <typename Vector, std::size_t kRows>
inline __attribute__((always_inline)) bool factor(double* a, std::size_t rows, std::size_t stride) {
    for (std::size_t i = 0; i < rows; i += kTile) {
        const std::size_t height = std::min(kTile, rows - i);
        for (std::size_t j = 0; j <= i; j += kTile) {
            const std::size_t width = std::min(kTile, rows - j);
            double products[kTile][kTile] = {};
            if (height == kTile && width == kTile) {
                double some[kRows][kTile];
                for (std::size_t r = 0; r < kTile; r += kRows) {
                    dots<Vector, kRows, kTile>(a + (i + r) * stride, a + j * stride, stride, j,
                                               some);
                    std::copy(&some[0][0], &some[0][0] + kRows * kTile, &products[r][0]);
                }
            } else {
                for (std::size_t r = 0; r < height; ++r) {
                    for (std::size_t c = 0; c < width; ++c) {
                        double one[1][1];
                        dots<Vector, 1, 1>(a + (i + r) * stride, a + (j + c) * stride, stride, j,
                                           one);
                        products[r][c] = one[0][0];
                    }
                }
            }
            for (std::size_t r = 0; r < height; ++r) {
                double* row = a + (i + r) * stride;
                for (std::size_t c = 0; c < width && j + c <= i + r; ++c) {
                    const double* other = a + (j + c) * stride;
                    double value = row[j + c] - products[r][c];
                    for (std::size_t k = j; k < j + c; ++k) value -= row[k] * other[k];
                    if (j + c < i + r) {
                        row[j + c] = value / other[j + c];
                    } else if (value > 0) {
                        row[j + c] = std::sqrt(value);
                    } else {
                        return false;
                    }
                }
            }
        }
    }
    return true;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) bool factor_avx2(double* a, std::size_t rows,
                                                     std::size_t stride) {
    return factor<Four, 2>(a, rows, stride);
}
__attribute__((target("avx512f"))) bool factor_avx512(double* a, std::size_t rows,
                                                      std::size_t stride) {
    return factor<Eight, kTile>(a, rows, stride);
}
bool has_avx512() {
    static const bool has = __builtin_cpu_supports("avx512f");
    return has;
}
bool has_avx2() {
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
}
#endif

}  // namespace

bool cholesky(double* a, std::size_t rows, std::size_t stride) {
#if defined(__x86_64__)
    if (rows >= 64 && has_avx512()) return factor_avx512(a, rows, stride);
    if (rows >= 32 && has_avx2()) return factor_avx2(a, rows, stride);
#endif
    return factor<Four, 2>(a, rows, stride);
}

void solve_cholesky(const double* a, std::size_t rows, std::size_t stride, double* b) {
    for (std::size_t i = 0; i < rows; ++i) {
        const double* row = a + i * stride;
        double value = b[i];
        for (std::size_t c = 0; c < i; ++c) value -= row[c] * b[c];
        b[i] = value / row[i];
    }
    for (std::size_t i = rows; i-- > 0;) {
        const double* row = a + i * stride;
        b[i] /= row[i];
        for (std::size_t c = 0; c < i; ++c) b[c] -= row[c] * b[i];
    }
}

}  // namespace libswap::cost
