// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The planner on iterations of many shapes: a plan wherever there can be one, none of the rivals
// faster, and no time lost where none need be.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cost/bound.hpp"
#include "cost/generate/generate.hpp"
#include "cost/policies/policy.hpp"
#include "cost/replay.hpp"
#include "tests/cost/workload_family.hpp"

namespace libswap::cost {
namespace {

const Machine& a100() { return *find_machine("pcie4-a100"); }

class PlannerOnTheFamily : public testing::TestWithParam<std::size_t> {
  protected:
    Workload member(std::uint32_t seed) const {
        return family_member(static_cast<Shape>(GetParam()), seed);
    }
};

std::uint64_t budget_of(const Workload& w, double share) {
    std::uint64_t least = 0;
    for (std::size_t i = 0; i < w.op_count(); ++i) least = std::max(least, w.op_bytes(i));
    return std::max(least, static_cast<std::uint64_t>(share * static_cast<double>(w.peak_bytes())));
}

TEST_P(PlannerOnTheFamily, HasAPlanWhereverOperationsFit) {
    for (std::uint32_t seed = 10; seed < 13; ++seed) {
        const Workload w = member(seed);
        for (const double share : {0.8, 0.5, 0.3, 0.0}) {
            for (const bool whole : {false, true}) {
                const std::uint64_t budget = budget_of(w, share);
                const auto made = make_plan(
                    w, a100(), {.budget_bytes = budget, .whole_tensors = whole, .effort_ms = 0});
                ASSERT_TRUE(made) << seed << ' ' << share << ": " << made.error().message;
                const auto replayed = replay(w, a100(), budget, made->plan);
                ASSERT_TRUE(replayed) << seed << ' ' << share << ": " << replayed.error().message;
                EXPECT_NEAR(made->predicted.iteration_us / replayed->iteration_us, 1, 0.01);
            }
        }
    }
}

TEST_P(PlannerOnTheFamily, IsNoSlowerThanRivals) {
    const Workload w = member(20);
    for (const double share : {0.7, 0.45}) {
        const std::uint64_t budget = budget_of(w, share);
        const auto ours = make_plan(w, a100(), {.budget_bytes = budget});
        ASSERT_TRUE(ours) << ours.error().message;
        EXPECT_GE(ours->predicted.iteration_us, 0.999 * iteration_bound_us(w, a100(), budget, 48));
        for (const PolicyKind kind : all_policies()) {
            const auto theirs = make_policy_plan(kind, w, a100(), {.budget_bytes = budget});
            if (!theirs) continue;
            EXPECT_LE(ours->predicted.iteration_us, 1.001 * theirs->result.predicted.iteration_us)
                << share << ' ' << policy_name(kind);
        }
    }
}

struct Generated {
    const char* model;
    std::int64_t batch;
    std::size_t accumulation;
};

class PlannerWithTimeToSpare : public testing::TestWithParam<Generated> {};

/// At 80 % of these the link can hide all of it.
TEST_P(PlannerWithTimeToSpare, TakesNoLongerThanWithoutLimit) {
    const auto [model, batch, accumulation] = GetParam();
    const auto w = generate_workload(
        model, {.batch = batch, .accumulation = accumulation, .ceilings = a100().ceilings});
    ASSERT_TRUE(w) << w.error();
    const auto ours = make_plan(*w, a100(), {.budget_bytes = budget_of(*w, 0.8)});
    ASSERT_TRUE(ours) << ours.error().message;
    EXPECT_FALSE(ours->plan.actions.empty());
    EXPECT_LE(ours->predicted.iteration_us, (1 + 1e-6) * w->compute_us());
}

INSTANTIATE_TEST_SUITE_P(Generated, PlannerWithTimeToSpare,
                         testing::Values(Generated{"bert", 32, 1}, Generated{"vgg16", 256, 4},
                                         Generated{"gpt2", 16, 8}, Generated{"resnet152", 16, 1}),
                         [](const testing::TestParamInfo<Generated>& info) {
                             return std::string(info.param.model);
                         });

std::string shape_name(const testing::TestParamInfo<std::size_t>& info) {
    std::string name(kShapeNames[info.param]);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, PlannerOnTheFamily,
                         testing::Range<std::size_t>(0, kShapeNames.size()), shape_name);

}  // namespace
}  // namespace libswap::cost
