// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

namespace libswap::cost {

/// Rows are read in vectors of so many numbers.
inline constexpr std::size_t kCholeskyLanes = 8;

/// Factors the symmetric matrix whose upper triangle is in `a` (row after row, `stride` apart) into
/// U' * U, in its place. What is below the diagonal is not read, and may change. Rows must be
/// filled up with zeros to a multiple of kCholeskyLanes. False if it is not positive definite.
bool cholesky(double* a, std::size_t rows, std::size_t stride);

/// The same for a matrix of a few rows, one after the other.
bool small_cholesky(double* a, std::size_t rows);

/// Solves U' * U * x = b, in place of b.
void solve_cholesky(const double* a, std::size_t rows, std::size_t stride, double* b);

}  // namespace libswap::cost
