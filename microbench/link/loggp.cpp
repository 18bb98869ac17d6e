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

/// What repeated messages of one size say counts as far as it is the model's of all sizes: they may
/// move in another way than others.
constexpr double kMostApart = 0.1;

/// Few values may lie close together by chance, and count as less certain than they look.
constexpr double kFew = 10;

Estimate mean_of(const std::vector<double>& values) {
    if (values.empty()) return {};
    const auto count = static_cast<double>(values.size());
    return {robust_mean(values), robust_deviation(values) / std::sqrt(count) * (1 + kFew / count)};
}

double rate_of(const cost::LogGp& model, std::uint64_t bytes) {
    return 1 / model.bytes_per_us(bytes);
}

/// What repeated messages give, or what is known without.
Estimate refined(double known, const Estimate& repeated) {
    const bool is_close = std::abs(repeated.value - known) <= kMostApart * known;
    return repeated.value > 0 && is_close ? repeated : Estimate{known, 0};
}

Estimate setup_of(const LinkMeasurements& measured, const cost::LogGp& model) {
    if (measured.small.us.empty()) return {model.setup_us(), 0};
    const Estimate mean = mean_of(measured.small.us);
    const double moving =
        rate_of(model, measured.small.bytes) * static_cast<double>(measured.small.bytes);
    return refined(model.setup_us(), {mean.value - moving, mean.error});
}

Estimate rate_of_large(const LinkMeasurements& measured, const cost::LogGp& model,
                       double setup_us) {
    const double known = 1e-3 / model.gbps;
    if (measured.large.us.empty()) return {known, 0};
    const Estimate mean = mean_of(measured.large.us);
    const auto bytes = static_cast<double>(measured.large.bytes);
    return refined(known, {(mean.value - setup_us) / bytes, mean.error / bytes});
}

/// Time between messages of a train beyond what their bytes take.
Estimate gap_of(const LinkMeasurements& measured, const cost::LogGp& model, double setup_us) {
    std::vector<double> gaps;
    for (const Train& train : measured.trains) {
        if (train.count < 2) continue;
        const double moving = rate_of(model, train.bytes) * static_cast<double>(train.bytes);
        gaps.push_back((train.us - setup_us - moving) / (train.count - 1) - moving);
    }
    Estimate gap = mean_of(gaps);
    gap.value = std::max(0.0, gap.value);
    return gap;
}

void take_over(const LinkMeasurements& measured, cost::LogGp& model) {
    const LinkParameters found = estimate(measured, model);
    model.gbps = 1e-3 / found.us_per_byte.value;
    model.latency_us = found.latency_us.value;
    model.overhead_us = found.overhead_us.value;
    model.gap_us = found.gap_us.value;
}

std::vector<double> resampled(const std::vector<double>& values, std::mt19937& random) {
    std::vector<double> drawn;
    if (values.empty()) return drawn;
    std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
    for (std::size_t k = 0; k < values.size(); ++k) drawn.push_back(values[any(random)]);
    return drawn;
}

/// Draws as many samples of each kind and size as there are.
LinkMeasurements resampled(const LinkMeasurements& measured, std::mt19937& random) {
    LinkMeasurements drawn;
    std::map<std::uint64_t, std::vector<double>> by_size;
    for (const auto& s : measured.transfers) by_size[s.bytes].push_back(s.us);
    for (const auto& [bytes, times] : by_size)
        for (const double us : resampled(times, random)) drawn.transfers.push_back({bytes, us});
    drawn.small = {measured.small.bytes, resampled(measured.small.us, random)};
    drawn.large = {measured.large.bytes, resampled(measured.large.us, random)};
    drawn.submit_us = resampled(measured.submit_us, random);
    if (measured.trains.empty()) return drawn;
    std::uniform_int_distribution<std::size_t> any(0, measured.trains.size() - 1);
    for (std::size_t k = 0; k < measured.trains.size(); ++k)
        drawn.trains.push_back(measured.trains[any(random)]);
    return drawn;
}

Interval middle_95(std::vector<double> values, double otherwise) {
    if (values.empty()) return {otherwise, otherwise};
    return {quantile(values, 0.025), quantile(values, 0.975)};
}

}  // namespace

LinkParameters estimate(const LinkMeasurements& measured, const cost::LogGp& model) {
    LinkParameters found;
    found.setup_us = setup_of(measured, model);
    const double setup = found.setup_us.value;
    found.us_per_byte = rate_of_large(measured, model, setup);
    found.overhead_us = mean_of(measured.submit_us);
    found.overhead_us.value = std::min(setup, found.overhead_us.value);
    found.gap_us = gap_of(measured, model, setup);
    found.gap_us.value = std::min(found.gap_us.value, setup - found.overhead_us.value);
    found.latency_us = {
        setup - found.overhead_us.value - found.gap_us.value,
        std::hypot(found.setup_us.error, found.overhead_us.error, found.gap_us.error)};
    return found;
}

tl::expected<LogGpFit, std::string> fit_loggp(const LinkMeasurements& measured, int resamples) {
    auto fit = cost::fit_link(measured.transfers);
    if (!fit) return tl::unexpected(fit.error());
    LogGpFit result;
    result.fit = *fit;
    take_over(measured, result.fit.model);
    std::vector<double> setups;
    std::vector<double> latencies;
    std::vector<double> rates;
    std::mt19937 random(5);
    for (int k = 0; k < resamples; ++k) {
        const LinkMeasurements drawn = resampled(measured, random);
        auto again = cost::fit_link(drawn.transfers);
        if (!again) continue;
        take_over(drawn, again->model);
        setups.push_back(again->model.setup_us());
        latencies.push_back(again->model.latency_us);
        rates.push_back(again->model.gbps);
    }
    const cost::LogGp& model = result.fit.model;
    result.setup_us = middle_95(std::move(setups), model.setup_us());
    result.latency_us = middle_95(std::move(latencies), model.latency_us);
    result.gbps = middle_95(std::move(rates), model.gbps);
    return result;
}

}  // namespace libswap::bench
