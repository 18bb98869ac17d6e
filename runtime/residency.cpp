// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/residency.hpp"

namespace libswap {

const char* residency_name(Residency state) noexcept {
    switch (state) {
        case Residency::Free:
            return "free";
        case Residency::Resident:
            return "resident";
        case Residency::Leaving:
            return "leaving";
        case Residency::Host:
            return "host";
        case Residency::Coming:
            return "coming";
        case Residency::HandedOver:
            return "handed over";
    }
    return "?";
}

PinResult ResidencyCell::pin_by_state(bool host_is_fine) noexcept {
    PinResult result = PinResult::Busy;
    update([&](ResidencyWord& word) {
        result = PinResult::Busy;
        if (word.remapping()) return false;
        switch (word.state()) {
            case Residency::Free:
                result = PinResult::Gone;
                return false;
            case Residency::Resident:
                result = PinResult::Pinned;
                break;
            case Residency::Leaving:
                result = PinResult::Cancelled;
                word = word.with_state(Residency::Resident).next_generation();
                break;
            case Residency::Host:
                result = host_is_fine ? PinResult::PinnedHost : PinResult::Absent;
                if (!host_is_fine) return false;
                break;
            case Residency::Coming:
            case Residency::HandedOver:
                return false;
        }
        word.raw += ResidencyWord::kPin;
        return true;
    });
    return result;
}

std::uint64_t ResidencyCell::born(Residency state) noexcept {
    // Nobody else changes the word of a free block.
    const ResidencyWord word = load().next_generation().with_state(state).with_remap(false);
    word_.store(word.raw, std::memory_order_release);
    return word.generation();
}

bool ResidencyCell::free(Residency* before) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.remapping() || word.pins() != 0 || word.state() == Residency::HandedOver)
            return false;
        *before = word.state();
        word = word.next_generation().with_state(Residency::Free);
        return true;
    });
}

bool ResidencyCell::begin_evict(std::uint64_t* generation) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.state() != Residency::Resident || word.pins() != 0 || word.remapping())
            return false;
        *generation = word.generation();
        word = word.with_state(Residency::Leaving);
        return true;
    });
}

bool ResidencyCell::hand_over(std::uint64_t generation) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.state() != Residency::Leaving || word.generation() != generation ||
            word.pins() != 0 || word.remapping())
            return false;
        word = word.with_state(Residency::HandedOver);
        return true;
    });
}

bool ResidencyCell::begin_fetch(std::uint64_t* generation) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.state() != Residency::Host || word.pins() != 0 || word.remapping()) return false;
        *generation = word.generation();
        word = word.with_state(Residency::Coming);
        return true;
    });
}

bool ResidencyCell::begin_remap(Residency from, std::uint64_t generation) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.state() != from || word.generation() != generation || word.pins() != 0 ||
            word.remapping())
            return false;
        word = word.with_remap(true);
        return true;
    });
}

void ResidencyCell::end_remap(Residency state) noexcept {
    update([&](ResidencyWord& word) {
        word = word.with_state(state).with_remap(false);
        return true;
    });
}

bool ResidencyCell::cancel(Residency from, std::uint64_t generation, Residency to) noexcept {
    return update([&](ResidencyWord& word) {
        if (word.state() != from || word.generation() != generation || word.remapping())
            return false;
        word = word.with_state(to).next_generation();
        return true;
    });
}

}  // namespace libswap
