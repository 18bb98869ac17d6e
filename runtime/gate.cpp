// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/gate.hpp"

#include <algorithm>

namespace libswap {

void Gate::note(Use use) noexcept {
    auto& place = use.stream() < places_.size() ? places_[use.stream()] : overflow_;
    std::uint64_t old = place.load(std::memory_order_relaxed);
    while (old < use.raw && !place.compare_exchange_weak(old, use.raw, std::memory_order_seq_cst)) {
    }
}

bool Gate::quiet(StreamTable& streams) noexcept {
    if (pending_.load(std::memory_order_seq_cst) != 0) return false;
    const std::size_t count = std::min<std::size_t>(streams.count(), places_.size());
    for (std::size_t i = 0; i <= count; ++i) {
        const Use use{i < count ? places_[i].load() : overflow_.load()};
        if (!use || streams.known_complete(use)) continue;
        if (!streams.is_covered(use) && streams.may_record(use.stream()))
            (void)streams.record(use.stream());
        if (!streams.is_complete(use)) return false;
    }
    return true;
}

bool Gate::maybe_busy(const StreamTable& streams) const noexcept {
    if (pending_.load(std::memory_order_seq_cst) != 0) return true;
    const std::size_t count = std::min<std::size_t>(streams.count(), places_.size());
    for (std::size_t i = 0; i < count; ++i)
        if (!streams.known_complete(Use{places_[i].load()})) return true;
    return !streams.known_complete(Use{overflow_.load()});
}

}  // namespace libswap
