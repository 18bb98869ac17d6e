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
    std::uint64_t units = 4;                   ///< of a part: it may be fetched in so many pieces
    bool fine = false;                         ///< more rounds: nine, not five
    /// Bytes to have copied in advance while each operation runs; empty: none.
    std::span<const std::uint64_t> early_bytes{};
};

struct Schedule {
    Plan plan;
    /// The same with the fetches in the order of the operations at which they were decided, where
    /// over the end of the iteration the last round has others than the one before. Now and then
    /// better.
    Plan by_place;
    /// The iteration as it was in the last round: what a replay of the plan gives, or nearly so.
    double last_round_us = 0;
};

/// Turns what leaves in which gap into a plan: evictions at once after the last use (the forward
/// search), fetches at their use and then earlier, where the link would idle and memory has room
/// (the backward search). Copies in advance go where the link to the host idles. It is built while
/// a replay runs, so that what is decided at an operation knows the links' queues there; each round
/// of the iteration looks further ahead.
///
/// With U[k] the memory at operation k, every issued eviction counted as gone and every issued
/// fetch as present, U never exceeds the budget, which is what makes a plan executable. The amounts
/// must leave it so with all fetches at their use.
///
/// `away_bytes`: per gap of `table`.
Schedule schedule(const Workload& workload, const Machine& machine, const GapTable& table,
                  std::span<const std::uint64_t> away_bytes, const ScheduleOptions& options);

}  // namespace libswap::cost
