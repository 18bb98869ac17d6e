// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/critical_fetches.hpp"

#include <gtest/gtest.h>

#include "tests/cost/plain_machine.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kBudget = 1'000'000;

/// Operations of 1000 us; `first` and `second`, of which each transfer takes 200 us, are used by
/// the last, and leave after it.
class CriticalFetchesTest : public ::testing::Test {
  protected:
    CriticalFetchesTest() {
        first_ = workload_.add_tensor({1, 200'000, true});
        second_ = workload_.add_tensor({2, 200'000, true});
        const TensorIndex stays = workload_.add_tensor({3, 1000, true});
        const std::vector<Use> other{{stays, true, true}};
        workload_.add_op(1000, 0, other, {});
        workload_.add_op(1000, 0, other, {});
        workload_.add_op(1000, 0, std::vector<Use>{{first_, true, true}, {second_, true, true}},
                         {});
    }
    std::vector<OpIndex> claims(std::vector<Action> actions, double slack_us) {
        return critical_claims(workload_, plain_machine(), kBudget, {std::move(actions)}, slack_us);
    }

    Workload workload_;
    TensorIndex first_ = 0;
    TensorIndex second_ = 0;
};

TEST_F(CriticalFetchesTest, AFetchIsAsCriticalAsTheTimeUntilItsUseIsShort) {
    // It arrives 200 us after operation 1 has begun.
    const std::vector<Action> plan{{ActionKind::Out, first_, 2}, {ActionKind::In, first_, 1}};
    EXPECT_EQ(claims(plan, 700), (std::vector<OpIndex>{kNoOperation, kNoOperation}));
    EXPECT_EQ(claims(plan, 900), (std::vector<OpIndex>{kNoOperation, 1}));
}

TEST_F(CriticalFetchesTest, OneAtItsUseIsWaitedFor) {
    const std::vector<Action> plan{{ActionKind::Out, first_, 2}, {ActionKind::In, first_, 2}};
    EXPECT_EQ(claims(plan, 10), (std::vector<OpIndex>{kNoOperation, 2}));
}

TEST_F(CriticalFetchesTest, OneHoldsUpThoseBehindIt) {
    const std::vector<Action> plan{{ActionKind::Out, first_, 2},
                                   {ActionKind::Out, second_, 2},
                                   {ActionKind::In, first_, 1},
                                   {ActionKind::In, second_, 1}};
    // 800 and 600 us to their use, with nothing between them.
    const auto all = claims(plan, 700);
    EXPECT_EQ(all[2], 1u);
    EXPECT_EQ(all[3], 1u);
}

TEST_F(CriticalFetchesTest, AnIdleLinkBetweenThemIsSlack) {
    const std::vector<Action> plan{{ActionKind::Out, first_, 2},
                                   {ActionKind::Out, second_, 2},
                                   {ActionKind::In, first_, 1},
                                   {ActionKind::In, second_, 2}};
    // The second is waited for; the first could come 800 us later without a change to that.
    EXPECT_EQ(claims(plan, 700)[2], kNoOperation);
    EXPECT_EQ(claims(plan, 700)[3], 2u);
    EXPECT_EQ(claims(plan, 900)[2], 1u);
}

TEST_F(CriticalFetchesTest, OneOverTheIterationsEndIsUsedInTheNext) {
    // Away from operation 2 until the next one's operation 0 has begun: 2000 us until its use.
    const std::vector<Action> plan{{ActionKind::Out, first_, 2}, {ActionKind::In, first_, 0}};
    EXPECT_EQ(claims(plan, 1500)[1], kNoOperation);
    EXPECT_EQ(claims(plan, 2000)[1], 0u);
}

TEST_F(CriticalFetchesTest, NothingIsSaidOfAPlanThatCannotBeExecuted) {
    const std::vector<Action> plan{{ActionKind::In, first_, 2}};
    EXPECT_EQ(critical_claims(workload_, plain_machine(), 1000, {plan}, 1e9),
              (std::vector<OpIndex>{kNoOperation}));
}

}  // namespace
}  // namespace libswap::cost
