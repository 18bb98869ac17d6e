// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The whole memory hierarchy of a device, from its prober's answers.
#pragma once

#include <string>
#include <vector>

#include "microbench/hierarchy/geometry.hpp"
#include "microbench/hierarchy/latency_levels.hpp"

namespace libswap::bench {

struct FoundCache {
    std::string name;  ///< "L1", "read-only", "L2"
    LoadPath path = LoadPath::Data;
    LatencyLevel latency;
    Geometry geometry;
};

struct FoundTranslation {
    double miss_cycles = 0;
    std::uint64_t page_bytes = 0;
    std::uint32_t entries = 0;
    std::uint32_t ways = 0;
    PolicyFinding policy;
};

struct Hierarchy {
    std::vector<FoundCache> caches;
    double memory_cycles = 0;
    std::vector<FoundTranslation> translations;
    LatencyCurve data_curve, read_only_curve, global_curve;
    LatencyCurve translation_curve;
    /// Mean latency over the distance between loads (footprint_bytes), in a circle that the nearest
    /// cache cannot hold.
    std::vector<CurvePoint> stride_curve;
    std::vector<std::string> not_measured;  ///< one line each
};

/// `circle_bytes`: the largest circle read line by line, some times the largest cache; memory
/// beyond it is only used for loads in pages of their own. Takes seconds to a minute. What cannot
/// be told is left out, and said in not_measured.
Hierarchy analyse_hierarchy(Prober& prober, std::uint64_t circle_bytes);

}  // namespace libswap::bench
