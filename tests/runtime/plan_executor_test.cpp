// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/plan_executor.hpp"

#include <gtest/gtest.h>

#include <map>

namespace libswap {
namespace {

using Kind = SwapCommand::Kind;

/// A program of six operations an iteration. Weights (block 1) at the ends, an activation that is
/// allocated anew every time, written at 0 and read at 5, and momenta (block 3) that only 3 uses.
class Program {
  public:
    struct Issued {
        Step step;
        std::vector<SwapCommand> commands;
    };

    Issued issue(std::uint64_t phase) {
        if (phase == 0) activation = ++next_block_;
        std::vector<cost::TracedOperand> operands;
        if (phase == 0 || phase == 5) {
            operands = {{activation, 1 << 20, phase == 5, phase == 0}, {1, 1 << 20, true, true}};
        } else {
            operands = {{2, 1 << 20, true, true}};
            if (phase == 3) operands.push_back({3, 1 << 20, true, true});
        }
        const Step step = learner.observe(100 + phase, operands);
        const auto commands = executor.step(step, operands);
        Issued issued{step, {commands.begin(), commands.end()}};
        if (phase == 5) learner.note_free(activation);
        return issued;
    }

    std::map<std::uint64_t, Issued> iteration() {
        std::map<std::uint64_t, Issued> all;
        for (std::uint64_t phase = 0; phase < 6; ++phase) all[phase] = issue(phase);
        return all;
    }

    /// One that a plan is followed in from its first operation on: it is entered in the one before.
    std::map<std::uint64_t, Issued> followed_iteration() {
        iteration();
        return iteration();
    }

    /// Learns, and installs a plan that moves the activation out after 0 and in at 4. `claim`: the
    /// operation at which the fetch has its memory, if it cannot be late.
    void learn_and_install(cost::OpIndex claim = cost::kNoOperation) {
        cost::Iteration it = learn();
        const cost::TensorIndex t = it.slots_of(0)[0];
        cost::Plan plan;
        plan.actions = {{cost::ActionKind::Out, t, 0}, {cost::ActionKind::In, t, 4}};
        const std::vector<cost::OpIndex> claims{cost::kNoOperation, claim};
        ASSERT_TRUE(executor.install(kLoop, 6, std::move(it), plan, claims));
    }

    /// A plan that moves the momenta out after 3, and back for 3.
    void learn_and_move_momenta() {
        cost::Iteration it = learn();
        const cost::TensorIndex t = it.slots_of(3)[1];
        cost::Plan plan;
        plan.actions = {{cost::ActionKind::Out, t, 3}, {cost::ActionKind::In, t, 3}};
        ASSERT_TRUE(executor.install(kLoop, 6, std::move(it), plan));
    }

    cost::Iteration learn() {
        for (int i = 0; i < 15; ++i) iteration();
        cost::Trace trace;
        EXPECT_TRUE(learner.snapshot(trace));
        return cost::build_iteration(trace, 6);
    }

    static constexpr LoopId kLoop = 0;

    Learner learner;
    PlanExecutor executor;
    std::uint64_t activation = 0;

  private:
    std::uint64_t next_block_ = 1000;
};

TEST(PlanExecutor, NamesTheBlockThatLivesInThisIteration) {
    Program program;
    program.learn_and_install();
    for (int i = 0; i < 3; ++i) {
        auto issued = program.iteration();
        ASSERT_FALSE(issued[0].commands.empty());
        const SwapCommand evict = issued[0].commands.back();
        EXPECT_EQ(evict.kind, Kind::Evict);
        EXPECT_EQ(evict.block, program.activation);
        EXPECT_EQ(evict.after_serial, issued[0].step.serial);
    }
}

TEST(PlanExecutor, KnowsNothingNewFromAnotherNumberOfOperands) {
    Program program;
    program.learn_and_install();
    program.iteration();
    const std::uint64_t before = program.activation;
    const std::vector<cost::TracedOperand> operands = {{7, 1 << 20, true, true}};
    const Step step = program.learner.observe(100, operands);
    const auto commands = program.executor.step(step, operands);
    ASSERT_FALSE(commands.empty());
    EXPECT_EQ(commands.back().block, before);
}

TEST(PlanExecutor, HandsAFetchOutAheadButNotBeforeItsEviction) {
    Program program;
    program.learn_and_install();
    auto issued = program.followed_iteration();
    // Eight operations ahead of operation 4 is the iteration before, where the block is another.
    ASSERT_EQ(issued[0].commands.size(), 2U);
    const SwapCommand fetch = issued[0].commands.front();
    EXPECT_EQ(fetch.kind, Kind::Fetch);
    EXPECT_EQ(fetch.block, program.activation);
    EXPECT_EQ(fetch.after_serial, issued[3].step.serial);
    for (std::uint64_t phase = 1; phase < 6; ++phase) EXPECT_TRUE(issued[phase].commands.empty());
}

TEST(PlanExecutor, HandsAFetchOutAheadOfTheOnlyOperationThatUsesItsBlock) {
    Program program;
    program.learn_and_move_momenta();
    auto issued = program.followed_iteration();
    ASSERT_EQ(issued[3].commands.size(), 1U);
    EXPECT_EQ(issued[3].commands[0].kind, Kind::Evict);
    ASSERT_EQ(issued[4].commands.size(), 1U);
    const SwapCommand fetch = issued[4].commands[0];
    EXPECT_EQ(fetch.kind, Kind::Fetch);
    EXPECT_EQ(fetch.block, 3U);
    EXPECT_EQ(fetch.after_serial, issued[3].step.serial + 5);
}

TEST(PlanExecutor, SaysWhichOperationAFetchIsFor) {
    Program program;
    program.learn_and_install();
    auto issued = program.followed_iteration();
    const SwapCommand fetch = issued[0].commands.front();
    ASSERT_EQ(fetch.kind, Kind::Fetch);
    EXPECT_EQ(fetch.use_serial, issued[5].step.serial);
    EXPECT_EQ(issued[0].commands.back().use_serial, SwapCommand::kNoClaim);
}

TEST(PlanExecutor, AFetchThatCannotBeLateComesBeforeWhatLaterOperationsTake) {
    Program program;
    program.learn_and_install(5);
    auto issued = program.followed_iteration();
    const SwapCommand fetch = issued[0].commands.front();
    ASSERT_EQ(fetch.kind, Kind::Fetch);
    EXPECT_EQ(fetch.claim_serial, issued[5].step.serial);
    EXPECT_EQ(issued[0].commands.back().claim_serial, SwapCommand::kNoClaim);
}

TEST(PlanExecutor, AFetchThatMayBeLateHoldsNothingUp) {
    Program program;
    program.learn_and_install();
    auto issued = program.followed_iteration();
    EXPECT_EQ(issued[0].commands.front().claim_serial, SwapCommand::kNoClaim);
    EXPECT_FALSE(program.executor.wants_event());
}

TEST(PlanExecutor, SaysWhenTheHostIsNear) {
    Program program;
    program.learn_and_install(5);
    auto issued = program.followed_iteration();
    // Operations of 5 us: all of an iteration but one may be under way.
    EXPECT_EQ(program.executor.near_serial(), issued[0].step.serial);
    program.executor.step(program.learner.observe(4711, {}), {});
    EXPECT_EQ(program.executor.near_serial(), 0u);
}

TEST(PlanExecutor, LeadLetsAFetchBeginEarlier) {
    Program program;
    program.executor.options.lead_ops = 2;
    program.learn_and_install();
    auto issued = program.followed_iteration();
    ASSERT_EQ(issued[0].commands.size(), 2U);
    EXPECT_EQ(issued[0].commands.front().after_serial, issued[1].step.serial);
}

TEST(PlanExecutor, DropsAtTheFirstMismatchAndResumesWhereTheHistoryMatches) {
    Program program;
    program.learn_and_install();
    program.iteration();
    EXPECT_TRUE(program.executor.active());
    const std::uint32_t run = program.executor.run();
    program.issue(0);
    const Step odd = program.learner.observe(4711, {});
    EXPECT_TRUE(program.executor.step(odd, {}).empty());
    EXPECT_FALSE(program.executor.active());
    EXPECT_NE(program.executor.run(), run);
    EXPECT_EQ(program.executor.dropped(), 1U);
    // Taken up in the middle, where the plan has the activation away.
    const auto issued = program.issue(2);
    EXPECT_TRUE(program.executor.active());
    ASSERT_EQ(issued.commands.size(), 1U);
    EXPECT_EQ(issued.commands[0].block, program.activation);
    EXPECT_EQ(issued.commands[0].run, program.executor.run());
}

TEST(PlanExecutor, RefusesAPlanThatDoesNotFitTheLoop) {
    Program program;
    const cost::Iteration it = program.learn();
    cost::Plan part;
    part.actions = {{cost::ActionKind::Out, 0, 0, 4096}};
    EXPECT_FALSE(program.executor.install(Program::kLoop, 6, it, part));
    cost::Plan unknown;
    unknown.actions = {{cost::ActionKind::Out, 99, 0}};
    EXPECT_FALSE(program.executor.install(Program::kLoop, 6, it, unknown));
    EXPECT_FALSE(program.executor.install(Program::kLoop, 7, it, {}));
    EXPECT_FALSE(program.executor.installed());
}

TEST(PlanExecutor, KeepsThePlansOfSeveralLoops) {
    Program program;
    program.learn_and_install();
    cost::Iteration other;
    other.workload.add_tensor({0, 4096, true});
    other.workload.add_op(1, 0, std::vector<cost::Use>{{0, true, true}}, {});
    other.slots = {0};
    other.slots_end = {1};
    other.blocks = {9};
    ASSERT_TRUE(program.executor.install(7, 1, other, {}));
    program.iteration();
    EXPECT_TRUE(program.executor.active());
    program.executor.clear(Program::kLoop);
    EXPECT_FALSE(program.executor.active());
    EXPECT_TRUE(program.executor.installed());
}

}  // namespace
}  // namespace libswap
