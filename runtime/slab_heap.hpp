// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Small requests: pieces of 2 MiB slabs that never leave the device. A slab is a page of the
// address space, cut into units of 512 bytes, the alignment of cuMemAlloc. Bookkeeping lies on the
// host.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/handle_pool.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

/// A piece of a slab.
struct SlabPiece {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;  ///< as asked for
    CUcontext context = nullptr;
};

/// Hands out pieces of slabs that its owner adds. Makes no driver call. @thread any
class SlabHeap {
  public:
    static constexpr std::uint64_t kUnitBytes = 512;
    static constexpr std::uint64_t kUnits = kPageBytes / kUnitBytes;

    /// A piece of `bytes` (at most a page) in a slab that is there, or 0.
    std::uint64_t take(std::uint64_t bytes, CUcontext context) noexcept;
    /// Adds a mapped page with its chunk. Says the slab's number, for its tag.
    std::uint32_t add_slab(std::uint64_t base, Chunk* chunk) noexcept;
    /// Frees the piece that begins at `base` in slab `index`; false if none does.
    bool free(std::uint32_t index, std::uint64_t base) noexcept;
    /// The piece that holds `address`.
    bool find(std::uint32_t index, std::uint64_t address, SlabPiece* piece) noexcept;
    /// Drops all pieces of a context.
    void purge(CUcontext context) noexcept;

    std::uint64_t used_bytes() noexcept;
    std::uint64_t slab_bytes() noexcept;
    bool is_valid() noexcept;

  private:
    struct Slab {
        std::uint64_t base = 0;
        Chunk* chunk = nullptr;
        std::uint32_t free_units = kUnits;
        std::array<std::uint64_t, kUnits / 64> used{};  ///< one bit per unit
        std::array<std::uint16_t, kUnits> length{};     ///< units of the piece that begins here
        std::array<std::uint32_t, kUnits> asked{};      ///< its bytes as asked for
        std::array<CUcontext, kUnits> context{};
    };

    static int find_run(const Slab& slab, unsigned units) noexcept;
    static void mark(Slab& slab, unsigned first, unsigned units, bool used) noexcept;
    void drop(Slab& slab, unsigned first) noexcept;

    RankedMutex<LockRank::Slabs> mutex_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::uint64_t used_bytes_ = 0;
};

}  // namespace libswap
