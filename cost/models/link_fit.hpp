// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Fits the LogGP of one direction of the link to measured transfers.
//
//   time(k) = setup + k * G              (Alexandrov et al., 1995; setup = L + o + g)
//
// by iteratively reweighted least squares with Huber's loss on relative errors, so that small and
// large messages count alike and a few wrong samples do not matter. Where small messages are faster
// or slower per byte than large ones, two lines with a break between them are taken, if that makes
// the error clearly smaller.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "cost/link_model.hpp"

namespace libswap::cost {

struct LinkSample {
    std::uint64_t bytes = 0;
    double us = 0;
};

struct LinkFit {
    /// latency_us holds all of L + o + g: single transfers do not tell them apart.
    LogGp model;
    double median_error = 0;   ///< of |measured - model| / model
    double p95_error = 0;      ///< likewise, 95 of 100 samples are within it
    std::size_t outliers = 0;  ///< samples further off than four times the robust spread
    std::size_t samples = 0;
};

/// At least two sizes are needed, and times above zero. The error says what is wrong with the
/// samples.
tl::expected<LinkFit, std::string> fit_link(std::span<const LinkSample> samples);

/// Rate while the other direction is busy, from transfers that were long enough to be so all along:
/// the median of bytes / (us - setup). Unit 1e9 bytes per second; 0 if there are no samples.
double fit_duplex_gbps(const LogGp& alone, std::span<const LinkSample> samples);

}  // namespace libswap::cost
