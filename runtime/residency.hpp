// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The one word of a block: state, generation and pins. Every change is a compare-and-swap on the
// whole of it.
//
//   bits 0-2   state
//   bit  3     remap: a mapping is being changed, nobody may pin
//   bits 4-23  pins
//   bits 24-63 generation: changes with every cancel and free, so that what the worker began for an
//              older one comes to nothing
#pragma once

#include <atomic>
#include <cstdint>

namespace libswap {

enum class Residency : std::uint8_t { Free, Resident, Leaving, Host, Coming, HandedOver };

const char* residency_name(Residency state) noexcept;

/// A value of the word. Plain data; the functions below give changed copies.
struct ResidencyWord {
    std::uint64_t raw = 0;

    static constexpr std::uint64_t kRemapBit = 8;
    static constexpr std::uint64_t kPin = 16;
    static constexpr std::uint64_t kPinMask = ((std::uint64_t{1} << 20) - 1) << 4;
    static constexpr unsigned kGenerationShift = 24;

    static constexpr ResidencyWord make(Residency state, std::uint64_t generation) noexcept {
        return {static_cast<std::uint64_t>(state) | generation << kGenerationShift};
    }
    constexpr Residency state() const noexcept { return static_cast<Residency>(raw & 7); }
    constexpr bool remapping() const noexcept { return raw & kRemapBit; }
    constexpr std::uint32_t pins() const noexcept {
        return static_cast<std::uint32_t>((raw & kPinMask) >> 4);
    }
    constexpr std::uint64_t generation() const noexcept { return raw >> kGenerationShift; }

    constexpr ResidencyWord with_state(Residency state) const noexcept {
        return {(raw & ~std::uint64_t{7}) | static_cast<std::uint64_t>(state)};
    }
    constexpr ResidencyWord with_remap(bool on) const noexcept {
        return {on ? raw | kRemapBit : raw & ~kRemapBit};
    }
    constexpr ResidencyWord next_generation() const noexcept {
        return {raw + (std::uint64_t{1} << kGenerationShift)};
    }
    /// No state is out of range, no impossible mix: a free block has no pins, and none has pins
    /// while its mapping changes.
    constexpr bool is_valid() const noexcept {
        if ((raw & 7) > static_cast<std::uint64_t>(Residency::HandedOver)) return false;
        if (remapping() && pins() != 0) return false;
        return state() != Residency::Free || pins() == 0;
    }
};

/// What became of an attempt to pin.
enum class PinResult : std::uint8_t {
    Pinned,      ///< resident and pinned
    Cancelled,   ///< as Pinned; it was leaving, and stays
    PinnedHost,  ///< pinned in state Host: to be read and written over the link
    Absent,      ///< in state Host, and the caller wants it on the device
    Busy,        ///< coming, or its mapping is being changed: wait
    Gone         ///< free
};

/// The word of one block. All functions may be called from any thread. The orders are acquire and
/// release: who pins sees what was written before the state was reached.
class ResidencyCell {
  public:
    ResidencyWord load() const noexcept { return {word_.load(std::memory_order_acquire)}; }

    /// Rule 1. `host_is_fine`: an operation that may use the host copy in place.
    PinResult pin(bool host_is_fine) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed);
        // Nearly always; one more try is all that this leaves out.
        if ((word & (7 | ResidencyWord::kRemapBit)) ==
                static_cast<std::uint64_t>(Residency::Resident) &&
            word_.compare_exchange_strong(word, word + ResidencyWord::kPin,
                                          std::memory_order_acq_rel, std::memory_order_relaxed))
            return PinResult::Pinned;
        return pin_by_state(host_is_fine);
    }
    /// Takes one pin back.
    void unpin() noexcept { word_.fetch_sub(ResidencyWord::kPin, std::memory_order_acq_rel); }

    /// Free -> `state` (Resident or Host), under a new generation, which is returned.
    std::uint64_t born(Residency state) noexcept;
    /// Any state -> Free under a new generation. Fails while pinned, remapping or handed over.
    /// Gives the state before.
    bool free(Residency* before) noexcept;

    /// Resident, no pins -> Leaving. Gives the generation. Rule 2.
    bool begin_evict(std::uint64_t* generation) noexcept;
    /// Leaving of this generation, no pins -> HandedOver, which only begin_remap() ends. Rule 9.
    bool hand_over(std::uint64_t generation) noexcept;
    /// Host, no pins -> Coming. Rules 2 and 4.
    bool begin_fetch(std::uint64_t* generation) noexcept;
    /// Leaving, Coming or HandedOver of this generation, no pins -> remap bit set. Fails if
    /// cancelled meanwhile.
    bool begin_remap(Residency from, std::uint64_t generation) noexcept;
    /// Ends a remap that only this caller holds: -> `state`, bit cleared.
    void end_remap(Residency state) noexcept;
    /// `from` of this generation -> `to`, under a new generation: Leaving -> Resident, Coming ->
    /// Host.
    bool cancel(Residency from, std::uint64_t generation, Residency to) noexcept;

  private:
    PinResult pin_by_state(bool host_is_fine) noexcept;

    template <typename Change>
    bool update(Change&& change) noexcept {
        std::uint64_t old = word_.load(std::memory_order_acquire);
        for (;;) {
            ResidencyWord next{old};
            if (!change(next)) return false;
            if (word_.compare_exchange_weak(old, next.raw, std::memory_order_acq_rel,
                                            std::memory_order_acquire))
                return true;
        }
    }

    std::atomic<std::uint64_t> word_{0};
};

}  // namespace libswap
