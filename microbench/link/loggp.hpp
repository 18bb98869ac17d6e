// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The four parameters of LogGP (Alexandrov et al., 1995) of one direction of the link.
//
//   one message    t(k) = L + o + g + k G      slope and intercept: cost::fit_link
//   its submission o                           what the host's thread spends
//   n messages     t = t(k) + (n - 1) max(o, g + k G)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cost/models/link_fit.hpp"

namespace libswap::bench {

/// `count` messages in one go.
struct Train {
    std::uint32_t count = 1;
    std::uint64_t bytes = 0;  ///< of each
    double us = 0;            ///< from the first's submission to the last's end
};

struct LinkMeasurements {
    std::vector<cost::LinkSample> transfers;
    std::vector<double> submit_us;  ///< of the host, per message
    std::vector<Train> trains;
};

struct Interval {
    double low = 0, high = 0;
};

struct LogGpFit {
    cost::LinkFit fit;  ///< its model has L, o, g apart where they could be told
    /// 95 % of what resampled measurements give; equal ends where not asked for.
    Interval setup_us, gbps;
};

/// `resamples`: for the intervals; 0 for none. The error says what is wrong with the measurements.
tl::expected<LogGpFit, std::string> fit_loggp(const LinkMeasurements& measured, int resamples);

/// Mean of normal values among which some are wrong (Huber's, 95 % as efficient as the mean).
double robust_mean(const std::vector<double>& values);

}  // namespace libswap::bench
