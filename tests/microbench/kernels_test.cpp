// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The kernels of the Roofline do the work that they are counted for. Small whole numbers, so that
// any order of additions gives the same.
#include "microbench/device/kernels_ptx.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "microbench/device/session.hpp"

namespace libswap::bench {
namespace {

class RooflineKernel : public testing::Test {
  protected:
    RooflineKernel()
        : a_(session_.driver(), kBytes),
          b_(session_.driver(), kBytes),
          c_(session_.driver(), kBytes) {
        BENCH_CU(session_.driver(), cuMemsetD8(c_.address, 0, kBytes));
    }

    std::vector<float> numbers(std::size_t count) {
        std::uniform_int_distribution<int> any(-3, 3);
        std::vector<float> all(count);
        for (float& value : all) value = static_cast<float>(any(random_));
        return all;
    }
    void send(const DeviceBuffer& to, const std::vector<float>& values) {
        BENCH_CU(session_.driver(),
                 cuMemcpyHtoD(to.address, values.data(), values.size() * sizeof(float)));
    }
    std::vector<float> fetch(const DeviceBuffer& from, std::size_t count) {
        std::vector<float> values(count);
        BENCH_CU(session_.driver(),
                 cuMemcpyDtoH(values.data(), from.address, count * sizeof(float)));
        return values;
    }
    void launch(const std::string& ptx, const char* name, unsigned grid_x, unsigned grid_y,
                void** parameters) {
        const Module module(session_.driver(), ptx.c_str());
        BENCH_CU(session_.driver(),
                 cuLaunchKernel(module.function(name), grid_x, grid_y, 1, kKernelThreads, 1, 1, 0,
                                session_.stream(), parameters, nullptr));
        session_.synchronize();
    }

    static constexpr std::uint64_t kBytes = std::uint64_t{2} << 20;
    Session session_;
    DeviceBuffer a_, b_, c_;
    std::mt19937 random_{1};
};

TEST_F(RooflineKernel, MultipliesMatrices) {
    unsigned n = 2 * kProductTile;
    const auto a = numbers(n * n);
    const auto b = numbers(n * n);
    send(a_, a);
    send(b_, b);
    void* parameters[] = {&a_.address, &b_.address, &c_.address, &n};
    launch(product_ptx(), "bench_product", 2, 2, parameters);
    const auto c = fetch(c_, n * n);
    for (unsigned row = 0; row < n; ++row)
        for (unsigned column = 0; column < n; ++column) {
            float sum = 0;
            for (unsigned k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
            ASSERT_EQ(c[row * n + column], sum) << row << ", " << column;
        }
}

TEST_F(RooflineKernel, Convolves) {
    constexpr unsigned kChannels = 16;
    constexpr unsigned kSide = kConvolutionSide, kPadded = kConvolutionPadded;
    const auto x = numbers(kChannels * kPadded * kPadded);
    // For every eight channels of the output: by input channel, tap, and output channel.
    const auto w = numbers(kChannels * kChannels * 9);
    send(a_, x);
    send(b_, w);
    void* parameters[] = {&a_.address, &b_.address, &c_.address};
    launch(convolution_ptx(kChannels), "bench_convolution", kSide * kSide / kKernelThreads,
           kChannels / kConvolutionDepth, parameters);
    const auto y = fetch(c_, kChannels * kSide * kSide);
    for (unsigned out = 0; out < kChannels; ++out)
        for (unsigned pixel = 0; pixel < kSide * kSide; pixel += 37) {
            float sum = 0;
            for (unsigned in = 0; in < kChannels; ++in)
                for (unsigned tap = 0; tap < 9; ++tap) {
                    const unsigned row = pixel / kSide + tap / 3;
                    const unsigned column = pixel % kSide + tap % 3;
                    const unsigned weight =
                        ((out / kConvolutionDepth * kChannels + in) * 9 + tap) * kConvolutionDepth +
                        out % kConvolutionDepth;
                    sum += x[(in * kPadded + row) * kPadded + column] * w[weight];
                }
            ASSERT_EQ(y[out * kSide * kSide + pixel], sum) << out << ", " << pixel;
        }
}

TEST_F(RooflineKernel, WorksOnElements) {
    const auto x = numbers(kBytes / sizeof(float));
    send(a_, x);
    std::uint64_t fours = x.size() / 4;
    void* parameters[] = {&a_.address, &c_.address, &fours};
    launch(elementwise_ptx(2), "bench_elementwise", 64, 1, parameters);
    const auto y = fetch(c_, x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
        float value = 0.25f * x[k] + 0.5f;
        for (int step = 0; step < 2; ++step) value = value * x[k] + 0.25f;
        ASSERT_EQ(y[k], std::max(value, x[k])) << k;
    }
}

TEST_F(RooflineKernel, Sums) {
    const auto x = numbers(kBytes / sizeof(float));
    send(a_, x);
    std::uint64_t fours = x.size() / 4;
    void* parameters[] = {&a_.address, &c_.address, &fours};
    launch(reduction_ptx(), "bench_reduction", 40, 1, parameters);
    float sum = 0;
    for (const float value : x) sum += value;
    EXPECT_EQ(fetch(c_, 1)[0], sum);
}

}  // namespace
}  // namespace libswap::bench
