// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/iteration.hpp"

#include <gtest/gtest.h>

namespace libswap::cost {
namespace {

/// A program that allocates its activation anew in each iteration; starts in the middle of one.
Trace trace_of(std::uint64_t iterations, std::uint64_t start) {
    Trace trace;
    for (std::uint64_t i = start; i < start + iterations * 4; ++i) {
        const std::uint64_t phase = i % 4;
        const std::uint64_t activation = 1000 + i / 4;
        trace.operands.push_back({1, 100, true, phase == 3});
        if (phase != 3) trace.operands.push_back({activation, 50, true, true});
        if (phase == 2) trace.frees.push_back(activation);
        trace.ops.push_back({phase,
                             10.0 * static_cast<double>(phase + 1),
                             0,
                             static_cast<std::uint32_t>(trace.operands.size()),
                             static_cast<std::uint32_t>(trace.frees.size()),
                             {}});
    }
    return trace;
}

TEST(BuildIteration, MatchesReallocatedBuffersByTheirSlots) {
    const Iteration it = build_iteration(trace_of(2, 0), 4);
    ASSERT_EQ(it.workload.op_count(), 4U);
    ASSERT_EQ(it.workload.tensors().size(), 2U);
    const TensorIndex weight = it.slots_of(0)[0];
    const TensorIndex activation = it.slots_of(0)[1];
    EXPECT_TRUE(it.workload.tensors()[weight].persistent);
    EXPECT_FALSE(it.workload.tensors()[activation].persistent);
    EXPECT_EQ(it.workload.tensors()[activation].bytes, 50U);
    EXPECT_EQ(it.blocks[weight], 1U);
    EXPECT_EQ(it.blocks[activation], 1001U);
    EXPECT_EQ(it.workload.frees(2).size(), 1U);
    EXPECT_EQ(it.workload.peak_bytes(), 150U);
    EXPECT_DOUBLE_EQ(it.workload.compute_us(), 100);
}

TEST(BuildIteration, BeginsWhereLeastLivesOn) {
    const Iteration it = build_iteration(trace_of(3, 2), 4);
    // Seen from the middle, phase 0 of the program is operation 2 of the trace's period; nothing
    // lives on across either end of operation 3 of the program.
    EXPECT_TRUE(it.origin == 1U || it.origin == 2U) << it.origin;
    EXPECT_EQ(it.workload.tensors().size(), 2U);
    for (const Tensor& t : it.workload.tensors()) EXPECT_EQ(t.persistent, t.bytes == 100);
}

TEST(BuildIteration, TheFirstUseOfWhatBeginsIsAWrite) {
    Trace trace = trace_of(2, 0);
    for (TracedOperand& o : trace.operands) o.write = false;
    const Iteration it = build_iteration(trace, 4);
    bool written = false;
    for (std::size_t i = 0; i < 4; ++i) {
        for (const Use& use : it.workload.uses(i)) {
            if (!it.workload.tensors()[use.tensor].persistent) written |= use.write && !use.read;
        }
    }
    EXPECT_TRUE(written);
}

TEST(BuildIteration, LetsOnlyTheLastPeriodSpeakWhereNumbersOfOperandsDiffer) {
    // Two parts of one buffer; where the first one ends was not known in the first iteration.
    Trace trace;
    const auto op = [&](std::uint64_t signature, std::initializer_list<std::uint64_t> blocks) {
        for (const std::uint64_t block : blocks) trace.operands.push_back({block, 10, true, true});
        trace.ops.push_back(
            {signature, 10, 0, static_cast<std::uint32_t>(trace.operands.size()), 0, {}});
    };
    op(1, {1, 2, 3, 4});
    op(2, {3, 4});
    op(1, {1, 2});
    op(2, {3, 4});
    const Iteration it = build_iteration(trace, 2);
    EXPECT_EQ(it.workload.tensors().size(), 4U);
    EXPECT_EQ(it.slots_of(0).size(), 2U);
    EXPECT_EQ(it.slots_of(1).size(), 2U);
}

TEST(BuildIteration, AnswersTooShortATraceWithNothing) {
    EXPECT_EQ(build_iteration(trace_of(1, 0), 4).workload.op_count(), 0U);
    EXPECT_EQ(build_iteration(Trace{}, 0).workload.op_count(), 0U);
}

TEST(BuildIteration, UnmeasuredOperationsGetTheDefault) {
    Trace trace = trace_of(2, 0);
    for (auto& op : trace.ops) op.duration_us = -1;
    trace.ops[4].duration_us = 30;
    const Iteration it = build_iteration(trace, 4, 5.0);
    EXPECT_DOUBLE_EQ(it.workload.compute_us(), 30 + 3 * 5.0);
}

TEST(BuildIteration, WaitsForTheProgramCountWhereTheyComeAgain) {
    Trace trace = trace_of(2, 0);
    for (auto& op : trace.ops) op.duration_us = 10;
    trace.ops[1].late_us = 100;  // each time
    trace.ops[5].late_us = 80;
    trace.ops[2].late_us = 1000;  // once
    trace.ops[6].late_us = 0;
    trace.ops[3].late_us = 7;  // once, the other time is not known
    const Iteration it = build_iteration(trace, 4, 5.0);
    EXPECT_DOUBLE_EQ(it.workload.compute_us(), 4 * 10 + 80 + 7);
}

}  // namespace
}  // namespace libswap::cost
