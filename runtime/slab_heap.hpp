// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Small requests: pieces of slabs that never leave the device. A slab is a stretch of addresses
// that is mapped page by page as it fills, so that pieces may lie across pages and little is lost
// between them. It is cut into units of 512 bytes, the alignment of cuMemAlloc; bookkeeping lies on
// the host.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/handle_pool.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

struct Pool;

/// A piece of a slab.
struct SlabPiece {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;  ///< as asked for
    CUcontext context = nullptr;
    Pool* pool = nullptr;  ///< of a stream-ordered allocation
};

/// Hands out pieces of slabs. Makes no driver call: its owner maps what is claimed. @thread any
class SlabHeap {
  public:
    static constexpr std::uint64_t kUnitBytes = 512;
    static constexpr std::uint64_t kSlabBytes = std::uint64_t{64} << 20;
    static constexpr std::uint64_t kUnits = kSlabBytes / kUnitBytes;

    /// Pages that were claimed, to be mapped and then published.
    struct Claim {
        std::uint32_t slab = 0;
        std::uint64_t base = 0;
        std::uint32_t pages = 0;  ///< 0: there is no slab with room, add one
    };

    /// A piece of `bytes` (at most a page) among what is mapped, or 0.
    std::uint64_t take(std::uint64_t bytes, CUcontext context, Pool* pool = nullptr) noexcept;
    /// What a piece of `bytes` takes.
    static std::uint64_t rounded(std::uint64_t bytes) noexcept {
        return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    }
    /// Ends the life of a piece without making its memory free: nobody finds it, until it begins
    /// again or is freed. False if no piece begins there. Gives what it was.
    bool end(std::uint32_t slab, std::uint64_t base, SlabPiece* piece) noexcept;
    /// A new life for a piece that was ended, of the same size rounded.
    void begin_again(std::uint32_t slab, const SlabPiece& piece) noexcept;
    /// Claims the pages that are missing for a piece of `bytes` at the end of the last slab.
    Claim claim(std::uint64_t bytes) noexcept;
    /// The pages are mapped: pieces may be taken from them. Unmapped, they stay claimed for
    /// nothing.
    void publish(const Claim& claim) noexcept;
    /// Adds kSlabBytes of unmapped addresses. Says the slab's number, for its tag.
    std::uint32_t add_slab(std::uint64_t base);
    /// Frees the piece that begins at `base` in a slab; false if none does.
    bool free(std::uint32_t slab, std::uint64_t base) noexcept;
    /// The piece that holds `address`.
    bool find(std::uint32_t slab, std::uint64_t address, SlabPiece* piece) noexcept;
    /// Drops all pieces of a context.
    void purge(CUcontext context) noexcept;

    /// Calls `visit(base)` for each page that is mapped or about to be. Not under the lock.
    template <typename Visit>
    void for_each_page(Visit&& visit) {
        for (std::size_t i = 0;; ++i) {
            std::uint64_t base = 0;
            std::uint32_t pages = 0;
            {
                std::lock_guard lock(mutex_);
                if (i >= slabs_.size()) return;
                base = slabs_[i]->base;
                pages = slabs_[i]->claimed_pages;
            }
            for (std::uint32_t page = 0; page < pages; ++page) visit(base + page * kPageBytes);
        }
    }

    std::uint64_t used_bytes() noexcept;
    /// Device memory that the slabs take.
    std::uint64_t mapped_bytes() const noexcept {
        return mapped_bytes_.load(std::memory_order_relaxed);
    }
    bool is_valid() noexcept;

  private:
    static constexpr std::uint32_t kUnitsPerPage = kPageBytes / kUnitBytes;

    struct Piece {
        std::uint32_t units = 0;  ///< 0: no piece begins here
        std::uint32_t asked = 0;  ///< 0: its life has ended
        CUcontext context = nullptr;
        Pool* pool = nullptr;
    };
    struct Slab {
        std::uint64_t base = 0;
        std::uint32_t claimed_pages = 0;
        std::uint32_t mapped_pages = 0;
        std::uint32_t free_units = 0;                   ///< of mapped pages
        std::uint32_t first_free = 0;                   ///< none before it is free
        std::array<std::uint64_t, kUnits / 64> used{};  ///< one bit per unit; set where not mapped
        std::array<Piece, kUnits> pieces{};
    };

    static std::int64_t find_run(const Slab& slab, std::uint32_t units) noexcept;
    static void mark(Slab& slab, std::uint32_t first, std::uint32_t units, bool used) noexcept;
    void drop(Slab& slab, std::uint32_t first) noexcept;

    RankedMutex<LockRank::Slabs> mutex_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::uint64_t used_bytes_ = 0;
    std::atomic<std::uint64_t> mapped_bytes_{0};
};

}  // namespace libswap
