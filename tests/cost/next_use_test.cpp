// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/next_use.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace libswap::cost {
namespace {

class NextUseTest : public ::testing::Test {
  protected:
    NextUseTest() {
        weight_ = workload_.add_tensor({1, 1000, true});
        unused_ = workload_.add_tensor({2, 1000, true});
        momentum_ = workload_.add_tensor({3, 1000, true});
        workload_.add_op(1, 0, std::vector<Use>{{weight_, true, false}}, {});
        workload_.add_op(1, 0, {}, {});
        workload_.add_op(1, 0, std::vector<Use>{{weight_, true, true}, {momentum_, true, true}},
                         {});
        workload_.add_op(1, 0, {}, {});
    }

    Workload workload_;
    TensorIndex weight_ = 0;
    TensorIndex unused_ = 0;
    TensorIndex momentum_ = 0;
};

TEST_F(NextUseTest, IsTheOperationItselfOrTheNextThatNamesTheTensor) {
    const NextUse next(workload_);
    EXPECT_EQ(next.of(weight_, 0), 0U);
    EXPECT_EQ(next.of(weight_, 1), 2U);
    EXPECT_EQ(next.of(weight_, 2), 2U);
    EXPECT_EQ(next.of(momentum_, 0), 2U);
}

TEST_F(NextUseTest, GoesRoundTheIteration) {
    const NextUse next(workload_);
    EXPECT_EQ(next.of(weight_, 3), 0U);
    EXPECT_EQ(next.of(momentum_, 3), 2U);
}

TEST_F(NextUseTest, IsNoneOfATensorThatNothingNames) {
    EXPECT_EQ(NextUse(workload_).of(unused_, 0), kNoOperation);
}

TEST_F(NextUseTest, ReadsNothingFromAnEmptyIteration) {
    Workload empty;
    const TensorIndex tensor = empty.add_tensor({1, 1000, true});
    EXPECT_EQ(NextUse(empty).of(tensor, 0), kNoOperation);
}

}  // namespace
}  // namespace libswap::cost
