// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/divide_fetches.hpp"

#include <algorithm>
#include <vector>

#include "cost/replay.hpp"

namespace libswap::cost {

std::optional<Plan> divide_late_fetches(const Workload& workload, const Machine& machine,
                                        const Plan& plan, const DivideOptions& options) {
    const std::uint64_t unit = std::max<std::uint64_t>(1, options.part_bytes);
    const std::uint64_t least = std::max<std::uint64_t>(1, options.least_bytes);
    auto replayed = replay(workload, machine, options.budget_bytes, plan,
                           {.max_iterations = 12,
                            .divide_least_bytes = (least + unit - 1) / unit * unit,
                            .divide_unit_bytes = unit});
    if (!replayed || replayed->divisions.empty()) return std::nullopt;
    // In the order of the actions; the parts of one stay in the order in which they went.
    auto& divisions = replayed->divisions;
    std::stable_sort(divisions.begin(), divisions.end(),
                     [](const auto& a, const auto& b) { return a.action < b.action; });
    Plan divided;
    divided.actions.reserve(plan.actions.size() + divisions.size());
    auto next = divisions.cbegin();
    for (std::uint32_t i = 0; i < plan.actions.size(); ++i) {
        Action action = plan.actions[i];
        for (; next != divisions.cend() && next->action == i; ++next) {
            const std::uint64_t left = bytes_of(action, workload);
            if (next->bytes >= left) continue;
            action.bytes = next->bytes;
            divided.actions.push_back(action);
            action.bytes = left - next->bytes;
        }
        divided.actions.push_back(action);
    }
    return divided;
}

}  // namespace libswap::cost
