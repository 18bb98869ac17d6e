// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Workloads that no training program makes, and limits that nothing fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cost/planner.hpp"
#include "tests/cost/random_workload.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

const Machine& a100() { return *find_machine("pcie4-a100"); }

/// Anything that the types allow and a reader of files lets through: operations without operands or
/// time, tensors of no bytes, never used, freed before their use or twice, huge workspaces.
Workload odd_workload(std::mt19937& random) {
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Workload w;
    const std::uint32_t tensors = below(12);
    for (std::uint32_t t = 0; t < tensors; ++t) {
        w.add_tensor(
            {t, below(4) == 0 ? 0 : (below(40) + 1) * kMib / (1 + below(3)), below(4) > 0});
    }
    const std::uint32_t ops = 1 + below(25);
    for (std::uint32_t i = 0; i < ops; ++i) {
        std::vector<Use> uses;
        std::vector<TensorIndex> frees;
        for (std::uint32_t k = below(4); tensors > 0 && k > 0; --k) {
            uses.push_back({below(tensors), below(3) > 0, below(3) > 0});
        }
        if (tensors > 0 && below(5) == 0) frees.push_back(below(tensors));
        w.add_op(below(4) == 0 ? 0 : below(4000), below(3) == 0 ? below(16) * kMib : 0, uses,
                 frees);
    }
    return w;
}

TEST(PlannerOnOddInput, GivesAValidPlanOrOneReason) {
    std::mt19937 random(11);
    int planned = 0;
    int refused = 0;
    for (int round = 0; round < 400; ++round) {
        const Workload w = odd_workload(random);
        PlanRequest request;
        request.budget_bytes = (random() % 8) * w.peak_bytes() / 7 + random() % 2;
        if (random() % 3 == 0) request.host_limit_bytes = random() % (w.peak_bytes() + 1);
        request.whole_tensors = random() % 2 == 0;
        request.part_bytes = random() % 3 == 0 ? 2 * kMib : random() % 2;
        const auto result = make_plan(w, a100(), request);
        if (!result) {
            EXPECT_FALSE(result.error().message.empty()) << round;
            ++refused;
            continue;
        }
        ++planned;
        const auto replayed = replay(w, a100(), request.budget_bytes, result->plan);
        ASSERT_TRUE(replayed) << round << ' ' << replayed.error().message;
        EXPECT_LE(replayed->peak_used_bytes, request.budget_bytes) << round;
        EXPECT_LE(result->host_bytes, request.host_limit_bytes) << round;
    }
    EXPECT_GT(planned, 40);
    EXPECT_GT(refused, 50);
}

TEST(PlannerOnOddInput, RefusesAnIterationWithoutOperations) {
    const auto result = make_plan({}, a100(), {.budget_bytes = 1});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().reason, PlanError::Reason::NoOperations);
}

TEST(PlannerOnOddInput, PlansWhereNothingTakesTime) {
    Workload w;
    for (std::int64_t t = 0; t < 6; ++t) w.add_tensor({t, 10 * kMib, true});
    for (TensorIndex t = 0; t < 6; ++t) w.add_op(0, 0, std::vector<Use>{{t, true, true}}, {});
    const auto result = make_plan(w, a100(), {.budget_bytes = 30 * kMib});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_GT(result->predicted.to_device_bytes, 0);
}

TEST(PlannerOnOddInput, NeedsNoHostWhereEverythingFits) {
    const Workload w = random_training(2, 8);
    const auto result =
        make_plan(w, a100(), {.budget_bytes = w.peak_bytes(), .host_limit_bytes = 0});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->plan.actions.empty());
}

TEST(PlannerOnOddInput, SaysThatNothingCanLeaveWithoutHostMemory) {
    const Workload w = random_training(2, 8);
    std::uint64_t budget = w.peak_bytes() * 7 / 10;
    for (std::size_t i = 0; i < w.op_count(); ++i) budget = std::max(budget, w.op_bytes(i));
    const auto result = make_plan(w, a100(), {.budget_bytes = budget, .host_limit_bytes = 0});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().reason, PlanError::Reason::HostTooSmall);
}

}  // namespace
}  // namespace libswap::cost
