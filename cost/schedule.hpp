// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct ScheduleOptions {
    std::uint64_t budget_bytes = 0;
    std::uint64_t chunk_bytes = kWholeTensor;  ///< parts are about this big
    std::uint64_t part_bytes = 1;              ///< and a multiple of this
};

/// Turns what leaves in which gap into a plan: evictions at once after the last use (the forward
/// search), fetches at their use and then earlier, where the link would idle and memory has room
/// (the backward search).
///
/// With U[k] the memory at operation k, every issued eviction counted as gone and every issued
/// fetch as present, U never exceeds the budget, which is what makes a plan executable. The amounts
/// must leave it so with all fetches at their use.
///
/// `away_bytes`: per gap of `table`. `op_start_us`: when each operation begins, and the end of the
/// last.
Plan schedule(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const std::uint64_t> away_bytes, std::span<const double> op_start_us,
              const ScheduleOptions& options);

}  // namespace libswap::cost
