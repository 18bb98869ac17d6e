// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/bound.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "cost/fluid.hpp"
#include "cost/gaps.hpp"

namespace libswap::cost {

namespace {

constexpr std::array<SlotWeights, 3> kCuts{{{.time = 0.2, .bytes = 1, .operations = 0.01},
                                            {.time = 0.3, .bytes = 0.6, .operations = 0.1},
                                            {.time = 0, .bytes = 0, .operations = 1}}};

/// Tensors below this share of the peak only make the program harder.
constexpr std::uint64_t kSmallShare = 20000;

/// The gaps of all but small tensors, which take no memory where they lie idle.
GapTable gaps_without_small(const Workload& workload) {
    const std::uint64_t small = workload.peak_bytes() / kSmallShare;
    GapTable table = find_gaps(workload, small);
    const GapTable all = find_gaps(workload, 0);
    std::vector<std::uint64_t> away;
    for (const Gap& gap : all.gaps) {
        const std::uint64_t bytes = workload.tensors()[gap.tensor].bytes;
        away.push_back(bytes < small ? bytes : 0);
    }
    const std::vector<std::uint64_t> idle = absent_bytes(all, away);
    for (std::size_t k = 0; k < idle.size(); ++k) table.live_bytes[k] -= idle[k];
    return table;
}

}  // namespace

double iteration_bound_us(const Workload& workload, const Machine& machine,
                          std::uint64_t budget_bytes, std::size_t slots) {
    std::vector<double> axis(1, 0.0);
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        axis.push_back(axis.back() + workload.op(i).duration_us);
    }
    const GapTable table = gaps_without_small(workload);
    double bound = axis.back();
    const auto try_cut = [&](const SlotWeights& weights) {
        FluidOptions options;
        options.budget_bytes = budget_bytes;
        options.slots = slots;
        options.weights = weights;
        options.lower_bound = true;
        const FluidResult fluid = solve_fluid(workload, machine, table, axis, options);
        if (!fluid.away.empty()) bound = std::max(bound, fluid.iteration_us);
    };
    if (slots >= workload.op_count()) {
        slots = workload.op_count();
        try_cut(kCuts.back());
    } else {
        for (const SlotWeights& weights : kCuts) try_cut(weights);
    }
    return bound;
}

}  // namespace libswap::cost
