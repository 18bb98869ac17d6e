// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/linear_program.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// Bytes of one unit of an amount in a linear program.
inline constexpr double kGb = 1e9;

/// What leaves in a gap, in a linear program.
struct GapColumn {
    LinearProgram::Terms terms;
    LinearProgram::Terms dirty_terms;  ///< besides, of what has to be copied out
    double cost = 0;
    double dirty_cost = 0;  ///< of what has to be copied out, instead
};

/// Contents that are one to a linear program, since their gaps have the same place in it. A gap's
/// amount leaves dirty (d: it has to be copied) or clean (c: an earlier gap's copy is still good),
///
///   c of gap i <= sum of d of the gaps before it,   sum of all d <= bytes
///
/// or, where the host has the content from the start, all of it clean.
struct ContentClass {
    bool clean = false;
    double bytes = 0;                                 ///< of all of them
    std::vector<std::vector<std::uint32_t>> members;  ///< the gaps of each, as in the table

    void add(std::vector<std::uint32_t> gaps, double content_bytes) {
        bytes += content_bytes;
        members.push_back(std::move(gaps));
    }

    /// `gaps`: in their order. Amounts are in kGb.
    void add_columns(LinearProgram& lp, std::span<const GapColumn> gaps);

    /// Shares a solution out, into bytes per gap: each member in turn takes all that is left for
    /// its gaps. What is next to nothing or next to all is rounded to that: parts cost latency.
    void distribute(std::span<const double> values, const std::vector<Tensor>& tensors,
                    const GapTable& table, std::vector<std::uint64_t>& away) const;

  private:
    std::vector<std::uint32_t> columns_;  ///< of each gap: dirty (if not clean), then clean
};

}  // namespace libswap::cost
