// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/link/loggp.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {

namespace {

/// Time between messages of a train, from trains of different lengths of one message size.
double train_gap_us(const std::vector<Train>& trains, double setup_us, double us_per_byte) {
    std::vector<double> gaps;
    for (const Train& train : trains) {
        if (train.count < 2) continue;
        const double first = setup_us + us_per_byte * static_cast<double>(train.bytes);
        gaps.push_back((train.us - first) / (train.count - 1) -
                       us_per_byte * static_cast<double>(train.bytes));
    }
    return gaps.empty() ? 0 : std::max(0.0, robust_mean(gaps));
}

void tell_apart(const LinkMeasurements& measured, cost::LogGp& model) {
    const double setup = model.setup_us();
    const double rate = model.small_gbps > 0 ? model.small_gbps : model.gbps;
    model.overhead_us = std::min(setup, robust_mean(measured.submit_us));
    const double gap = train_gap_us(measured.trains, setup, 1e-3 / rate);
    model.gap_us = std::min(gap, setup - model.overhead_us);
    model.latency_us = setup - model.overhead_us - model.gap_us;
}

/// Draws as many samples of each size as there are.
std::vector<cost::LinkSample> resampled(const std::vector<cost::LinkSample>& samples,
                                        std::mt19937& random) {
    std::map<std::uint64_t, std::vector<double>> by_size;
    for (const auto& s : samples) by_size[s.bytes].push_back(s.us);
    std::vector<cost::LinkSample> drawn;
    for (const auto& [bytes, times] : by_size) {
        std::uniform_int_distribution<std::size_t> any(0, times.size() - 1);
        for (std::size_t k = 0; k < times.size(); ++k) drawn.push_back({bytes, times[any(random)]});
    }
    return drawn;
}

Interval middle_95(std::vector<double> values, double otherwise) {
    if (values.empty()) return {otherwise, otherwise};
    return {quantile(values, 0.025), quantile(values, 0.975)};
}

}  // namespace

double robust_mean(const std::vector<double>& values) {
    constexpr double kHuber = 1.345;
    constexpr int kRounds = 30;
    double mean = median(values);
    const double sigma = robust_deviation(values);
    if (sigma <= 0) return mean;
    for (int round = 0; round < kRounds; ++round) {
        double weights = 0;
        double sum = 0;
        for (const double v : values) {
            const double off = std::abs(v - mean) / sigma;
            const double weight = off <= kHuber ? 1 : kHuber / off;
            weights += weight;
            sum += weight * v;
        }
        mean = sum / weights;
    }
    return mean;
}

tl::expected<LogGpFit, std::string> fit_loggp(const LinkMeasurements& measured, int resamples) {
    auto fit = cost::fit_link(measured.transfers);
    if (!fit) return tl::unexpected(fit.error());
    LogGpFit result;
    result.fit = *fit;
    const double setup = fit->model.setup_us();
    std::vector<double> setups;
    std::vector<double> rates;
    std::mt19937 random(5);
    for (int k = 0; k < resamples; ++k) {
        const auto again = cost::fit_link(resampled(measured.transfers, random));
        if (!again) continue;
        setups.push_back(again->model.setup_us());
        rates.push_back(again->model.gbps);
    }
    result.setup_us = middle_95(std::move(setups), setup);
    result.gbps = middle_95(std::move(rates), fit->model.gbps);
    if (!measured.submit_us.empty() && !measured.trains.empty())
        tell_apart(measured, result.fit.model);
    return result;
}

}  // namespace libswap::bench
