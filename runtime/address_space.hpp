// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The addresses that programs see. One large reservation per device, which grows in steps; a step
// that the driver does not place behind the last one begins a new region, so there are few.
//
//   region   |base ........ used | free for later ........ |
//   pages    one 32-bit word per 2 MiB: which block or slab lies there, 0 for none
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

/// Smallest unit of mapping.
inline constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

/// What a page belongs to: 0 nothing, else 1 + an index, with a bit for slabs.
using PageTag = std::uint32_t;
inline constexpr PageTag kSlabTag = PageTag{1} << 31;

/// @thread any, except as said
class AddressSpace {
  public:
    /// `step_bytes`: how much is reserved at a time, a multiple of kPageBytes.
    AddressSpace(const Driver& driver, std::uint64_t step_bytes) noexcept;
    ~AddressSpace();
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;

    /// A free range, not mapped. Reserves more where needed. `bytes` is a multiple of kPageBytes.
    Result<std::uint64_t> take(std::uint64_t bytes) noexcept;
    /// Gives a range back; nothing may be mapped in it.
    void give_back(std::uint64_t base, std::uint64_t bytes) noexcept;

    /// Marks pages of a taken range.
    void tag(std::uint64_t base, std::uint64_t bytes, PageTag tag) noexcept;

    /// The tag at an address, 0 if it is not ours. One compare for a word that is no pointer of
    /// ours.
    PageTag find(std::uint64_t address) const noexcept {
        if (address - low_.load(std::memory_order_acquire) >= span_.load(std::memory_order_relaxed))
            return 0;
        const std::size_t count = region_count_.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < count; ++i) {
            const Region& region = regions_[i];
            if (address - region.base < region.bytes)
                return region.pages[(address - region.base) / kPageBytes].load(
                    std::memory_order_acquire);
        }
        return 0;
    }

    /// Smallest and one past the largest address reserved (0, 0 before the first).
    std::uint64_t low() const noexcept { return low_.load(std::memory_order_relaxed); }
    std::uint64_t high() const noexcept { return low() + span_.load(std::memory_order_relaxed); }

    /// Free ranges and tags are consistent.
    bool is_valid() noexcept;

  private:
    struct Region {
        std::uint64_t base = 0;
        std::uint64_t bytes = 0;
        std::atomic<PageTag>* pages = nullptr;
    };
    static constexpr std::size_t kMaxRegions = 16;

    Status grow(std::uint64_t bytes) noexcept;
    bool take_free(std::uint64_t bytes, std::uint64_t* base) noexcept;

    const Driver& driver_;
    const std::uint64_t step_bytes_;
    std::atomic<std::uint64_t> low_{0};
    std::atomic<std::uint64_t> span_{0};
    std::array<Region, kMaxRegions> regions_{};
    std::atomic<std::size_t> region_count_{0};

    RankedMutex<LockRank::AddressSpace> mutex_;
    std::map<std::uint64_t, std::uint64_t> free_;  ///< base -> bytes, coalesced
    std::mutex growth_;  ///< one grows at a time; held across a driver call, taken by no hot path
};

}  // namespace libswap
