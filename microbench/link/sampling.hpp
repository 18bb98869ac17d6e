// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Which transfers are timed, and how often: until L, o, g and G are known well, or for so long.
#pragma once

#include <functional>

#include "microbench/link/loggp.hpp"

namespace libswap::bench {

/// One direction of a link that can be timed. Unit us
struct LinkSource {
    /// From submission to arrival.
    std::function<double(std::uint64_t bytes)> transfer;
    struct TrainTime {
        double us = 0;         ///< from the first's submission to the last's arrival
        double submit_us = 0;  ///< of the host, per message
    };
    std::function<TrainTime(std::uint32_t count, std::uint64_t bytes)> train;
};

struct LinkEffort {
    std::uint64_t most_bytes = 0;  ///< of one transfer
    std::uint64_t step = 2;        ///< from one size of the sweep to the next
    std::size_t of_each = 0;       ///< transfers of a size, of the largest fewer
    /// Of time that the transfers take, in each of the two that repeat.
    double most_us = 0;
};
inline constexpr LinkEffort kQuickLink{std::uint64_t{32} << 20, 4, 5, 2e4};
inline constexpr LinkEffort kFullLink{std::uint64_t{256} << 20, 2, 24, 4e6};

/// Sweeps sizes; then repeats small messages, one and in trains, until the standard errors of L, o
/// and g are half a percent of them, and large ones until that of G is. The first of each size does
/// not count.
LinkMeasurements measure_link(const LinkSource& source, const LinkEffort& effort);

}  // namespace libswap::bench
