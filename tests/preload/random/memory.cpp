// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "memory.hpp"

#include <algorithm>

namespace random_programs {
namespace {

struct Sections {
    std::size_t first, last;
};

Sections sections_of(const Buffer& buffer, const Region& region) {
    const std::size_t each = buffer.bytes / Buffer::kSections + 1;
    const std::size_t end = region.first + std::max<std::size_t>(region.bytes, 1) - 1;
    return {region.first / each, std::min(end / each, Buffer::kSections - 1)};
}

}  // namespace

std::uint32_t touch(Buffer* buffers, const Regions& regions, int stream) {
    std::uint32_t waits = 0;
    const auto each_section = [&](auto&& function) {
        for (const Region& region : regions) {
            Buffer& buffer = buffers[region.slot];
            const Sections range = sections_of(buffer, region);
            for (std::size_t i = range.first; i <= range.last; ++i)
                function(buffer.sections[i], region.writes);
        }
    };
    each_section([&](Buffer::Section& section, bool writes) {
        if (section.writer >= 0) waits |= bit(section.writer);
        if (writes) waits |= section.readers;
    });
    each_section([&](Buffer::Section& section, bool writes) {
        if (writes)
            section = {stream, 0};
        else if (section.writer != stream)
            section.readers |= bit(stream);
    });
    return waits & ~bit(stream);
}

std::uint32_t touched_by(const Buffer& buffer) {
    std::uint32_t streams = 0;
    for (const Buffer::Section& section : buffer.sections)
        streams |= section.readers | (section.writer >= 0 ? bit(section.writer) : 0);
    return streams;
}

void forget(Buffer& buffer, std::uint32_t streams) {
    for (Buffer::Section& section : buffer.sections) {
        section.readers &= ~streams;
        if (section.writer >= 0 && (streams & bit(section.writer))) section.writer = -1;
    }
}

}  // namespace random_programs
