// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// Which fetches of a plan cannot be late, by a replay of it. Per action: of a fetch behind which
/// operations wait if it comes more than `slack_us` later, the operation that was running or next
/// when it took its memory; what later operations take comes after it. kNoOperation of all others,
/// and where the plan cannot be executed.
///
/// A fetch holds up those behind it: its slack is the least of the time from its arrival to its
/// use, and of the next fetch's slack and the time that the link idles between the two.
/// @thread any
std::vector<OpIndex> critical_claims(const Workload& workload, const Machine& machine,
                                     std::uint64_t budget_bytes, const Plan& plan, double slack_us);

}  // namespace libswap::cost
