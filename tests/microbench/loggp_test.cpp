// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/link/sampling.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace libswap::bench {
namespace {

struct Truth {
    double latency_us, overhead_us, gap_us, gbps;
    double setup_us() const { return latency_us + overhead_us + gap_us; }
    double us(std::uint64_t bytes) const {
        return setup_us() + static_cast<double>(bytes) / (1e3 * gbps);
    }
};

/// A link with this noise, on which some messages take far too long.
class MadeUpLink {
  public:
    MadeUpLink(const Truth& truth, double noise, double outliers, std::uint32_t seed)
        : truth_(truth), noise_(noise), outliers_(outliers), random_(seed) {}

    LinkMeasurements measure(const LinkEffort& effort = kFullLink) {
        const LinkSource source{
            [this](std::uint64_t bytes) {
                const double us = noisy(truth_.us(bytes));
                taken_us_ += us;
                return us;
            },
            [this](std::uint32_t count, std::uint64_t bytes) {
                const double moving = static_cast<double>(bytes) / (1e3 * truth_.gbps);
                const double next = std::max(truth_.overhead_us, truth_.gap_us + moving);
                const double us = noisy(truth_.us(bytes) + (count - 1) * next);
                taken_us_ += us;
                return LinkSource::TrainTime{us, noisy(truth_.overhead_us)};
            }};
        return measure_link(source, effort);
    }
    double taken_us() const { return taken_us_; }

  private:
    double noisy(double us) {
        us *= std::max(0.2, 1 + noise_ * normal_(random_));
        return uniform_(random_) < outliers_ ? us * (5 + 20 * uniform_(random_)) : us;
    }

    const Truth truth_;
    const double noise_, outliers_;
    std::mt19937 random_;
    std::normal_distribution<double> normal_;
    std::uniform_real_distribution<double> uniform_;
    double taken_us_ = 0;
};

void expect_near(const cost::LogGp& model, const Truth& truth, double part, std::uint32_t seed) {
    EXPECT_NEAR(model.latency_us / truth.latency_us, 1, part) << seed;
    EXPECT_NEAR(model.overhead_us / truth.overhead_us, 1, part) << seed;
    EXPECT_NEAR(model.gap_us / truth.gap_us, 1, part) << seed;
    EXPECT_NEAR(model.gbps / truth.gbps, 1, part) << seed;
}

TEST(FitLogGp, TellsTheFourParametersOfExactTimes) {
    const Truth truth{7, 1, 4, 25};
    for (const LinkEffort& effort : {kQuickLink, kFullLink}) {
        const auto fit = fit_loggp(MadeUpLink(truth, 0, 0, 1).measure(effort), 0);
        ASSERT_TRUE(fit);
        expect_near(fit->fit.model, truth, 1e-6, 1);
    }
}

TEST(FitLogGp, IsWithinTwoPercentUnderNoiseAndOutliers) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        for (const Truth& truth :
             {Truth{7, 1, 4, 25}, Truth{20, 3, 8, 12.36}, Truth{4, 1.5, 5, 55.6}}) {
            const auto fit = fit_loggp(MadeUpLink(truth, 0.10, 0.01, seed).measure(), 0);
            ASSERT_TRUE(fit);
            expect_near(fit->fit.model, truth, 0.02, seed);
        }
    }
}

TEST(FitLogGp, IsWithinTwoPercentOfAnyLink) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> part;
    double longest_us = 0;
    for (std::uint32_t seed = 1000; seed < 1100; ++seed) {
        Truth truth{3 + 20 * part(random), 0, 2 + 8 * part(random), 6 + 60 * part(random)};
        truth.overhead_us = truth.gap_us * (0.1 + 0.7 * part(random));
        MadeUpLink link(truth, 0.10, 0.01, seed);
        const auto fit = fit_loggp(link.measure(), 0);
        ASSERT_TRUE(fit);
        expect_near(fit->fit.model, truth, 0.02, seed);
        longest_us = std::max(longest_us, link.taken_us());
    }
    RecordProperty("longest_ms", std::to_string(longest_us / 1e3));
    EXPECT_LT(longest_us, 10e6);
}

/// What is exact needs few samples.
TEST(MeasureLink, EndsWhereItKnowsEnough) {
    const Truth truth{7, 1, 4, 25};
    MadeUpLink exact(truth, 0, 0, 1);
    MadeUpLink noisy(truth, 0.10, 0.01, 1);
    EXPECT_LT(exact.measure(kQuickLink).small.us.size(), 100u);
    EXPECT_GT(noisy.measure(kFullLink).small.us.size(), 1000u);
    MadeUpLink quick(truth, 0.10, 0.01, 1);
    quick.measure(kQuickLink);
    EXPECT_LT(quick.taken_us(), 1e5);
}

TEST(FitLogGp, SaysHowSureItIs) {
    const Truth truth{7, 1, 4, 25};
    int covered = 0;
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        const auto fit = fit_loggp(MadeUpLink(truth, 0.10, 0.01, seed).measure(), 40);
        ASSERT_TRUE(fit);
        for (const auto& [found, truly] : {std::pair{fit->setup_us, truth.setup_us()},
                                           std::pair{fit->latency_us, truth.latency_us}}) {
            EXPECT_LT(found.high - found.low, 0.05 * truly);
            EXPECT_GT(found.high - found.low, 0.001 * truly);
            covered += found.low <= truly && truly <= found.high;
        }
    }
    EXPECT_GE(covered, 8);
}

/// Messages of one size that move in a way of their own are not taken for all.
TEST(FitLogGp, KeepsToAllSizesWhereSmallOnesDiffer) {
    const Truth truth{7, 1, 4, 25};
    LinkMeasurements measured = MadeUpLink(truth, 0, 0, 1).measure();
    for (double& us : measured.small.us) us *= 2;
    const auto fit = fit_loggp(measured, 0);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->fit.model.setup_us(), truth.setup_us(), 1e-6);
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
