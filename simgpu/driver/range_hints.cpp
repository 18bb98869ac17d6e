// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/range_hints.hpp"

#include <iterator>

namespace simgpu::driver {

namespace {

bool same(const CUmemLocation& a, const CUmemLocation& b) {
    return a.type == b.type && a.id == b.id;
}

}  // namespace

bool Hints::operator==(const Hints& other) const {
    return read_mostly == other.read_mostly && same(preferred, other.preferred) &&
           same(prefetched, other.prefetched) && accessed_by == other.accessed_by;
}

void RangeHints::cut(std::uint64_t at) {
    auto it = ranges_.upper_bound(at);
    if (it == ranges_.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Range rest = it->second;
    it->second.end = at;
    ranges_[at] = std::move(rest);
}

void RangeHints::fill(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t at = begin;
    while (at < end) {
        const auto next = ranges_.lower_bound(at);
        if (next != ranges_.end() && next->first == at) {
            at = next->second.end;
            continue;
        }
        const std::uint64_t until = next != ranges_.end() && next->first < end ? next->first : end;
        ranges_[at] = {until, {}};
        at = until;
    }
}

void RangeHints::forget(std::uint64_t base, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    cut(base);
    cut(base + bytes);
    ranges_.erase(ranges_.lower_bound(base), ranges_.lower_bound(base + bytes));
}

RangeHints& range_hints() {
    static auto* hints = new RangeHints;  // leaked: calls may come after static destructors
    return *hints;
}

}  // namespace simgpu::driver
