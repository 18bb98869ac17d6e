// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/linear_program.hpp"

namespace libswap::cost {

/// The rows of a linear program by which memory fits at single operations. They are in differences,
/// each from the one before, but for the first, which has all of it: a gap is in three of them at
/// most, however many operations it spans.
class MemoryRows {
  public:
    /// `ops`: of the iteration.
    explicit MemoryRows(OpIndex ops) : ops_(ops) {}

    std::size_t size() const { return at_.size(); }

    /// Adds the operation that is most over, of each stretch that is over by `least` or more.
    /// `over`: per operation. False if there is none.
    bool add_worst(std::span<const double> over, double least);

    /// The rows that a gap is over, counted on past the end.
    struct Span {
        OpIndex first = 0;
        OpIndex end = 0;
        auto operator<=>(const Span&) const = default;
    };
    Span span_of(const Gap& gap) const;

    /// Adds the right sides from row 0 of the program on, from what has to leave at each operation,
    /// and the columns of what leaves beyond that, and of what is short at that cost. Units are the
    /// program's.
    void add_to(LinearProgram& lp, std::span<const double> need, double short_cost) const;
    /// Of a column that leaves in the rows of a span.
    void add_terms(LinearProgram::Terms& terms, Span span) const;

  private:
    OpIndex row_of(OpIndex op) const;

    OpIndex ops_;
    std::vector<OpIndex> at_;  ///< operations, ascending
};

/// What is over at each operation: `need`, what has to leave there, less what does. Unit bytes.
std::vector<double> over_by(const GapTable& table, std::span<const std::uint64_t> away,
                            std::span<const double> need);

}  // namespace libswap::cost
