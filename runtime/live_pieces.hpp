// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the program's own allocator has given out of its buffers and not had back, where it says so.
// A launch that names an address in a piece uses that piece, and nothing beside it: so much is
// known, where of other buffers it has to be believed (extents.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "runtime/ranked_mutex.hpp"

namespace libswap {

/// @thread any
class LivePieces {
  public:
    struct Piece {
        std::uint64_t base = 0;
        std::uint64_t bytes = 0;
        std::uint64_t end() const noexcept { return base + bytes; }
    };

    /// Pieces that this one overlaps are forgotten: their end was missed. May throw bad_alloc; then
    /// the piece is not known.
    void begin(std::uint64_t base, std::uint64_t bytes);
    /// The piece that begins here has been given back.
    void end(std::uint64_t base) noexcept;
    /// All pieces in this range are forgotten: it is another buffer's from here on.
    void forget(std::uint64_t base, std::uint64_t bytes) noexcept;

    /// The piece that an address lies in. Nothing where none is known.
    std::optional<Piece> find(std::uint64_t address) const noexcept;

  private:
    void forget_locked(std::uint64_t base, std::uint64_t bytes) noexcept;

    mutable RankedMutex<LockRank::Pieces> mutex_;
    std::map<std::uint64_t, std::uint64_t> bytes_;  ///< by their beginnings
};

}  // namespace libswap
