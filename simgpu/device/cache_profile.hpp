// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace simgpu {

/// Which line of a full set makes room.
enum class Replacement : std::uint8_t {
    Lru,        ///< the one used longest ago
    PseudoLru,  ///< a tree of bits per set, each pointing away from what was used last
    Random,
    Fifo,  ///< the one that came first
};

/// Which set an address belongs to. Both give each aligned run of as many lines as there are sets
/// all of the sets, so that contiguous memory of the cache's size fits it exactly.
enum class SetIndex : std::uint8_t {
    Modulo,
    Hashed,  ///< the line number folded into itself by exclusive or; sets: a power of two
};

/// Loads by their cache operator: `ld.global` and `.ca`; `.cg`, `.cv`, volatile and ordered ones;
/// `.nc`.
enum class LoadPath : std::uint8_t { Data, Global, ReadOnly };

/// A cache, or a table of translations when a line is a page.
struct CacheShape {
    std::uint32_t sets = 1;
    std::uint32_t ways = 1;
    std::uint64_t line_bytes = 128;  ///< a power of two
    Replacement replacement = Replacement::Lru;
    SetIndex index = SetIndex::Modulo;
};

struct CacheLevel {
    std::string name;
    CacheShape shape;
    std::uint64_t sector_bytes = 128;  ///< what a miss brings, a power of two
    /// One per SM: empty when a kernel starts, and passed by loads of LoadPath::Global.
    bool per_sm = false;
    /// Serves loads of these paths only.
    bool data = true, read_only = true;
    /// Looked up by virtual address: no translation before it.
    bool is_virtual = false;
    double latency_cycles = 0;
};

struct TlbLevel {
    std::string name;
    CacheShape shape;
    double miss_cycles = 0;  ///< added when the page is not in it
};

/// The memory hierarchy of a device, nearest level first.
struct CacheProfile {
    std::string name;
    std::vector<CacheLevel> caches;
    std::vector<TlbLevel> tlbs;
    double memory_latency_cycles = 0;
    double noise = 0;  ///< standard deviation of a load's latency, as a part of it
    std::uint64_t seed = 1;

    std::uint64_t cache_bytes(std::size_t level) const;
};

/// Parses the text of a profile (docs/simgpu.md has the keys). The error is one line.
tl::expected<CacheProfile, std::string> parse_cache_profile(std::string_view json,
                                                            std::string_view name);

/// Reads the profile `name_or_path`: a path when it has a slash or ends in .json, else a name,
/// looked for as DIRECTORY/NAME.json in `directories`. The error is one line.
tl::expected<CacheProfile, std::string> load_cache_profile(
    std::string_view name_or_path, const std::vector<std::string>& directories);

}  // namespace simgpu
