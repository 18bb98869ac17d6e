// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/link/sampling.hpp"

#include <algorithm>

namespace libswap::bench {

namespace {

constexpr double kPrecise = 0.005;  ///< standard error, of a parameter
constexpr std::uint64_t kSmallBytes = 4096;
constexpr std::uint64_t kLargeBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kFewOf = std::uint64_t{32} << 20;
constexpr std::size_t kFew = 5;
/// Trains as long as the setup of a few messages tell most about gaps in the time that they take.
constexpr std::uint32_t kTrain = 16;
constexpr std::size_t kSinglesPerTrain = 4;
constexpr std::size_t kAtFirst = 12;
/// How many more there are when they are looked at again.
constexpr double kGrowth = 1.25;

std::size_t grown(std::size_t count) {
    return static_cast<std::size_t>(static_cast<double>(count) * kGrowth) + 1;
}

bool is_known(const Estimate& estimate) { return estimate.error <= kPrecise * estimate.value; }

void sweep(const LinkSource& source, const LinkEffort& effort, LinkMeasurements& measured) {
    for (std::uint64_t bytes = kSmallBytes; bytes <= effort.most_bytes; bytes *= effort.step) {
        source.transfer(bytes);
        const std::size_t times = bytes > kFewOf ? std::min(kFew, effort.of_each) : effort.of_each;
        for (std::size_t k = 0; k < times; ++k)
            measured.transfers.push_back({bytes, source.transfer(bytes)});
    }
}

void repeat_small(const LinkSource& source, const LinkEffort& effort, const cost::LogGp& model,
                  LinkMeasurements& measured) {
    measured.small.bytes = kSmallBytes;
    source.train(kTrain, kSmallBytes);
    double spent_us = 0;
    for (std::size_t trains = kAtFirst; spent_us < effort.most_us; trains = grown(trains)) {
        while (measured.trains.size() < trains && spent_us < effort.most_us) {
            const LinkSource::TrainTime train = source.train(kTrain, kSmallBytes);
            measured.trains.push_back({kTrain, kSmallBytes, train.us});
            measured.submit_us.push_back(train.submit_us);
            spent_us += train.us;
            for (std::size_t k = 0; k < kSinglesPerTrain; ++k) {
                measured.small.us.push_back(source.transfer(kSmallBytes));
                spent_us += measured.small.us.back();
            }
        }
        const LinkParameters found = estimate(measured, model);
        if (is_known(found.latency_us) && is_known(found.overhead_us) && is_known(found.gap_us))
            break;
    }
}

void repeat_large(const LinkSource& source, const LinkEffort& effort, const cost::LogGp& model,
                  LinkMeasurements& measured) {
    measured.large.bytes = std::min(kLargeBytes, effort.most_bytes);
    for (const cost::LinkSample& s : measured.transfers)
        if (s.bytes == measured.large.bytes) measured.large.us.push_back(s.us);
    double spent_us = 0;
    for (std::size_t times = kAtFirst; spent_us < effort.most_us; times = grown(times)) {
        while (measured.large.us.size() < times && spent_us < effort.most_us) {
            measured.large.us.push_back(source.transfer(measured.large.bytes));
            spent_us += measured.large.us.back();
        }
        if (is_known(estimate(measured, model).us_per_byte)) break;
    }
}

}  // namespace

LinkMeasurements measure_link(const LinkSource& source, const LinkEffort& effort) {
    LinkMeasurements measured;
    sweep(source, effort, measured);
    const auto fit = cost::fit_link(measured.transfers);
    if (!fit) return measured;
    repeat_small(source, effort, fit->model, measured);
    repeat_large(source, effort, fit->model, measured);
    return measured;
}

}  // namespace libswap::bench
