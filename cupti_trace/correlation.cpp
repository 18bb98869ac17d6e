// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "cupti_trace/correlation.hpp"

#include <algorithm>

namespace libswap::cupti {
namespace {

/// A graph's operations, and a tag and its operation, lie in buffers that may come apart. What has
/// not met its other half by then never will.
constexpr std::uint32_t kKeptRounds = 64;

}  // namespace

void Correlation::note_tag(std::uint32_t correlation, std::uint64_t tag) {
    Entry& entry = entries_[correlation];
    entry.tag = tag;
    entry.tagged = true;
    entry.told = false;
}

void Correlation::note_operation(std::uint32_t correlation, std::uint64_t start_ns,
                                 std::uint64_t end_ns) {
    Entry& entry = entries_[correlation];
    entry.start_ns = entry.start_ns == 0 ? start_ns : std::min(entry.start_ns, start_ns);
    entry.end_ns = std::max(entry.end_ns, end_ns);
    entry.told = false;
}

void Correlation::take(std::vector<TaggedTime>* out) {
    for (auto it = entries_.begin(); it != entries_.end();) {
        Entry& entry = it->second;
        if (entry.tagged && entry.start_ns != 0 && !entry.told) {
            out->push_back({entry.tag, entry.start_ns, entry.end_ns});
            entry.told = true;
        }
        const bool over = ++entry.rounds > kKeptRounds;
        it = over ? entries_.erase(it) : std::next(it);
    }
}

}  // namespace libswap::cupti
