// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/condense.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "cost/generate/generate.hpp"
#include "cost/machine.hpp"
#include "cost/planner.hpp"

namespace libswap::cost {
namespace {

constexpr std::size_t kRepetitions = 10;

Workload network(std::string_view model, std::int64_t batch, std::size_t accumulation) {
    GenerateOptions options;
    options.batch = batch;
    options.accumulation = accumulation;
    options.ceilings = find_machine("pcie4-a100")->ceilings;
    auto w = generate_workload(model, options);
    EXPECT_TRUE(w);
    return std::move(*w);
}

TEST(Condense, LeavesOutRepetitionsAlone) {
    const Workload whole = network("gpt2", kRepetitions, kRepetitions);
    const Workload more = network("gpt2", kRepetitions + 1, kRepetitions + 1);
    const std::size_t repetition = more.op_count() - whole.op_count();
    const auto condensed = condense(whole, 3);
    ASSERT_TRUE(condensed);
    const std::size_t left_out = whole.op_count() - condensed->workload.op_count();
    EXPECT_EQ(left_out % repetition, 0U);
    EXPECT_GE(left_out / repetition, kRepetitions - 5);
    EXPECT_EQ(condensed->workload.peak_bytes(), whole.peak_bytes());
}

TEST(Condense, KeepsWhatHasNothingToLeaveOut) {
    EXPECT_FALSE(condense(network("gpt2", 3, 3), 3));
    EXPECT_FALSE(condense(network("bert", 4, 1), 3));  // layers repeat themselves, not iterations
    EXPECT_FALSE(condense(Workload(), 3));
}

/// Too few to be left out, and yet another kind of iteration than one without repetitions, whose
/// attempts serve it worse: 1.343 here.
TEST(Planner, TriesOtherFluidsForAFewRepetitions) {
    const Workload w = network("gpt2", 4, 4);
    ASSERT_FALSE(condense(w, 3));
    ASSERT_TRUE(condense(w, 2));
    const auto made =
        make_plan(w, *find_machine("pcie4-a100"), {.budget_bytes = w.peak_bytes() / 10 * 6});
    ASSERT_TRUE(made);
    EXPECT_LT(made->predicted.iteration_us, 1.33 * w.compute_us());
}

/// Every gap of the whole iteration stands for one of the condensed one, of a tensor as big, and
/// every one of those is stood for.
TEST(Condense, ExpandsToEveryGap) {
    const Workload whole = network("gpt2", kRepetitions, kRepetitions);
    const auto condensed = condense(whole, 3);
    ASSERT_TRUE(condensed);
    const GapTable gaps = find_gaps(whole, 0);
    const GapTable few = find_gaps(condensed->workload, 0);
    FluidResult fluid;
    for (const Gap& gap : few.gaps) {
        fluid.away.push_back(condensed->workload.tensors()[gap.tensor].bytes);
    }
    for (std::size_t k = 0; k < condensed->workload.op_count(); ++k) fluid.early.push_back(k);
    const FluidResult all = expand(fluid, whole, *condensed, gaps, few);
    ASSERT_EQ(all.away.size(), gaps.gaps.size());
    for (std::size_t g = 0; g < gaps.gaps.size(); ++g) {
        EXPECT_EQ(all.away[g], whole.tensors()[gaps.gaps[g].tensor].bytes) << g;
    }
    ASSERT_EQ(all.early.size(), whole.op_count());
    EXPECT_EQ(all.early.front(), 0U);
    EXPECT_EQ(all.early.back(), condensed->workload.op_count() - 1);
}

}  // namespace
}  // namespace libswap::cost
