// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>

#include "cost/machine.hpp"
#include "cost/planner.hpp"
#include "cost/workload.hpp"

namespace libswap {

/// A plan of the engine with all that it was made of (LIBSWAP_PLAN), so that others can judge it:
/// one JSON object with budget_bytes, predicted_us, and as `workload`, `plan` and `machine` what
/// swapctl and the referee read. Sizes are bytes. @thread any
std::string plan_dump(const cost::Workload& workload, const cost::Machine& machine,
                      std::uint64_t budget_bytes, const cost::PlanResult& made);

/// Writes it to a file, in place of what was there. Says so in the log where that fails.
void write_plan_dump(const std::string& path, const std::string& text);

}  // namespace libswap
