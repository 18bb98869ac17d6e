// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct SelectionOptions {
    std::uint64_t budget_bytes = 0;
    /// Of the budget, to be kept for what is on its way, where operations leave so much.
    std::uint64_t headroom_bytes = 0;
    /// Likewise, for what comes in while an operation runs: bytes per us of its time.
    double headroom_per_us = 0;
    std::uint64_t host_limit_bytes = UINT64_MAX;
    bool whole_tensors = false;
    std::uint64_t part_bytes = 1;
    /// Amounts to begin with, per gap; empty: none. Whole tensors are made of them where asked for.
    std::span<const std::uint64_t> begin_with;
    /// Take first, operation by operation where memory is over budget, what lies idle there and is
    /// used furthest in the future (Belady's rule).
    bool furthest_next_use = false;
    std::uint64_t furthest_least_bytes = 0;  ///< of smaller tensors only what is left to relieve
    /// Give back what memory turns out to have room for: less to move, less room to fetch ahead.
    bool trim = false;
};

/// Where a selection failed: memory of this operation could not be brought under the budget.
struct SelectionError {
    OpIndex op = 0;
    std::uint64_t over_bytes = 0;
    bool host_full = false;
};

/// Bytes that leave, per gap, so that with every fetch at its use memory fits the budget. Takes
/// where memory is most over budget the gap that relieves most for the link time it costs.
tl::expected<std::vector<std::uint64_t>, SelectionError> select_gaps(
    const Workload& workload, const Machine& machine, const GapTable& table,
    std::span<const double> op_start_us, const SelectionOptions& options);

}  // namespace libswap::cost
