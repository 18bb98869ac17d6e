// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The planner against every plan there is, on workloads small enough to try them all, and against
// the bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cost/bound.hpp"
#include "cost/planner.hpp"
#include "tests/cost/exhaustive_plan.hpp"

namespace libswap::cost {
namespace {

constexpr double kMostPlans = 3e4;  ///< to try, per case

const Machine& a100() { return *find_machine("pcie4-a100"); }

/// Shares of cases whose plan takes at most so much longer than the best there is.
void print_distribution(const char* what, std::vector<double> ratios) {
    std::sort(ratios.begin(), ratios.end());
    double logs = 0;
    for (const double r : ratios) logs += std::log(r);
    const auto share_up_to = [&](double limit) {
        const auto end = std::upper_bound(ratios.begin(), ratios.end(), limit);
        return 100.0 * static_cast<double>(end - ratios.begin()) /
               static_cast<double>(ratios.size());
    };
    std::printf("%s: %zu cases, geometric mean %.4f;", what, ratios.size(),
                std::exp(logs / static_cast<double>(ratios.size())));
    for (const double limit : {0.999, 1.0001, 1.01, 1.02, 1.05, 1.1, 1.2}) {
        std::printf(" <= %g: %.1f %%", limit, share_up_to(limit));
    }
    std::printf("; worst %.4f\n", ratios.back());
}

struct Distances {
    std::vector<double> to_exact;
    std::vector<double> exact_to_bound;
    double mean() const {
        double logs = 0;
        for (const double r : to_exact) logs += std::log(r);
        return std::exp(logs / static_cast<double>(to_exact.size()));
    }
};

/// Of the planner to the exact solution, both of plans that move `parts` of each tensor, or of
/// whole tensors where it is 1. Cases that fit, or have too many plans, do not count.
Distances distances(std::uint32_t seeds, std::uint64_t parts) {
    Distances found;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        const Workload w = small_workload(seed);
        std::uint64_t least = 0;
        for (std::size_t i = 0; i < w.op_count(); ++i) least = std::max(least, w.op_bytes(i));
        const std::uint64_t budget = least + (w.peak_bytes() - least) * (seed % 4) / 5;
        if (budget >= w.peak_bytes()) continue;
        const Workload searched = in_parts(w, parts);
        ExhaustivePlan exact(searched, a100(), budget);
        if (exact.plans() > kMostPlans) continue;
        const auto best = exact.run();
        const auto ours =
            make_plan(w, a100(), {.budget_bytes = budget, .whole_tensors = parts == 1});
        EXPECT_EQ(best.has_value(), ours.has_value()) << seed;
        if (!best || !ours) continue;
        found.to_exact.push_back(ours->predicted.iteration_us / *best);
        const double bound = iteration_bound_us(w, a100(), budget, w.op_count());
        EXPECT_LE(bound, *best * 1.001) << seed;
        EXPECT_LE(bound, ours->predicted.iteration_us * 1.001) << seed;
        found.exact_to_bound.push_back(*best / bound);
    }
    return found;
}

TEST(PlannerOnSmallWorkloads, IsCloseToTheBestPlanOfWholeTensors) {
    const Distances found = distances(400, 1);
    ASSERT_GT(found.to_exact.size(), 100U);
    print_distribution("ours / exact, whole tensors", found.to_exact);
    print_distribution("exact / bound, whole tensors", found.exact_to_bound);
    EXPECT_LT(found.mean(), 1.03);
}

TEST(PlannerOnSmallWorkloads, IsCloseToTheBestPlanOfHalves) {
    const Distances found = distances(400, 2);
    ASSERT_GT(found.to_exact.size(), 10U);
    print_distribution("ours / exact, halves", found.to_exact);
    print_distribution("exact / bound, halves", found.exact_to_bound);
    EXPECT_LT(found.mean(), 1.03);
}

}  // namespace
}  // namespace libswap::cost
