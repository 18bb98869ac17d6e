// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/model_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace libswap {
namespace {

TEST(ModelError, IsTheMeanOfAbsoluteErrorsByWhatWasMeasured) {
    ModelError error;
    EXPECT_EQ(error.mean_percent(), 0);
    error.add(80, 100);   // 20 %
    error.add(110, 100);  // 10 %
    error.add(50, 100);   // 50 %
    EXPECT_EQ(error.count(), 3U);
    EXPECT_NEAR(error.mean_percent(), 80.0 / 3, 1e-9);
}

TEST(ModelError, IgnoresWhatIsNoTime) {
    ModelError error;
    error.add(0, 10);
    error.add(10, 0);
    error.add(-1, 10);
    error.add(std::numeric_limits<double>::quiet_NaN(), 10);
    EXPECT_EQ(error.count(), 0U);
}

TEST(ModelError, DriftsOnceThereAreEnoughThatSaySo) {
    ModelError error;
    while (!error.is_enough()) {
        EXPECT_FALSE(error.drifts());
        error.add(100, 120);
    }
    EXPECT_TRUE(error.drifts());
    EXPECT_NEAR(error.ratio(), 1.2, 1e-9);
}

TEST(ModelError, StaysWhereOneIsFarOff) {
    ModelError error;
    for (int k = 0; k < 100; ++k) error.add(100, 100);
    error.add(100, 300);
    EXPECT_FALSE(error.drifts());
    EXPECT_LT(error.ratio(), 1.15);
}

TEST(ModelError, FollowsAChangeWhateverWasBefore) {
    ModelError error;
    for (int k = 0; k < 10'000; ++k) error.add(100, 100);
    int changed = 0;
    for (; changed < 1000 && !error.drifts(); ++changed) error.add(100, 130);
    EXPECT_LT(changed, 16);
    for (int k = 0; k < 64; ++k) error.add(100, 130);
    EXPECT_NEAR(error.ratio(), 1.3, 0.01);
}

TEST(ModelError, NoiseIsNoDrift) {
    ModelError error;
    for (int k = 0; k < 1000; ++k) {
        error.add(100, k % 2 == 0 ? 90 : 110);
        EXPECT_FALSE(error.drifts()) << k;
    }
}

TEST(KernelClass, IsToldByTheName) {
    EXPECT_EQ(kernel_class("ampere_sgemm_128x64_tn"), OperationClass::Product);
    EXPECT_EQ(kernel_class("void cutlass::Kernel2<...>"), OperationClass::Product);
    EXPECT_EQ(kernel_class("cudnnConvolutionForward"), OperationClass::Convolution);
    EXPECT_EQ(kernel_class("sm80_xmma_wgrad_implicit_gemm_tf32"), OperationClass::Convolution);
    EXPECT_EQ(kernel_class("vectorized_elementwise_kernel"), OperationClass::Other);
    EXPECT_EQ(kernel_class(""), OperationClass::Other);
}

TEST(KernelTimesModel, ComparesEachTimeWithTheMeanOfThoseBefore) {
    KernelTimesModel model;
    model.add(7, 7, OperationClass::Product, 100);
    EXPECT_EQ(model.error(OperationClass::Product).count(), 0U);  // there was nothing to go by
    model.add(7, 7, OperationClass::Product, 200);                // 100 for 200
    model.add(7, 7, OperationClass::Product, 100);                // 150 for 100
    EXPECT_EQ(model.error(OperationClass::Product).count(), 2U);
    EXPECT_NEAR(model.error(OperationClass::Product).mean_percent(), 50, 1e-9);
    EXPECT_EQ(model.error(OperationClass::Other).count(), 0U);
}

TEST(KernelTimesModel, KeepsSignaturesApartAlsoWhereTheyMeet) {
    KernelTimesModel model;
    constexpr std::uint64_t kMeets = 7 + (std::uint64_t{1} << 40);
    model.add(7, 7, OperationClass::Other, 100);
    model.add(kMeets, kMeets, OperationClass::Other, 1);
    model.add(7, 7, OperationClass::Other, 100);
    EXPECT_EQ(model.error(OperationClass::Other).count(), 0U);
    EXPECT_DOUBLE_EQ(model.mean_us(7, 7, -1), 100);
    EXPECT_DOUBLE_EQ(model.mean_us(kMeets, kMeets, -1), -1);
    EXPECT_DOUBLE_EQ(model.mean_us(8, 8, 5), 5);
}

TEST(KernelTimesModel, KeepsSizesOfASignatureApart) {
    KernelTimesModel model;
    for (int k = 0; k < 3; ++k) {
        model.add(7, 71, OperationClass::Other, 100);
        model.add(7, 72, OperationClass::Other, 400);
    }
    EXPECT_EQ(model.error(OperationClass::Other).count(), 4U);
    EXPECT_DOUBLE_EQ(model.error(OperationClass::Other).mean_percent(), 0);
    EXPECT_DOUBLE_EQ(model.mean_us(7, 72, -1), 400);
    EXPECT_NEAR(model.mean_us(7, 73, -1), 250, 100);  // sizes that are new: any of the signature
}

TEST(KernelTimesModel, MeansFollowWhatIsMeasuredNow) {
    KernelTimesModel model;
    for (int k = 0; k < 10'000; ++k) model.add(3, 3, OperationClass::Other, 100);
    for (int k = 0; k < 64; ++k) model.add(3, 3, OperationClass::Other, 50);
    EXPECT_NEAR(model.mean_us(3, 3, -1), 50, 2);
}

TEST(KernelTimesModel, FillsInOnlyWhatWasMeasuredInNeitherIteration) {
    KernelTimesModel model;
    model.add(7, 7, OperationClass::Other, 100);
    cost::Trace trace;
    const auto add = [&](std::uint64_t signature, double us) {
        trace.ops.emplace_back();
        trace.ops.back().signature = signature;
        trace.ops.back().duration_us = us;
    };
    const double first[] = {30, -1, -1, -1};
    const double second[] = {-1, 500, -1, -1};
    for (const double* iteration : {first, second})
        for (int i = 0; i < 4; ++i) add(i < 3 ? 7 : 8, iteration[i]);
    model.fill_in(&trace);
    std::vector<double> filled;
    for (const cost::Trace::Op& op : trace.ops) filled.push_back(op.duration_us);
    EXPECT_EQ(filled, (std::vector<double>{30, -1, 100, -1, -1, 500, 100, -1}));
}

}  // namespace
}  // namespace libswap
