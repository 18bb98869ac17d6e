// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace libswap::bench {

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double robust_deviation(const std::vector<double>& values) {
    constexpr double kMadToSigma = 1.4826;  // of normal errors
    const double middle = median(values);
    std::vector<double> off;
    off.reserve(values.size());
    for (const double v : values) off.push_back(std::abs(v - middle));
    return kMadToSigma * median(std::move(off));
}

double robust_mean(const std::vector<double>& values) {
    constexpr double kTukey = 4.685;
    constexpr int kRounds = 12;
    double mean = median(values);
    const double reach = kTukey * robust_deviation(values);
    if (reach <= 0) return mean;
    for (int round = 0; round < kRounds; ++round) {
        double weights = 0;
        double sum = 0;
        for (const double v : values) {
            const double off = (v - mean) / reach;
            if (std::abs(off) >= 1) continue;
            const double weight = (1 - off * off) * (1 - off * off);
            weights += weight;
            sum += weight * v;
        }
        mean = sum / weights;
    }
    return mean;
}

Spread spread_of(const std::vector<double>& values) {
    Spread spread;
    if (values.empty()) return spread;
    spread.median = median(values);
    spread.least = *std::min_element(values.begin(), values.end());
    if (spread.median > 0) spread.spread_percent = 100 * robust_deviation(values) / spread.median;
    spread.samples = values.size();
    return spread;
}

}  // namespace libswap::bench
