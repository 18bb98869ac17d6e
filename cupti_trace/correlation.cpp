// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "cupti_trace/correlation.hpp"

#include <algorithm>

namespace libswap::cupti {
namespace {

/// Operations of one graph, and an operation and its tag, lie in buffers that may come apart: for
/// so many calls of take().
constexpr std::uint64_t kKeptRounds = 64;

}  // namespace

Correlation::Entry& Correlation::change(std::uint32_t correlation) {
    Entry& entry = entries_[correlation];
    if (!entry.changed) changed_.push_back(correlation);
    entry.changed = true;
    return entry;
}

void Correlation::note_tag(std::uint32_t correlation, std::uint64_t tag) {
    Entry& entry = change(correlation);
    entry.tag = tag;
    entry.tagged = true;
}

void Correlation::note_operation(std::uint32_t correlation, std::uint64_t start_ns,
                                 std::uint64_t end_ns) {
    Entry& entry = change(correlation);
    entry.start_ns = entry.start_ns == 0 ? start_ns : std::min(entry.start_ns, start_ns);
    entry.end_ns = std::max(entry.end_ns, end_ns);
}

void Correlation::take(std::vector<TaggedTime>* out) {
    ++round_;
    for (const std::uint32_t correlation : changed_) {
        Entry& entry = entries_[correlation];
        entry.changed = false;
        entry.round = round_;
        const bool ran = entry.start_ns != 0;
        if (ran && entry.tagged) out->push_back({entry.tag, entry.start_ns, entry.end_ns});
        if (ran)
            aging_.push_back({correlation, round_});
        else
            awaited_.push_back(correlation);
    }
    changed_.clear();
    forget_old();
}

void Correlation::forget_old() {
    while (!aging_.empty() && aging_.front().round + kKeptRounds < round_) {
        const auto old = entries_.find(aging_.front().correlation);
        if (old != entries_.end() && old->second.round == aging_.front().round) entries_.erase(old);
        aging_.pop_front();
    }
    while (awaited_.size() > kMostAwaited) {
        const auto old = entries_.find(awaited_.front());
        if (old != entries_.end() && old->second.start_ns == 0) entries_.erase(old);
        awaited_.pop_front();
    }
}

}  // namespace libswap::cupti
