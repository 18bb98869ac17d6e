// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/cholesky.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace libswap::cost {
namespace {

/// Positive definite, no two entries alike.
double entry(std::size_t r, std::size_t c, std::size_t rows) {
    const auto i = static_cast<double>(r);
    const auto j = static_cast<double>(c);
    return 1 / (1 + i + j) + (r == c ? static_cast<double>(rows) : 0);
}

std::size_t filled(std::size_t rows) {
    return (rows + kCholeskyLanes - 1) / kCholeskyLanes * kCholeskyLanes;
}

std::vector<double> upper(std::size_t rows, std::size_t stride) {
    std::vector<double> a(rows * stride);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = r; c < rows; ++c) a[r * stride + c] = entry(r, c, rows);
    }
    return a;
}

TEST(Cholesky, SolvesWhatItHasFactored) {
    for (const std::size_t rows : {1U, 4U, 8U, 12U, 20U, 36U, 61U, 92U, 200U}) {
        const std::size_t stride = filled(rows) + kCholeskyLanes;
        std::vector<double> a = upper(rows, stride);
        ASSERT_TRUE(cholesky(a.data(), rows, stride)) << rows;
        std::vector<double> b(rows);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < rows; ++c) {
                b[r] += entry(r, c, rows) * static_cast<double>(c % 7);
            }
        }
        solve_cholesky(a.data(), rows, stride, b.data());
        for (std::size_t r = 0; r < rows; ++r) {
            EXPECT_NEAR(b[r], static_cast<double>(r % 7), 1e-10) << rows;
        }
    }
}

TEST(Cholesky, GivesTheSameForFewRows) {
    for (const std::size_t rows : {1U, 2U, 7U, 12U}) {
        const std::size_t stride = filled(rows);
        std::vector<double> wide = upper(rows, stride);
        std::vector<double> close = upper(rows, rows);
        ASSERT_TRUE(cholesky(wide.data(), rows, stride));
        ASSERT_TRUE(small_cholesky(close.data(), rows));
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = r; c < rows; ++c) {
                EXPECT_NEAR(wide[r * stride + c], close[r * rows + c], 1e-12);
            }
        }
    }
}

TEST(Cholesky, RefusesWhatIsNotPositiveDefinite) {
    std::vector<double> a = upper(40, 40);
    a[33 * 40 + 33] = -1;
    EXPECT_FALSE(cholesky(a.data(), 40, 40));
}

}  // namespace
}  // namespace libswap::cost
