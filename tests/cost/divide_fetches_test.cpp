// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/divide_fetches.hpp"

#include <gtest/gtest.h>

#include <map>

#include "cost/planner.hpp"
#include "cost/replay.hpp"
#include "tests/cost/plain_machine.hpp"
#include "tests/cost/random_workload.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kBudget = 300'000;

/// Two tensors of which memory holds one and a half; each operation writes one of them.
Workload taking_turns() {
    Workload w;
    for (const std::int64_t id : {1, 2}) {
        const TensorIndex t = w.add_tensor({id, 200'000, true});
        w.add_op(50, 0, std::vector<Use>{{t, true, true}}, {}, "op");
    }
    return w;
}

Plan turns() {
    return {{{ActionKind::Out, 0, 0},
             {ActionKind::In, 1, 1},
             {ActionKind::Out, 1, 1},
             {ActionKind::In, 0, 0}}};
}

TEST(DivideFetches, WhatHasRoomComesWhileTheRestWaits) {
    const Workload w = taking_turns();
    const auto whole = replay(w, plain_machine(), kBudget, turns());
    ASSERT_TRUE(whole);
    EXPECT_NEAR(whole->iteration_us, 2 * (50 + 200 + 200), 1e-6);
    const auto divided = divide_late_fetches(w, plain_machine(), turns(),
                                             {.budget_bytes = kBudget, .least_bytes = 1000});
    ASSERT_TRUE(divided);
    ASSERT_EQ(divided->actions.size(), 6);
    EXPECT_EQ(divided->actions[1].bytes, 100'000);
    EXPECT_EQ(divided->actions[2].bytes, 100'000);
    EXPECT_EQ(divided->actions[2].kind, ActionKind::In);
    const auto faster = replay(w, plain_machine(), kBudget, *divided);
    ASSERT_TRUE(faster);
    EXPECT_NEAR(faster->iteration_us, 2 * (50 + 200 + 100), 1e-6);
    EXPECT_EQ(faster->to_device_bytes, whole->to_device_bytes);
}

TEST(DivideFetches, TheRestIsMappedWhileTheFirstPartComes) {
    Workload w;
    const TensorIndex a = w.add_tensor({1, 200'000, true});
    const TensorIndex b = w.add_tensor({2, 1000, true});
    w.add_op(500, 0, std::vector<Use>{{a, true, false}}, {}, "op");
    w.add_op(500, 0, std::vector<Use>{{b, true, false}}, {}, "op");
    Machine machine = plain_machine();
    machine.remap.map_us_per_gib = 1e-3 * (1 << 30);  // as long as it takes to move
    const Plan plan{{{ActionKind::Drop, a, 0}, {ActionKind::In, a, 0}}};
    const auto whole = replay(w, machine, kBudget, plan);
    const auto divided =
        divide_late_fetches(w, machine, plan, {.budget_bytes = kBudget, .least_bytes = 1000});
    ASSERT_TRUE(divided);
    const auto faster = replay(w, machine, kBudget, *divided);
    ASSERT_TRUE(whole);
    ASSERT_TRUE(faster);
    EXPECT_NEAR(whole->iteration_us, 1000 + 200 + 200, 1e-6);
    EXPECT_NEAR(faster->iteration_us, 1000 + 100 + 200, 1e-6);
}

TEST(DivideFetches, NothingIsDividedWhereNothingIsLate) {
    const Workload w = taking_turns();
    EXPECT_FALSE(divide_late_fetches(w, plain_machine(), turns(),
                                     {.budget_bytes = 400'000, .least_bytes = 1000}));
    EXPECT_FALSE(divide_late_fetches(w, plain_machine(), {}, {.budget_bytes = 400'000}));
}

TEST(DivideFetches, PartsAreNoSmallerThanAskedForAndMultiplesOfTheUnit) {
    const Workload w = taking_turns();
    EXPECT_FALSE(divide_late_fetches(w, plain_machine(), turns(),
                                     {.budget_bytes = kBudget, .least_bytes = 110'000}));
    const auto divided =
        divide_late_fetches(w, plain_machine(), turns(),
                            {.budget_bytes = kBudget, .least_bytes = 1000, .part_bytes = 30'000});
    ASSERT_TRUE(divided);
    EXPECT_EQ(divided->actions[1].bytes, 90'000);
    EXPECT_EQ(divided->actions[2].bytes, 110'000);
}

TEST(DivideFetches, APlanThatCannotBeExecutedIsNotDivided) {
    const Workload w = taking_turns();
    EXPECT_FALSE(divide_late_fetches(w, plain_machine(), turns(),
                                     {.budget_bytes = 100'000, .least_bytes = 1000}));
}

/// Per tensor and operation, what is fetched.
std::map<std::pair<TensorIndex, OpIndex>, std::uint64_t> fetched(const Workload& w, const Plan& p) {
    std::map<std::pair<TensorIndex, OpIndex>, std::uint64_t> sums;
    for (const Action& a : p.actions) {
        if (a.kind == ActionKind::In) sums[{a.tensor, a.op}] += bytes_of(a, w);
    }
    return sums;
}

TEST(DivideFetches, WhatIsFetchedWhereStaysTheSame) {
    std::size_t divisions = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const Workload w = random_training(seed, 12);
        Machine machine = plain_machine();
        machine.remap.map_us_per_gib = 5200;
        machine.link.to_host.gbps = machine.link.to_device.gbps = 25;
        machine.link.to_host_duplex_gbps = machine.link.to_device_duplex_gbps = 18;
        const std::uint64_t budget = w.peak_bytes() * 6 / 10;
        const auto made = make_plan(w, machine, {.budget_bytes = budget, .effort_ms = 5});
        if (!made) continue;
        const auto divided = divide_late_fetches(w, machine, made->plan,
                                                 {.budget_bytes = budget, .least_bytes = 1000});
        if (!divided) continue;
        ++divisions;
        EXPECT_GT(divided->actions.size(), made->plan.actions.size());
        EXPECT_EQ(fetched(w, *divided), fetched(w, made->plan));
        const auto replayed = replay(w, machine, budget, *divided);
        EXPECT_TRUE(replayed) << replayed.error().message;
    }
    EXPECT_GT(divisions, 10);
}

}  // namespace
}  // namespace libswap::cost
