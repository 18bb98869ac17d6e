// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/models/kernel_work.hpp"

#include <gtest/gtest.h>

#include "cost/models/compute_model.hpp"

namespace libswap::cost {
namespace {

/// Counts what a convolution does, one multiplication at a time.
double counted_flops(const ConvShape& s) {
    double flops = 0;
    for (std::int64_t k = 0; k < s.out_channels; ++k) {
        for (std::int64_t p = 0; p < s.out_height(); ++p) {
            for (std::int64_t q = 0; q < s.out_width(); ++q) {
                for (std::int64_t c = 0; c < s.in_channels / s.groups; ++c) {
                    flops += 2.0 * static_cast<double>(s.kernel_height * s.kernel_width);
                }
            }
        }
    }
    return flops * static_cast<double>(s.batch);
}

TEST(KernelWork, ConvolutionsDoWhatTheirLoopsDo) {
    const ConvShape shapes[] = {{2, 3, 9, 8, 4, 3, 3, 1, 1, 1},
                                {1, 8, 16, 16, 8, 5, 3, 2, 2, 4},
                                {3, 4, 7, 7, 6, 1, 1, 1, 0, 1}};
    for (const ConvShape& s : shapes) EXPECT_DOUBLE_EQ(s.flops(), counted_flops(s));
}

/// The first layer of ResNet: 118 million multiplications and additions per image.
TEST(KernelWork, KnowsAPublishedLayer) {
    const ConvShape s{1, 3, 224, 224, 64, 7, 7, 2, 3, 1};
    EXPECT_EQ(s.out_height(), 112);
    EXPECT_DOUBLE_EQ(s.flops(), 2 * 118'013'952.0);
    const double bytes = 4.0 * (3 * 224 * 224 + 64 * 112 * 112 + 64 * 3 * 7 * 7);
    for (const KernelWork& w :
         {conv_forward(s, DataType::Fp32), conv_backward_data(s, DataType::Fp32),
          conv_backward_filter(s, DataType::Fp32)}) {
        EXPECT_DOUBLE_EQ(w.flops, s.flops());
        EXPECT_DOUBLE_EQ(w.bytes, bytes);
    }
    EXPECT_DOUBLE_EQ(conv_forward(s, DataType::Fp16).bytes, bytes / 2);
}

TEST(KernelWork, ProductsAndArraysCountOperandsOnce) {
    const KernelWork product = matrix_product(10, 20, 30, 2, DataType::Fp32);
    EXPECT_DOUBLE_EQ(product.flops, 2.0 * 2 * 10 * 20 * 30);
    EXPECT_DOUBLE_EQ(product.bytes, 4.0 * 2 * (10 * 30 + 30 * 20 + 10 * 20));
    EXPECT_DOUBLE_EQ(elementwise(100, 2, 1, 1, DataType::Fp64).bytes, 2400);
    EXPECT_DOUBLE_EQ(reduction(1000, 10, DataType::Fp32).bytes, 4040);
    EXPECT_DOUBLE_EQ(reduction(1000, 10, DataType::Fp32).flops, 1000);
}

TEST(Roofline, TakesTheLowerCeilingOfTheDataType) {
    const Ceilings c{.fp32_tflops = 10, .mem_gbps = 1000, .launch_us = 2, .fp16_tflops = 100};
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e9, 0), 102);  // bound by computing
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e9, 0, DataType::Fp16), 12);
    EXPECT_DOUBLE_EQ(roofline_us(c, 0, 1e6), 3);                    // by memory
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e9, 0, DataType::Tf32), 102);  // not given: as fp32
    EXPECT_DOUBLE_EQ(roofline_us(c, 1e9, 0, DataType::Fp64), 202);  // half of it
}

TEST(ComputeModel, MeasuredTimesOverrideAndCorrectTheirClass) {
    const Ceilings ceilings{.fp32_tflops = 10, .mem_gbps = 1000, .launch_us = 0};
    ComputeModel model(ceilings);
    const KernelWork small = matrix_product(256, 256, 256, 1, DataType::Fp32);
    const KernelWork twice = matrix_product(512, 256, 256, 1, DataType::Fp32);
    const KernelWork other = elementwise(1e6, 1, 1, 1, DataType::Fp32);
    const double roofline = model.predict_us(small);
    for (const double factor : {1.9, 2.0, 50.0}) model.observe(7, small, factor * roofline);
    EXPECT_DOUBLE_EQ(model.time_us(7, small), (1.9 + 2.0 + 50.0) / 3 * roofline);
    // The median of the class, which one slow run does not move.
    EXPECT_DOUBLE_EQ(model.correction(KernelClass::MatrixProduct), 2.0);
    EXPECT_DOUBLE_EQ(model.time_us(8, twice), 2.0 * work_us(ceilings, twice, DataType::Fp32));
    EXPECT_DOUBLE_EQ(model.time_us(9, other), work_us(ceilings, other, DataType::Fp32));
    model.observe(9, other, -1);
    EXPECT_DOUBLE_EQ(model.correction(KernelClass::Elementwise), 1);
}

}  // namespace
}  // namespace libswap::cost
