// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Capacity, line and ways of one level: a cache, or a table of translations (a line is a page).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "microbench/hierarchy/replacement.hpp"
#include "microbench/hierarchy/residency.hpp"

namespace libswap::bench {

struct Geometry {
    std::uint64_t bytes = 0;       ///< capacity; 0: not determined, as the others
    std::uint64_t fill_bytes = 0;  ///< what a miss brings: a sector, or the whole line
    std::uint64_t line_bytes = 0;  ///< what is replaced together
    std::uint32_t ways = 0;
    bool hashed = false;  ///< lines a capacity / ways apart do not share a set
    PolicyFinding policy;
};

/// What is known before: the capacity lies in [least_bytes, most_bytes].
struct GeometryRequest {
    LevelView view;
    std::uint64_t fill_bytes = 0;
    std::uint64_t least_bytes = 0, most_bytes = 0;
    bool is_translation = false;
};

Geometry find_geometry(Prober& prober, const GeometryRequest& request);

/// What a miss brings: the spacing of slow loads in memory that the level does not hold, read
/// upwards `step_bytes` at a time from `start_bytes`: for the first time, or after some rounds of
/// the same. A power of two; 0 if there is no spacing.
std::uint64_t find_fill_bytes(Prober& prober, const LevelView& view, std::uint64_t start_bytes,
                              std::uint64_t step_bytes, std::uint32_t loads, std::uint32_t rounds);

}  // namespace libswap::bench
