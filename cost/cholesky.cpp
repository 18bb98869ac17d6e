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

#define LIBSWAP_INLINE inline __attribute__((always_inline))

template <typename Vector>
LIBSWAP_INLINE void load(const double* from, Vector& to) {
    std::memcpy(&to, from, sizeof to);
}

/// Of a panel of kRows rows that begins at row and column `first`: kWide vectors of columns at
/// `column`, right of the block on the diagonal. They stay in registers while all rows above pass.
template <typename Vector, std::size_t kRows, std::size_t kWide>
LIBSWAP_INLINE void finish_columns(double* a, std::size_t stride, std::size_t first,
                                   std::size_t column, const double* inverse) {
    constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double);
    Vector sums[kRows][kWide];
    double* panel = a + first * stride;
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t w = 0; w < kWide; ++w) {
            load(panel + r * stride + column + w * kLanes, sums[r][w]);
        }
    }
    for (const double* above = a; above < panel; above += stride) {
        Vector b[kWide];
        for (std::size_t w = 0; w < kWide; ++w) load(above + column + w * kLanes, b[w]);
        for (std::size_t r = 0; r < kRows; ++r) {
            const double factor = above[first + r];
            for (std::size_t w = 0; w < kWide; ++w) sums[r][w] -= factor * b[w];
        }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t w = 0; w < kWide; ++w) {
            for (std::size_t d = 0; d < r; ++d) {
                sums[r][w] -= panel[d * stride + first + r] * sums[d][w];
            }
            sums[r][w] *= inverse[r];
            std::memcpy(panel + r * stride + column + w * kLanes, &sums[r][w], sizeof(Vector));
        }
    }
}

/// The block on the diagonal. False if it is not positive definite.
template <std::size_t kRows>
LIBSWAP_INLINE bool factor_block(double* a, std::size_t stride, std::size_t first,
                                 double* inverse) {
    double block[kRows][kRows];
    double* panel = a + first * stride + first;
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t c = 0; c < kRows; ++c) block[r][c] = panel[r * stride + c];
    }
    for (const double* above = a + first; above < panel; above += stride) {
        for (std::size_t r = 0; r < kRows; ++r) {
            for (std::size_t c = 0; c < kRows; ++c) block[r][c] -= above[r] * above[c];
        }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t d = 0; d < r; ++d) {
            for (std::size_t c = r; c < kRows; ++c) block[r][c] -= block[d][r] * block[d][c];
        }
        if (!(block[r][r] > 0)) return false;
        inverse[r] = 1 / std::sqrt(block[r][r]);
        for (std::size_t c = r; c < kRows; ++c) {
            block[r][c] *= inverse[r];
            panel[r * stride + c] = block[r][c];
        }
    }
    return true;
}

/// Panel of rows by panel of rows, each from what is above it.
template <typename Vector, std::size_t kRows, std::size_t kWide>
LIBSWAP_INLINE bool factor(double* a, std::size_t rows, std::size_t stride) {
    constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double);
    static_assert(kRows % kLanes == 0);
    const std::size_t columns = (rows + kLanes - 1) / kLanes * kLanes;
    double inverse[kRows];
    std::size_t i = 0;
    for (; i + kRows <= rows; i += kRows) {
        if (!factor_block<kRows>(a, stride, i, inverse)) return false;
        std::size_t c = i + kRows;
        for (; c + kWide * kLanes <= columns; c += kWide * kLanes) {
            finish_columns<Vector, kRows, kWide>(a, stride, i, c, inverse);
        }
        for (; c < columns; c += kLanes) {
            finish_columns<Vector, kRows, 1>(a, stride, i, c, inverse);
        }
    }
    for (; i < rows; ++i) {
        if (!factor_block<1>(a, stride, i, inverse)) return false;
        for (std::size_t c = i + 1; c < rows; ++c) {
            double sum = a[i * stride + c];
            for (std::size_t k = 0; k < i; ++k) sum -= a[k * stride + i] * a[k * stride + c];
            a[i * stride + c] = sum * inverse[0];
        }
    }
    return true;
}

template <typename Vector>
LIBSWAP_INLINE void solve(const double* a, std::size_t rows, std::size_t stride, double* b) {
    constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double);
    for (std::size_t i = 0; i < rows; ++i) {
        const double* row = a + i * stride;
        const double value = b[i] / row[i];
        b[i] = value;
        std::size_t c = i + 1;
        for (; c + kLanes <= rows; c += kLanes) {
            Vector l;
            Vector r;
            load(row + c, l);
            load(b + c, r);
            r -= l * value;
            std::memcpy(b + c, &r, sizeof r);
        }
        for (; c < rows; ++c) b[c] -= row[c] * value;
    }
    for (std::size_t i = rows; i-- > 0;) {
        const double* row = a + i * stride;
        Vector sums[2] = {};
        std::size_t c = i + 1;
        for (; c + 2 * kLanes <= rows; c += 2 * kLanes) {
            Vector l[2];
            Vector r[2];
            for (std::size_t k = 0; k < 2; ++k) {
                load(row + c + k * kLanes, l[k]);
                load(b + c + k * kLanes, r[k]);
                sums[k] += l[k] * r[k];
            }
        }
        double value = b[i];
        for (; c < rows; ++c) value -= row[c] * b[c];
        for (std::size_t k = 0; k < kLanes; ++k) value -= sums[0][k] + sums[1][k];
        b[i] = value / row[i];
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) bool factor_avx2(double* a, std::size_t rows,
                                                     std::size_t stride) {
    return factor<Four, 4, 3>(a, rows, stride);
}
__attribute__((target("avx512f"))) bool factor_avx512(double* a, std::size_t rows,
                                                      std::size_t stride) {
    return factor<Eight, 8, 3>(a, rows, stride);
}
__attribute__((target("avx2,fma"))) void solve_avx2(const double* a, std::size_t rows,
                                                    std::size_t stride, double* b) {
    solve<Four>(a, rows, stride, b);
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

bool small_cholesky(double* a, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t c = i; c < rows; ++c) {
            double sum = a[i * rows + c];
            for (std::size_t k = 0; k < i; ++k) sum -= a[k * rows + i] * a[k * rows + c];
            if (c > i) {
                a[i * rows + c] = sum / a[i * rows + i];
            } else if (sum > 0) {
                a[i * rows + i] = std::sqrt(sum);
            } else {
                return false;
            }
        }
    }
    return true;
}

bool cholesky(double* a, std::size_t rows, std::size_t stride) {
#if defined(__x86_64__)
    if (has_avx512()) return factor_avx512(a, rows, stride);
    if (has_avx2()) return factor_avx2(a, rows, stride);
#endif
    return factor<Four, 4, 1>(a, rows, stride);
}

void solve_cholesky(const double* a, std::size_t rows, std::size_t stride, double* b) {
#if defined(__x86_64__)
    if (has_avx2()) return solve_avx2(a, rows, stride, b);
#endif
    solve<Four>(a, rows, stride, b);
}

}  // namespace libswap::cost
