// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What should leave where the link limits the iteration from end to end: then a byte that moves
// costs the link's time wherever it does, and it need not be known when the link is free. With a
// price for the link in place of its time, memory can be exact at every operation, where the fluid
// has it at one per slot:
//
//   minimise sum over gaps of (c + d) * fetch price where it is used + d * evict price where it
//   begins, so that at each operation the amounts of the gaps over it add up to what memory is over
//
// with c and d as content_class.hpp has them. Rows are added for the operations that a solution
// leaves over, until there are none: a covering problem, by constraint generation (Dantzig,
// Fulkerson and Johnson, 1954). The prices are those of the fluid's link, one direction or the
// other being the limit (LinkForms).
#pragma once

#include <cstdint>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct CoveringOptions {
    std::uint64_t budget_bytes = 0;
    /// Of the budget, kept free for what is on its way, where operations leave so much.
    std::uint64_t headroom_bytes = 0;
};

/// Bytes to leave, per gap; empty where there is no solution. `evictions_limit`: per operation, as
/// in FluidResult. What rounding to whole tensors, or too few rows, leave over is for select_gaps
/// to add.
std::vector<std::uint64_t> cover(const Workload& workload, const Machine& machine,
                                 const GapTable& table, const std::vector<bool>& evictions_limit,
                                 const CoveringOptions& options);

}  // namespace libswap::cost
