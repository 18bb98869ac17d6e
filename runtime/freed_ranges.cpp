// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/freed_ranges.hpp"

#include <algorithm>

namespace libswap {

void FreedRanges::put(const FreedRange& range) {
    std::lock_guard lock(mutex_);
    ranges_[{range.pool, range.size_key}].push_back(range);
    count_.fetch_add(1, std::memory_order_relaxed);
}

bool FreedRanges::has(const Pool* pool, std::uint64_t size_key) {
    std::lock_guard lock(mutex_);
    const auto found = ranges_.find({pool, size_key});
    return found != ranges_.end() && !found->second.empty();
}

void FreedRanges::last_frees(std::vector<Use>* out) {
    out->clear();
    if (empty()) return;
    std::lock_guard lock(mutex_);
    for (const auto& [key, list] : ranges_)
        for (const FreedRange& range : list) {
            const auto same = std::find_if(out->begin(), out->end(), [&](Use use) {
                return use.stream() == range.freed.stream();
            });
            if (same == out->end())
                out->push_back(range.freed);
            else
                same->raw = std::max(same->raw, range.freed.raw);
        }
}

}  // namespace libswap
