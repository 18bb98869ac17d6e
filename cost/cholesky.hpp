// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

namespace libswap::cost {

/// Factors the symmetric matrix whose lower triangle is in `a` (row after row, `stride` apart) into
/// L * L', in its place. False if it is not positive definite.
bool cholesky(double* a, std::size_t rows, std::size_t stride);

/// Solves L * L' * x = b, in place of b.
void solve_cholesky(const double* a, std::size_t rows, std::size_t stride, double* b);

}  // namespace libswap::cost
