// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <vector>

namespace libswap::bench {

/// Lower median; 0 of nothing.
double median(std::vector<double> values);
/// Value that a part `q` (0 to 1) of the values is at most; 0 of nothing.
double quantile(std::vector<double> values, double q);
/// Standard deviation of normal errors, from the median of absolute deviations from the median.
double robust_deviation(const std::vector<double>& values);
/// Mean of normal values among which some are wrong (Tukey's, 95 % as efficient as the mean): those
/// far off do not count at all.
double robust_mean(const std::vector<double>& values);

/// What a repeated measurement comes to.
struct Spread {
    double median = 0;
    double least = 0;
    double spread_percent = 0;  ///< robust deviation over the median
    std::size_t samples = 0;
};
Spread spread_of(const std::vector<double>& values);

}  // namespace libswap::bench
