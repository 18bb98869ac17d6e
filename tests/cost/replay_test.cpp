// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/replay.hpp"

#include <gtest/gtest.h>

#include "tests/cost/plain_machine.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

/// `a` at operations 0 and 3, `b` at 1 and 2.
Workload two_tensors(std::uint64_t bytes, double duration_us, bool writes) {
    Workload w;
    const TensorIndex a = w.add_tensor({1, bytes, true});
    const TensorIndex b = w.add_tensor({2, bytes, true});
    for (const TensorIndex t : {a, b, b, a}) {
        w.add_op(duration_us, 0, std::vector<Use>{{t, true, writes}}, {}, "op");
    }
    return w;
}

TEST(Replay, WithoutAPlanTakesTheComputeTime) {
    const Workload w = two_tensors(kMib, 100, true);
    const auto r = replay(w, plain_machine(0.5), 2 * kMib, {});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_DOUBLE_EQ(r->iteration_us, 400);
    EXPECT_EQ(r->to_device_bytes, 0);
}

TEST(Replay, HiddenTransfersCostNothingAndExposedOnesTheirTime) {
    const Workload w = two_tensors(100'000, 200, true);  // 100 us a transfer
    const Plan plan{{{ActionKind::Out, 0, 0}, {ActionKind::In, 0, 2}}};
    const auto r = replay(w, plain_machine(0.5), 200'000, plan);
    ASSERT_TRUE(r);
    EXPECT_DOUBLE_EQ(r->iteration_us, 800);
    EXPECT_EQ(r->to_host_bytes, 100'000);
    EXPECT_EQ(r->to_device_bytes, 100'000);
    const Plan late{{{ActionKind::Out, 0, 0}, {ActionKind::In, 0, 3}}};
    const auto exposed = replay(w, plain_machine(0.5), 200'000, late);
    ASSERT_TRUE(exposed);
    EXPECT_NEAR(exposed->iteration_us, 900, 1e-6);
}

TEST(Replay, CleanDataLeavesWithoutACopy) {
    const Workload w = two_tensors(100'000, 200, false);
    const Plan plan{{{ActionKind::Out, 0, 0}, {ActionKind::In, 0, 2}}};
    const auto r = replay(w, plain_machine(0.5), 200'000, plan);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->to_host_bytes, 0);
    EXPECT_EQ(r->to_device_bytes, 100'000);
}

TEST(Replay, RefusesADropOfWhatTheHostDoesNotHave) {
    const Workload w = two_tensors(100'000, 200, true);
    const Plan plan{{{ActionKind::Drop, 0, 0}, {ActionKind::In, 0, 2}}};
    const auto r = replay(w, plain_machine(0.5), 200'000, plan);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().op, 0U);
    EXPECT_EQ(r.error().tensor, 0U);
}

TEST(Replay, SaysWhichOperationCanNeverStart) {
    const Workload w = two_tensors(100'000, 200, true);
    const auto r = replay(w, plain_machine(0.5), 150'000, {});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().op, 1U);
    EXPECT_NE(r.error().message.find("can never start"), std::string::npos);
}

TEST(Replay, ACopyInAdvanceMakesTheEvictionFree) {
    Workload w;
    const TensorIndex a = w.add_tensor({1, 100'000, true});
    w.add_op(500, 0, std::vector<Use>{{a, true, true}}, {});
    w.add_op(500, 0, std::vector<Use>{{a, true, false}}, {});
    w.add_op(500, 0, {}, {});
    const Plan plan{{{ActionKind::Copy, 0, 0}, {ActionKind::Drop, 0, 1}, {ActionKind::In, 0, 2}}};
    const auto r = replay(w, plain_machine(0.5), 100'000, plan);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_DOUBLE_EQ(r->iteration_us, 1500);
    EXPECT_EQ(r->to_host_bytes, 100'000);
}

TEST(Replay, ReactionTimeAndRemapsPerChunkDelayAFetch) {
    const Workload w = two_tensors(100'000, 200, true);
    const Plan late{{{ActionKind::Out, 0, 0}, {ActionKind::In, 0, 3}}};
    Machine m = plain_machine(0.5);
    m.reaction_us = 7;
    m.remap.chunk_bytes = 50'000;
    m.remap.map_us_per_chunk = 5;
    const auto r = replay(w, m, 200'000, late);
    ASSERT_TRUE(r);
    EXPECT_NEAR(r->iteration_us, 900 + 7 + 10, 1e-6);
}

TEST(Replay, RefusesUnknownTensorsAndOperations) {
    const Workload w = two_tensors(100'000, 200, true);
    EXPECT_FALSE(replay(w, plain_machine(0.5), 200'000, {{{ActionKind::Out, 9, 0}}}));
    EXPECT_FALSE(replay(w, plain_machine(0.5), 200'000, {{{ActionKind::Out, 0, 9}}}));
    EXPECT_FALSE(replay(Workload{}, plain_machine(0.5), 200'000, {}));
}

TEST(LinkModel, AddsSetupAndKnowsSmallMessagesAndBothWays) {
    LinkModel link;
    link.to_host = {.latency_us = 10,
                    .overhead_us = 2,
                    .gap_us = 1,
                    .gbps = 20,
                    .small_gbps = 5,
                    .small_bytes = 4096};
    link.to_host_duplex_gbps = 15;
    EXPECT_DOUBLE_EQ(link.transfer_us(Direction::ToHost, 20'000'000, false), 1013);
    EXPECT_DOUBLE_EQ(link.transfer_us(Direction::ToHost, 15'000'000, true), 1013);
    EXPECT_DOUBLE_EQ(link.transfer_us(Direction::ToHost, 4000, false), 13.8);
    EXPECT_DOUBLE_EQ(link.transfer_us(Direction::ToHost, 4000, true), 13.8);
}

TEST(Roofline, IsTheSlowerOfComputeAndMemory) {
    const Ceilings c{10, 1000, 4};
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e9, 1e6), 104);
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e6, 1e9), 1004);
}

}  // namespace
}  // namespace libswap::cost
