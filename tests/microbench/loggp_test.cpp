// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/link/loggp.hpp"

#include <gtest/gtest.h>

#include <random>

namespace libswap::bench {
namespace {

struct Truth {
    double latency_us, overhead_us, gap_us, gbps;
    double setup_us() const { return latency_us + overhead_us + gap_us; }
    double us(std::uint64_t bytes) const {
        return setup_us() + static_cast<double>(bytes) / (1e3 * gbps);
    }
};

/// A link measured with this noise, and some samples far off.
LinkMeasurements measure(const Truth& truth, double noise, double outliers, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const auto noisy = [&](double us) {
        us *= std::max(0.2, 1 + noise * normal(random));
        return uniform(random) < outliers ? us * (5 + 20 * uniform(random)) : us;
    };
    LinkMeasurements measured;
    for (std::uint64_t bytes = 4096; bytes <= (std::uint64_t{1} << 28); bytes *= 2) {
        for (int k = 0; k < 64; ++k) measured.transfers.push_back({bytes, noisy(truth.us(bytes))});
    }
    for (int k = 0; k < 400; ++k) {
        measured.submit_us.push_back(noisy(truth.overhead_us));
        constexpr std::uint64_t kBytes = 4096;
        const double next = std::max(
            truth.overhead_us, truth.gap_us + static_cast<double>(kBytes) / (1e3 * truth.gbps));
        measured.trains.push_back({64, kBytes, noisy(truth.us(kBytes) + 63 * next)});
    }
    return measured;
}

TEST(FitLogGp, TellsTheFourParametersOfExactTimes) {
    const Truth truth{7, 1, 4, 25};
    const auto fit = fit_loggp(measure(truth, 0, 0, 1), 0);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->fit.model.latency_us, 7, 1e-6);
    EXPECT_NEAR(fit->fit.model.overhead_us, 1, 1e-6);
    EXPECT_NEAR(fit->fit.model.gap_us, 4, 1e-6);
    EXPECT_NEAR(fit->fit.model.gbps, 25, 1e-6);
}

TEST(FitLogGp, IsWithinTwoPercentUnderNoiseAndOutliers) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        for (const Truth& truth :
             {Truth{7, 1, 4, 25}, Truth{20, 3, 8, 12.36}, Truth{4, 1.5, 5, 55.6}}) {
            const auto fit = fit_loggp(measure(truth, 0.10, 0.01, seed), 0);
            ASSERT_TRUE(fit);
            const cost::LogGp& model = fit->fit.model;
            EXPECT_NEAR(model.gbps / truth.gbps, 1, 0.02) << seed;
            EXPECT_NEAR(model.setup_us() / truth.setup_us(), 1, 0.02) << seed;
            EXPECT_NEAR(model.overhead_us / truth.overhead_us, 1, 0.02) << seed;
            EXPECT_NEAR(model.gap_us / truth.gap_us, 1, 0.02) << seed;
        }
    }
}

/// L is what the other three leave of the setup, and as uncertain as that.
TEST(FitLogGp, IsWithinTwoPercentOfAnyLink) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> part;
    for (std::uint32_t seed = 1000; seed < 1100; ++seed) {
        Truth truth{3 + 20 * part(random), 0, 2 + 8 * part(random), 6 + 60 * part(random)};
        truth.overhead_us = truth.gap_us * (0.1 + 0.7 * part(random));
        const auto fit = fit_loggp(measure(truth, 0.10, 0.01, seed), 0);
        ASSERT_TRUE(fit);
        const cost::LogGp& model = fit->fit.model;
        EXPECT_NEAR(model.gbps / truth.gbps, 1, 0.02) << seed;
        EXPECT_NEAR(model.setup_us() / truth.setup_us(), 1, 0.02) << seed;
        EXPECT_NEAR(model.overhead_us / truth.overhead_us, 1, 0.02) << seed;
        EXPECT_NEAR(model.gap_us / truth.gap_us, 1, 0.02) << seed;
        EXPECT_NEAR(model.latency_us, truth.latency_us, 0.02 * truth.setup_us()) << seed;
    }
}

TEST(FitLogGp, SaysHowSureItIs) {
    const Truth truth{7, 1, 4, 25};
    int covered = 0;
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        const auto fit = fit_loggp(measure(truth, 0.10, 0.01, seed), 40);
        ASSERT_TRUE(fit);
        EXPECT_LT(fit->setup_us.high - fit->setup_us.low, 0.1 * truth.setup_us());
        EXPECT_GT(fit->setup_us.high - fit->setup_us.low, 0.005 * truth.setup_us());
        covered += fit->setup_us.low <= truth.setup_us() && truth.setup_us() <= fit->setup_us.high;
    }
    EXPECT_GE(covered, 4);
}

/// te42kyfo/gpu-benches, README: copies of 4 and 16 MiB and 1 GiB to a V100 on PCIe 3 take
/// .37, 1.38 and 86.91 ms; G = 1 / 12.36 GB/s and a setup of 31 us follow.
TEST(FitLogGp, GivesThePublishedFitOfThePublishedSweep) {
    LinkMeasurements measured;
    measured.transfers = {{4 << 20, 370}, {16 << 20, 1380}, {std::uint64_t{1} << 30, 86'910}};
    const auto fit = fit_loggp(measured, 0);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->fit.model.gbps / 12.36, 1, 0.005);
    EXPECT_NEAR(fit->fit.model.setup_us(), 31, 3);
}

TEST(FitLogGp, SaysWhatIsWrongWithTheMeasurements) { EXPECT_FALSE(fit_loggp({}, 10)); }

}  // namespace
}  // namespace libswap::bench
