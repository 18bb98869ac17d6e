// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What should leave, as a fluid: which tensor an amount belongs to is forgotten, but for the slots
// of the iteration in which its content is written and its gaps begin and end. A gap's amount
// leaves dirty (d: it has to be copied) or clean (c: an earlier gap's copy is still good), with
//
//   c of gap i <= sum of d of the gaps before it,   sum of all d <= bytes          per content
//
// and per slot s, going round the iteration:
//
//   waiting[s] - early[s] = waiting[s-1] - early[s-1] + d begun in s - out[s]      link out
//   ahead[s]  = ahead[s-1] + in[s] - needed in s                                   link in
//   absent[s] = absent[s-1] + (c + d) begun in s-1 - (waiting[s-1] - waiting[s-2]) - in[s]
//   absent[s] >= need[s] - budget                                                  memory
//   early[s]  <= d of contents written by s whose gaps begin after s               copies in
//   advance time of (in[s], out[s]) on the link <= compute[s] + stall[s]
//
// The sum of the stalls is least. As a lower bound, memory counts at one operation per slot only,
// that which the slot begins with, what comes in during a slot takes memory from the next one on,
// and latencies take nothing: then every plan's steady iteration is a solution. The link's time
// with both rates (alone, both ways) is the greater of two linear forms, so it is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// How the iteration is cut into slots of equal weight: the weight of an operation is a mix of its
/// time, the bytes that begin or end to lie idle at it, and one. Shares of the whole each.
struct SlotWeights {
    double time = 0.2;
    double bytes = 1;
    double operations = 0;
};

struct FluidOptions {
    std::uint64_t budget_bytes = 0;
    std::size_t slots = 48;
    /// Of what begins or ends to lie idle inside a slot: the share that is taken as not away there.
    double caution = 0.5;
    std::uint64_t chunk_bytes = std::uint64_t{16} << 20;  ///< that pays the link's latency once
    bool copies_in_advance = true;
    /// What moves takes memory in all of the slot in which it moves, and is there before the slot
    /// that needs it. Matters where slots are few operations.
    bool strict = false;
    SlotWeights weights{};
    /// Memory counts at one operation per slot exactly, that which needs most, as for a bound, with
    /// this much and what comes in per us of its time kept free there. `caution` is not read.
    bool exact = false;
    std::uint64_t headroom_bytes = 0;
    double headroom_per_us = 0;
    /// Contents that are one to the program leave the largest first, so that there are fewer
    /// transfers, not the longest gaps.
    bool largest_first = false;
    /// `caution` and `chunk_bytes` are not read, and only `iteration_us` is for use.
    bool lower_bound = false;
};

struct FluidResult {
    /// Bytes to leave, per gap; empty where the program has no solution. They relieve the slots,
    /// not each operation: select_gaps adds what is missing.
    std::vector<std::uint64_t> away;
    /// Bytes copied in advance and still here, while each operation runs.
    std::vector<std::uint64_t> early;
    double iteration_us = 0;  ///< by the program
    /// Per operation: what is evicted behind it limits the iteration, not what is fetched for it.
    std::vector<bool> evictions_limit;
    /// Of what begins or ends to lie idle, the share at operations where the link limits, one
    /// direction or the other.
    double limited_share = 0;
};

FluidResult solve_fluid(const Workload& workload, const Machine& machine, const GapTable& table,
                        std::span<const double> op_start_us, const FluidOptions& options);

}  // namespace libswap::cost
