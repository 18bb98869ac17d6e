// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Latency over footprint: each level of a hierarchy is a plateau.
#pragma once

#include <cstdint>
#include <vector>

#include "microbench/hierarchy/prober.hpp"

namespace libswap::bench {

struct CurvePoint {
    std::uint64_t footprint_bytes = 0;
    double median_cycles = 0;
    double p10_cycles = 0, p90_cycles = 0;
};

struct LatencyLevel {
    double cycles = 0;
    double deviation = 0;  ///< relative, robust
    /// Smallest and largest footprint at which most loads took this long.
    std::uint64_t first_bytes = 0, last_bytes = 0;
};

struct LatencyCurve {
    std::vector<CurvePoint> points;
    std::vector<LatencyLevel> levels;  ///< nearest first
};

/// How a curve is measured: circles of 2, 4, 8, ... loads with this step between them.
struct CurveRequest {
    LoadPath path = LoadPath::Data;
    std::uint64_t step_bytes = 128;
    std::uint64_t most_bytes = 0;
};

LatencyCurve measure_latency_curve(Prober& prober, const CurveRequest& request);

/// Which of two latencies a load had. `hit` and `miss` have the deviations of their levels.
struct Threshold {
    double hit_cycles = 0;
    double miss_cycles = 0;
    double hit_deviation = 0.01;  ///< relative
    double miss_deviation = 0.01;

    /// Such that of `loads` hits hardly one is above it, as far as misses stay above it.
    std::uint32_t cycles(std::uint64_t loads) const;
};
Threshold threshold_between(const LatencyLevel& hit, const LatencyLevel& miss);

}  // namespace libswap::bench
