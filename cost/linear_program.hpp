// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace libswap::cost {

/// minimise sum cost * x, subject to rows sum coefficient * x = right side and 0 <= x <= limit.
/// Meant for few rows (hundreds) and many columns (thousands).
class LinearProgram {
  public:
    static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
    using Terms = std::vector<std::pair<std::uint32_t, double>>;

    explicit LinearProgram(std::size_t rows) : right_(rows, 0.0) {}

    void set_right(std::uint32_t row, double value) { right_[row] = value; }
    /// A column; terms are (row, coefficient), several of one row add up.
    std::uint32_t add_column(double cost, double limit, const Terms& terms);

    /// Interior point method (Mehrotra's predictor and corrector), to a relative gap of about
    /// `tolerance`. Empty if it does not converge.
    std::vector<double> solve(double tolerance = 1e-5, int most_steps = 50) const;

  private:
    friend class InteriorPoint;
    struct Term {
        std::uint32_t row;
        double value;
    };

    std::vector<double> right_;
    std::vector<double> cost_;
    std::vector<double> limit_;
    std::vector<std::uint32_t> ends_;
    std::vector<Term> terms_;
};

}  // namespace libswap::cost
