// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The four parameters of LogGP (Alexandrov et al., 1995) of one direction of the link.
//
//   one message    t(k) = L + o + g + k G      slope and intercept: cost::fit_link
//   its submission o                           what the host's thread spends
//   n messages     t = t(k) + (n - 1) max(o, g + k G)
//
// L is what o and g leave of the intercept, and takes the errors of all three: where it is a small
// part, they have to be known far better than L is to be. So small messages are repeated.
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

/// Times of one size of message.
struct Repeated {
    std::uint64_t bytes = 0;
    std::vector<double> us;
};

struct LinkMeasurements {
    std::vector<cost::LinkSample> transfers;  ///< some of each size
    Repeated small, large;                    ///< many of one size; may be empty
    std::vector<double> submit_us;            ///< of the host, per message
    std::vector<Train> trains;
};

/// With its standard error.
struct Estimate {
    double value = 0, error = 0;
};

struct LinkParameters {
    Estimate setup_us, latency_us, overhead_us, gap_us;
    Estimate us_per_byte;
};
/// What repeated messages say, beside a model of all sizes.
LinkParameters estimate(const LinkMeasurements& measured, const cost::LogGp& model);

struct Interval {
    double low = 0, high = 0;
};

struct LogGpFit {
    cost::LinkFit fit;  ///< its model has L, o, g apart where they could be told
    /// 95 % of what resampled measurements give; equal ends where not asked for.
    Interval setup_us, latency_us, gbps;
};

/// `resamples`: for the intervals; 0 for none. The error says what is wrong with the measurements.
tl::expected<LogGpFit, std::string> fit_loggp(const LinkMeasurements& measured, int resamples);

}  // namespace libswap::bench
