// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace libswap::cost {

/// minimise sum cost * x, subject to rows sum coefficient * x = right side and 0 <= x <= limit.
///
/// Meant for hundreds of rows that any column may have, and thousands of columns. Rows that only
/// few columns share can be put into groups, as many as wanted: they cost next to nothing.
class LinearProgram {
  public:
    static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
    using Row = std::uint32_t;
    using Terms = std::vector<std::pair<Row, double>>;

    explicit LinearProgram(std::size_t rows) : rows_(rows), right_(rows, 0.0) {}

    /// Adds `count` rows and returns the first. A column may have rows of one group at most.
    Row add_group(std::size_t count);
    void set_right(Row row, double value) { right_[row] = value; }
    /// A column; terms are (row, coefficient), several of one row add up.
    std::uint32_t add_column(double cost, double limit, const Terms& terms);

    struct Solution {
        std::vector<double> values;  ///< per column; empty if it does not converge
        std::vector<double> prices;  ///< per row: what more of its right side adds to the cost
    };
    /// Interior point method (Mehrotra's predictor and corrector), to a relative gap of about
    /// `tolerance`.
    Solution solve(double tolerance = 1e-5, int most_steps = 50) const;

  private:
    friend class InteriorPoint;
    friend class NormalMatrix;
    struct Term {
        Row row;
        double value;
    };

    std::size_t rows_;                      ///< without those of the groups
    std::vector<double> right_;             ///< of all rows
    std::vector<std::uint32_t> group_end_;  ///< the rows of group g begin where those of g - 1 end
    std::vector<double> cost_;
    std::vector<double> limit_;
    std::vector<std::uint32_t> ends_;
    std::vector<Term> terms_;
};

}  // namespace libswap::cost
