// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/rival.hpp"

#include <utility>

namespace libswap::cost {

RivalResult run_plan(const RivalInput& input, Plan plan, std::string note) {
    auto replayed = replay(input.workload(), input.machine, input.budget_bytes, plan,
                           {.timeline = true, .max_iterations = 64});
    if (!replayed) {
        const ReplayError& e = replayed.error();
        return tl::unexpected(PlanError{PlanError::Reason::OperationTooBig, e.op,
                                        input.budget_bytes + e.short_bytes, e.message});
    }
    return RivalPlan{std::move(plan), std::move(*replayed), std::move(note)};
}

RivalResult run_advice(const RivalInput& input, const Advice& advice, PagerOptions options,
                       std::string note) {
    options.budget_bytes = input.budget_bytes;
    auto paged = page(input.table, advice, options);
    if (!paged) return tl::unexpected(std::move(paged.error()));
    return run_plan(input, std::move(paged->plan), std::move(note));
}

void keep_faster(std::optional<RivalPlan>& best, RivalResult candidate) {
    if (!candidate) return;
    if (best && best->predicted.iteration_us <= candidate->predicted.iteration_us) return;
    best = std::move(*candidate);
}

RivalResult demand_paging(const RivalInput& input, VictimOrder order) {
    return run_advice(input, Advice(input.workload().op_count()), {.order = order}, "");
}

RivalResult fall_back(const RivalInput& input, const std::string& why) {
    auto result = demand_paging(input, VictimOrder::LeastRecentlyUsed);
    if (result) result->note = "demand paging: " + why;
    return result;
}

}  // namespace libswap::cost
