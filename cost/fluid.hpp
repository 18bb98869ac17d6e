// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What should leave, as a fluid: which tensor an amount belongs to is forgotten, but for the slots
// of the iteration that its gap begins and ends in. Per slot s, in bytes:
//
//   waiting[s] = waiting[s-1] + evicted dirty in s - out[s]         for the link to the host
//   ahead[s]   = ahead[s-1] + in[s] - needed in s                   fetched before its use
//   need[s] - away over all of s + waiting[s-1] + ahead[s] <= budget
//   waiting[s] + ahead[s] <= what left by s and is needed after s
//   time of (in[s], out[s]) on the link <= compute[s] + stall[s]
//
// all of it going round the iteration, and the sum of the stalls is least. The link's time with
// both rates (alone, both ways) is the greater of two linear forms, so it is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct FluidOptions {
    std::uint64_t budget_bytes = 0;
    std::size_t slots = 48;
    /// Of what begins or ends to lie idle inside a slot: the share that is taken as not away there.
    double caution = 0.5;
    std::uint64_t chunk_bytes = std::uint64_t{16} << 20;  ///< that pays the link's latency once
};

/// Bytes to leave, per gap; empty where the program has no solution. They relieve the slots, not
/// each operation: select_gaps adds what is missing.
std::vector<std::uint64_t> fluid_amounts(const Workload& workload, const Machine& machine,
                                         const GapTable& table, std::span<const double> op_start_us,
                                         const FluidOptions& options);

}  // namespace libswap::cost
