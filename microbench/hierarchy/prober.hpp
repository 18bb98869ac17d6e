// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the analysis of a memory hierarchy needs from a device: loads, one after the other, each
// one's latency told. A GPU answers by kernels (device/gpu_prober.hpp), tests by a model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace libswap::bench {

/// Through which caches a load goes: all of them; the device's only (ld.global.cg); those for data
/// that nobody writes (ld.global.nc).
enum class LoadPath : std::uint8_t { Data, Global, ReadOnly };
const char* load_path_name(LoadPath path);

/// Loads at start, start + step, ..., in a circle of `length_bytes`.
struct Sweep {
    LoadPath path = LoadPath::Data;
    std::uint64_t start_bytes = 0;  ///< where the circle begins in the prober's memory
    std::uint64_t length_bytes = 0;
    std::uint64_t step_bytes = 0;        ///< at most length_bytes
    std::uint32_t skip = 0;              ///< loads before the first that is told
    std::uint32_t count = 0;             ///< loads after them
    std::uint32_t threshold_cycles = 0;  ///< only slower loads are told
    /// Unless 0: before each load another one at the offset with these bits flipped, which is not
    /// told. It brings the page's translation.
    std::uint32_t companion_bytes = 0;
};

struct Sample {
    std::uint32_t index = 0;  ///< of the load, counted after the skipped ones
    std::uint32_t cycles = 0;
};

struct SweepResult {
    std::uint64_t flagged = 0;    ///< loads at or above the threshold
    std::vector<Sample> samples;  ///< the first of them, up to Prober::kMostSamples
};

/// A kernel's caches are empty when it starts, the device's are as the last one left them. After a
/// failure all answers are empty. One thread at a time.
class Prober {
  public:
    static constexpr std::size_t kMostSamples = 4096;

    virtual ~Prober() = default;

    virtual SweepResult sweep(const Sweep& sweep) = 0;
    /// Loads at `offsets` in order (at most kMostSamples), a companion before each unless 0: cycles
    /// of each.
    virtual std::vector<std::uint32_t> probe(LoadPath path, std::span<const std::uint64_t> offsets,
                                             std::uint32_t companion_bytes) = 0;
    /// Bytes that sweeps may use. Offset 0 is aligned to 2 MiB or more.
    virtual std::uint64_t bytes() const = 0;
    /// One line; empty while nothing failed.
    virtual const std::string& error() const = 0;
};

}  // namespace libswap::bench
