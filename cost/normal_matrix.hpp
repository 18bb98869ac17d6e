// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "cost/linear_program.hpp"

namespace libswap::cost {

/// A * diag(weight) * A' of a linear program's rows A, factored. The rows of each group are
/// eliminated first, each group by itself, as no column has rows of two; what remains is dense:
///
///   | D1        E1' |   group g: Dg = Lg Lg', Fg = Lg^-1 Eg', and the rest loses Fg' Fg
///   |     D2    E2' |
///   | E1  E2    G   |
class NormalMatrix {
  public:
    explicit NormalMatrix(const LinearProgram& lp);

    /// False if it is not positive definite.
    bool factorise(const std::vector<double>& weight);
    /// The solution, in place.
    void solve(std::vector<double>& b) const;

  private:
    struct Group {
        std::uint32_t first = 0;           ///< row
        std::uint32_t count = 0;           ///< rows
        std::vector<std::uint32_t> outer;  ///< rows outside that its columns have
        std::vector<double> inner_matrix;  ///< count x count, upper triangle
        std::vector<double> mixed_matrix;  ///< count x outer.size()
    };

    /// Of lines of the cache, an odd number: the rows of a column do not get in each other's way.
    struct alignas(64) Line {
        double values[8];
    };
    double* rest(std::size_t row) { return rest_.data()->values + row * stride_; }

    void assemble(const std::vector<double>& weight);
    bool eliminate(Group& group);

    const LinearProgram& lp_;
    std::size_t m_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> group_of_;  ///< per column, or kNone
    std::vector<std::uint32_t> place_;  ///< per term: index among the group's rows, or in `outer`
    std::size_t stride_;
    std::vector<Line> rest_;  ///< m x m, upper triangle
};

}  // namespace libswap::cost
