// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "cost/policies/pager.hpp"
#include "cost/replay.hpp"

namespace libswap::cost {

/// What every rival works on.
struct RivalInput {
    const UseTable& table;
    const Machine& machine;
    std::uint64_t budget_bytes = 0;
    bool whole_tensors = false;  ///< PlanRequest's

    const Workload& workload() const { return table.workload(); }
    std::uint64_t bytes(TensorIndex t) const { return workload().tensors()[t].bytes; }
    /// What a policy of pages evicts by.
    std::uint64_t page_bytes(std::uint64_t source_bytes) const {
        return whole_tensors ? kWholeTensor : source_bytes;
    }
    /// Time of one copy with the other direction idle. Unit us.
    double copy_us(Direction d, TensorIndex t) const {
        return machine.link.transfer_us(d, bytes(t), false);
    }
};

/// A rival's plan, replayed.
struct RivalPlan {
    Plan plan;
    ReplayResult predicted;
    std::string note;
};
using RivalResult = tl::expected<RivalPlan, PlanError>;

/// Advice as a plan by the pager, replayed.
RivalResult run_advice(const RivalInput& input, const Advice& advice, PagerOptions options,
                       std::string note);

/// Replays a plan.
RivalResult run_plan(const RivalInput& input, Plan plan, std::string note);

/// Keeps the faster of two.
void keep_faster(std::optional<RivalPlan>& best, RivalResult candidate);

/// Demand paging of whole tensors, no advice.
RivalResult demand_paging(const RivalInput& input, VictimOrder order);

/// What a system without a plan that fits falls back on: `lru`, with the reason in the note.
RivalResult fall_back(const RivalInput& input, const std::string& why);

}  // namespace libswap::cost
