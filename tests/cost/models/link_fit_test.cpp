// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/models/link_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace libswap::cost {
namespace {

/// Transfers of 4 KiB to 1 GiB that a link of this setup and rate would show.
std::vector<LinkSample> measure(double setup_us, double gbps, double noise, double outliers,
                                std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    std::vector<LinkSample> samples;
    for (std::uint64_t bytes = 4096; bytes <= (std::uint64_t{1} << 30); bytes *= 2) {
        for (int i = 0; i < 64; ++i) {
            double us = setup_us + static_cast<double>(bytes) / (gbps * 1e3);
            us *= std::max(0.2, 1 + noise * normal(random));
            if (uniform(random) < outliers) us *= 5 + 20 * uniform(random);
            samples.push_back({bytes, us});
        }
    }
    return samples;
}

TEST(FitLink, FindsTheExactParametersOfExactTimes) {
    const auto fit = fit_link(measure(12, 25, 0, 0, 1));
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->model.setup_us(), 12, 1e-6);
    EXPECT_NEAR(fit->model.gbps, 25, 1e-6);
    EXPECT_DOUBLE_EQ(fit->model.small_gbps, 0);
    EXPECT_LT(fit->median_error, 1e-9);
    EXPECT_EQ(fit->outliers, 0U);
}

TEST(FitLink, IsWithinTwoPercentUnderNoiseAndOutliers) {
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        for (const auto& [setup, gbps] : {std::pair{12.0, 25.0}, {31.0, 12.36}, {10.0, 55.6}}) {
            const auto fit = fit_link(measure(setup, gbps, 0.10, 0.01, 100 + seed));
            ASSERT_TRUE(fit);
            EXPECT_NEAR(fit->model.gbps / gbps, 1, 0.02) << seed;
            EXPECT_NEAR(fit->model.setup_us() / setup, 1, 0.02) << seed;
            EXPECT_NEAR(fit->median_error, 0.067, 0.02);  // of normal errors of 10 %
            EXPECT_GE(fit->outliers, 1U);
            EXPECT_LT(fit->outliers, fit->samples / 20);
        }
    }
}

/// te42kyfo/gpu-benches, README: host to device copies of a V100 on PCIe 3.
TEST(FitLink, GivesThePublishedFitOfThePublishedSweep) {
    const std::vector<LinkSample> sweep{
        {4'000'000, 370}, {16'000'000, 1380}, {1'000'000'000, 86'910}};
    // The sweep's sizes are binary, as the times show: 1 GiB in 86.91 ms is 12.35 GB/s.
    std::vector<LinkSample> binary;
    for (const LinkSample& s : sweep) {
        const double mib = static_cast<double>(s.bytes) / 1e6;
        const double exact = mib >= 1000 ? 1024 : mib;
        binary.push_back({static_cast<std::uint64_t>(exact * 1048576), s.us});
    }
    const auto fit = fit_link(binary);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->model.gbps / 12.36, 1, 0.005);  // times are given to two decimals
    EXPECT_NEAR(fit->model.setup_us(), 31, 3);
}

TEST(FitLink, TellsSmallMessagesFromLargeOnes) {
    std::vector<LinkSample> samples;
    for (std::uint64_t bytes = 4096; bytes <= (64 << 20); bytes *= 2) {
        const double gbps = bytes <= 262'144 ? 4 : 24;
        for (int i = 0; i < 3; ++i) {
            samples.push_back({bytes, 10 + static_cast<double>(bytes) / (gbps * 1e3)});
        }
    }
    const auto fit = fit_link(samples);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->model.gbps, 24, 0.5);
    EXPECT_NEAR(fit->model.small_gbps, 4, 0.1);
    EXPECT_EQ(fit->model.small_bytes, 262'144U);
    EXPECT_NEAR(fit->model.setup_us(), 10, 0.2);
    EXPECT_LT(fit->p95_error, 0.03);
}

TEST(FitLink, SaysWhatIsWrongWithTheSamples) {
    EXPECT_FALSE(fit_link({}));
    EXPECT_FALSE(fit_link(std::vector<LinkSample>{{100, 1}, {100, 2}}));
    EXPECT_FALSE(fit_link(std::vector<LinkSample>{{100, 1}, {200, 0}}));
    EXPECT_FALSE(fit_link(std::vector<LinkSample>{{100, 1}, {200, NAN}}));
}

TEST(FitDuplex, IsTheMedianRateWhileBothDirectionsMove) {
    const LogGp alone{.latency_us = 12, .gbps = 25};
    std::vector<LinkSample> samples;
    for (int i = 0; i < 9; ++i) samples.push_back({64 << 20, 12 + (64 << 20) / 18.4e3});
    samples.push_back({64 << 20, 1e9});
    EXPECT_NEAR(fit_duplex_gbps(alone, samples), 18.4, 1e-6);
    EXPECT_EQ(fit_duplex_gbps(alone, {}), 0);
}

}  // namespace
}  // namespace libswap::cost
