// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a random program has in memory, and which streams touched what part of it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "program.hpp"

namespace random_programs {

constexpr unsigned kStreamsPerThread = 4;  ///< the last is of the second device, where there is one
constexpr unsigned kStreams = kStreamsPerThread * kThreads;

enum class Kind { Plain, Pooled, OwnPool, Managed, Pinned, Pitched, Cached, kCount, Module };

/// Where an entry of a table points to.
struct Target {
    unsigned slot = kSlots;
    unsigned generation = 0;
    std::size_t offset_bytes = 0;
};

struct Buffer {
    static constexpr std::size_t kSections = 16;
    /// A sixteenth of a buffer, and what touched it since it was last written.
    struct Section {
        int writer = -1;
        std::uint32_t readers = 0;
    };

    char* at = nullptr;
    std::size_t bytes = 0;
    Kind kind = Kind::Plain;
    unsigned device = 0;
    unsigned generation = 0;  ///< counts what the slot has held
    bool is_table = false;
    std::array<Section, kSections> sections{};
    std::array<Target, kTableEntries> entries{};

    bool exists() const { return at != nullptr; }
    bool is_data() const { return exists() && !is_table; }
};

/// A part of a buffer that an operation touches.
struct Region {
    unsigned slot = 0;
    std::size_t first = 0;
    std::size_t bytes = 0;
    bool writes = false;

    bool overlaps(const Region& other) const {
        return slot == other.slot && first < other.first + other.bytes &&
               other.first < first + bytes;
    }
    bool conflicts(const Region& other) const {
        return (writes || other.writes) && overlaps(other);
    }
};

using Regions = std::vector<Region>;

inline std::uint32_t bit(int stream) { return std::uint32_t{1} << stream; }

/// Notes the regions as touched by `stream`; the streams that it must wait for, a bit each.
std::uint32_t touch(Buffer* buffers, const Regions& regions, int stream);

/// All streams that touched the buffer since it was last written.
std::uint32_t touched_by(const Buffer& buffer);

/// Those streams are settled: nobody has to wait for them.
void forget(Buffer& buffer, std::uint32_t streams);

}  // namespace random_programs
