// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/event_order.hpp"

#include <algorithm>

namespace libswap {

void EventOrder::Clock::follow(Use use) noexcept {
    if (!use || use.place() == 0) return;
    std::uint64_t* free_slot = nullptr;
    for (std::uint64_t& slot : uses) {
        if (slot == 0) {
            if (!free_slot) free_slot = &slot;
        } else if (Use{slot}.stream() == use.stream()) {
            slot = std::max(slot, use.raw);
            return;
        }
    }
    if (free_slot) *free_slot = use.raw;
}

bool EventOrder::Clock::follows(Use use) const noexcept {
    return std::any_of(uses.begin(), uses.end(), [&](std::uint64_t slot) {
        return slot != 0 && Use{slot}.stream() == use.stream() && slot >= use.raw;
    });
}

EventOrder::Clock& EventOrder::clock_of(StreamIndex stream) {
    if (stream >= streams_.size()) streams_.resize(stream + std::size_t{1});
    return streams_[stream];
}

void EventOrder::recorded(CUevent event, StreamIndex stream, std::uint64_t place) {
    std::lock_guard lock(mutex_);
    Clock clock = clock_of(stream);
    clock.follow(Use::make(stream, place));
    events_[event] = clock;
}

void EventOrder::waited(StreamIndex stream, CUevent event) {
    std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (found == events_.end()) return;
    Clock& clock = clock_of(stream);
    for (const std::uint64_t raw : found->second.uses)
        if (Use{raw}.stream() != stream) clock.follow(Use{raw});
}

void EventOrder::forget(CUevent event) noexcept {
    std::lock_guard lock(mutex_);
    events_.erase(event);
}

bool EventOrder::ordered(Use use, StreamIndex stream) noexcept {
    if (!use || use.stream() == stream) return true;
    std::lock_guard lock(mutex_);
    return stream < streams_.size() && streams_[stream].follows(use);
}

}  // namespace libswap
