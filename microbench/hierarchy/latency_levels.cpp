// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/latency_levels.hpp"

#include <algorithm>
#include <cmath>

#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint32_t kTold = 2048;
constexpr double kOneLevel = 1.12;  // medians within this factor belong to one plateau
constexpr double kLeastDeviation = 0.004;
constexpr double kOwnSigmas = 4;

struct Footprint {
    CurvePoint point;
    std::vector<double> cycles;
};

Footprint measure(Prober& prober, const CurveRequest& request, std::uint64_t loads) {
    Sweep sweep;
    sweep.path = request.path;
    sweep.step_bytes = request.step_bytes;
    sweep.length_bytes = loads * request.step_bytes;
    sweep.skip = static_cast<std::uint32_t>(std::max<std::uint64_t>(loads, 64));
    sweep.count = kTold;
    Footprint footprint;
    for (const Sample& s : prober.sweep(sweep).samples) footprint.cycles.push_back(s.cycles);
    footprint.point = {sweep.length_bytes, median(footprint.cycles),
                       quantile(footprint.cycles, 0.1), quantile(footprint.cycles, 0.9)};
    return footprint;
}

/// The plateau that footprints `first` to `last` - 1 make: where a footprint is between two
/// plateaus, only the loads of this one count.
LatencyLevel level_of(const std::vector<Footprint>& all, std::size_t first, std::size_t last) {
    std::vector<double> medians;
    for (std::size_t k = first; k < last; ++k) medians.push_back(all[k].point.median_cycles);
    const double middle = median(medians);
    double deviation = 1;
    for (std::size_t k = first; k < last; ++k)
        deviation = std::min(deviation, robust_deviation(all[k].cycles) / middle);
    deviation = std::max(deviation, kLeastDeviation);
    std::vector<double> own;
    for (std::size_t k = first; k < last; ++k) {
        for (const double c : all[k].cycles) {
            if (std::abs(c - middle) <= kOwnSigmas * deviation * middle) own.push_back(c);
        }
    }
    LatencyLevel level;
    level.cycles = median(own);
    level.deviation = std::max(kLeastDeviation, robust_deviation(own) / middle);
    level.first_bytes = all[first].point.footprint_bytes;
    level.last_bytes = all[last - 1].point.footprint_bytes;
    return level;
}

/// A footprint of which half hits and half misses may have a median between both: no plateau, but
/// as wide as the two are apart.
void drop_mixtures(std::vector<LatencyLevel>& levels) {
    constexpr double kWide = 3;
    if (levels.size() < 3) return;
    double least = levels.front().deviation;
    for (const LatencyLevel& level : levels) least = std::min(least, level.deviation);
    for (auto it = levels.begin() + 1; it + 1 != levels.end();) {
        const bool mixture = it->first_bytes == it->last_bytes && it->deviation > kWide * least;
        it = mixture ? levels.erase(it) : it + 1;
    }
}

}  // namespace

const char* load_path_name(LoadPath path) {
    switch (path) {
        case LoadPath::Data:
            return "data";
        case LoadPath::Global:
            return "global";
        case LoadPath::ReadOnly:
            return "read-only";
    }
    return "";
}

LatencyCurve measure_latency_curve(Prober& prober, const CurveRequest& request) {
    std::vector<Footprint> all;
    for (std::uint64_t loads = 2; loads * request.step_bytes <= request.most_bytes; loads *= 2) {
        Footprint footprint = measure(prober, request, loads);
        if (footprint.cycles.empty()) break;
        all.push_back(std::move(footprint));
    }
    LatencyCurve curve;
    std::size_t first = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
        curve.points.push_back(all[k].point);
        const bool ends = k + 1 == all.size() || all[k + 1].point.median_cycles >
                                                     kOneLevel * all[first].point.median_cycles;
        if (!ends) continue;
        const LatencyLevel level = level_of(all, first, k + 1);
        // A footprint on the slope may look like a level of its own, but most of its loads are not.
        if (!curve.levels.empty() && level.cycles <= kOneLevel * curve.levels.back().cycles) {
            curve.levels.back().last_bytes = level.last_bytes;
        } else {
            curve.levels.push_back(level);
        }
        first = k + 1;
    }
    drop_mixtures(curve.levels);
    return curve;
}

Threshold threshold_between(const LatencyLevel& hit, const LatencyLevel& miss) {
    return {hit.cycles, miss.cycles, hit.deviation, miss.deviation};
}

std::uint32_t Threshold::cycles(std::uint64_t loads) const {
    // Equally many deviations from both, if that is enough; else nearer to the misses.
    const double hit_sigma = hit_cycles * hit_deviation;
    const double miss_sigma = miss_cycles * miss_deviation;
    const double between =
        (miss_cycles * hit_sigma + hit_cycles * miss_sigma) / (hit_sigma + miss_sigma);
    const double sigmas = std::sqrt(2 * std::log(50.0 * static_cast<double>(loads) + 50));
    const double safe = hit_cycles + sigmas * hit_sigma;
    const double most = std::max(between, miss_cycles - miss_sigma);
    return static_cast<std::uint32_t>(std::lround(std::clamp(safe, between, most)));
}

}  // namespace libswap::bench
