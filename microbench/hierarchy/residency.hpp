// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Does a set of addresses fit a cache? Where no set of it is asked for more lines than it has ways,
// loads in a circle all hit in the end, whatever is replaced; where one is, some miss in every
// round.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "microbench/hierarchy/latency_levels.hpp"
#include "microbench/hierarchy/prober.hpp"

namespace libswap::bench {

/// One level as seen through one path.
struct LevelView {
    LoadPath path = LoadPath::Data;
    Threshold threshold;
    /// Emptied when a kernel starts: nothing stale is in the way.
    bool starts_empty = false;
    /// Added to the step from each address to the next but not to what the step means: spreads
    /// translations' addresses over the caches' sets.
    std::uint64_t stagger_bytes = 0;
};

/// `count` addresses `step_bytes` apart.
struct Stride {
    std::uint64_t step_bytes = 0;
    std::uint32_t count = 0;
    std::uint32_t companion_bytes = 0;
};

bool fits(Prober& prober, const LevelView& view, const Stride& stride);

/// The largest count, at most `most`, with which a stride fits. 0 where not even one does.
std::uint32_t largest_fit(Prober& prober, const LevelView& view, Stride stride, std::uint32_t least,
                          std::uint32_t most);

/// As fits, for a contiguous run of `lines` lines, read from its end to its beginning. First loads
/// of pages are not counted: they may be slow for the translation.
bool run_fits(Prober& prober, const LevelView& view, std::uint64_t line_bytes, std::uint32_t lines);
std::uint32_t longest_run(Prober& prober, const LevelView& view, std::uint64_t line_bytes,
                          std::uint32_t least, std::uint32_t most);

/// A contiguous run. `companion_bytes`: for orders other than down.
struct Run {
    std::uint64_t line_bytes = 0;
    std::uint32_t lines = 0;
    std::uint32_t companion_bytes = 0;
};

/// Adds offsets in a run one line too long that are slow: lines of the set that overflows, and a
/// few that noise made slow. `which`: 0 reads downwards, each other number in orders of its own. In
/// one order a tree lets only some of the set's lines miss.
void find_slow_offsets(Prober& prober, const LevelView& view, const Run& run, std::uint32_t which,
                       std::set<std::uint64_t>* offsets);

/// Which of `offsets` miss now and then when all are read over and over in changing orders, and so
/// share a set that is too small for them.
std::vector<std::uint64_t> contending(Prober& prober, const LevelView& view,
                                      const std::vector<std::uint64_t>& offsets,
                                      std::uint32_t companion_bytes);

}  // namespace libswap::bench
