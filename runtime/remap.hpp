// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Changes what lies at an address. Each function either does all of it or leaves things as they
// were.

#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/driver.hpp"
#include "runtime/handle_pool.hpp"

namespace libswap {

/// What became of a change of mapping.
enum class RemapResult : std::uint8_t {
    Done,
    Restored,  ///< it failed, and the old mapping is in place again
    Lost       ///< it failed, and so did putting the old mapping back: nothing is mapped there
};

/// @thread any; the caller owns the range and the chunks
class Remapper {
  public:
    Remapper(const Driver& driver, int device) noexcept : driver_(driver), device_(device) {}

    /// From now on another device may access what is mapped, too. False if it may already.
    bool add_peer(int device) noexcept;
    /// The devices that may, one bit each.
    std::uint64_t peers() const noexcept { return peers_.load(std::memory_order_acquire); }
    /// Grants the device and its peers access to what is mapped.
    Status grant(std::uint64_t base, std::uint64_t bytes) noexcept;

    /// Maps chunks behind each other at an unmapped range and grants access, once for the range.
    Status map(std::uint64_t base, std::span<Chunk* const> chunks) noexcept;
    /// Unmaps what map() mapped. On failure the range is mapped as before, if the driver lets us.
    RemapResult unmap(std::uint64_t base, std::span<Chunk* const> chunks) noexcept;
    /// Replaces `from` by `to` (of equal shape). An empty `to` leaves the range unmapped, an empty
    /// `from` says that it is.
    RemapResult change(std::uint64_t base, std::span<Chunk* const> from,
                       std::span<Chunk* const> to) noexcept;

  private:
    bool map_stubbornly(std::uint64_t base, std::span<Chunk* const> chunks) noexcept;

    const Driver& driver_;
    const int device_;
    std::atomic<std::uint64_t> peers_{0};
};

}  // namespace libswap
