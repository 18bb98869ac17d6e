// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The chunks of a pool, in groups whose aliases lie side by side. A block gets neighbours where it
// can, so that one copy and one digest serve many of its chunks. Nothing here calls the driver.
//
//   group   base                          base + 32 chunks
//   exists  1 1 1 1 1 1 0 0 ...           a handle is mapped there
//   free    0 0 1 1 1 0 0 0 ...           and nobody has it
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "runtime/driver.hpp"

namespace libswap {

/// Sizes of chunks. All but the smallest must be multiples of it.
inline constexpr std::array<std::uint64_t, 2> kChunkBytes{std::uint64_t{2} << 20,
                                                          std::uint64_t{16} << 20};
using ChunkClass = std::uint8_t;

/// Chunks of a group, and of a block at most.
inline constexpr std::uint32_t kGroupChunks = 32;

struct ChunkGroup;

/// One chunk of physical memory. Belongs to its pool; whoever took it may use it alone.
struct Chunk {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr alias = 0;
    ChunkClass size_class = 0;
    ChunkGroup* group = nullptr;
};

struct ChunkGroup {
    CUdeviceptr base = 0;
    ChunkClass size_class = 0;
    CUcontext context = nullptr;  ///< of pinned memory: it goes with it
    std::uint32_t places = 0;     ///< a bit for each chunk that there may be
    std::uint32_t exists = 0;
    std::uint32_t free = 0;
    std::uint32_t longest_free = 0;  ///< run of free ones
    std::array<Chunk, kGroupChunks> chunks{};
};

/// Places in one group, side by side.
struct ChunkPlaces {
    ChunkGroup* group = nullptr;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    CUdeviceptr alias() const noexcept { return group->base + first * bytes(); }
    std::uint64_t bytes() const noexcept { return kChunkBytes[group->size_class]; }
};

/// How many chunks from `from` on have aliases side by side, at least 1.
std::uint32_t neighbours(std::span<Chunk* const> chunks, std::size_t from) noexcept;

/// @thread one at a time
class ChunkGroups {
  public:
    /// Takes `out.size()` free chunks, or none: neighbours of the shortest run that is long enough,
    /// else of as few runs as it takes.
    bool take(ChunkClass size_class, std::span<Chunk*> out) noexcept;
    void give_back(Chunk* chunk) noexcept;

    /// A free chunk of any class but `keep`, which is taken; null if there is none. From where
    /// least is free, so that long runs stay.
    Chunk* take_other_class(ChunkClass keep) noexcept;

    /// Places for at most `count` new chunks, side by side, that are nobody else's until add() or
    /// cancel(). Without `pieces` all of them, or none (count 0): then there may be room in a new
    /// group.
    ChunkPlaces claim(ChunkClass size_class, std::uint32_t count, bool pieces) noexcept;
    /// A group of `places` chunks at `base`, and a claim of its first `count`. `context`: of pinned
    /// memory.
    ChunkPlaces add_group(ChunkClass size_class, CUdeviceptr base, std::uint32_t places,
                          std::uint32_t count, CUcontext context);
    /// A chunk exists at a claimed place from now on, and is free.
    void add(const ChunkPlaces& claimed, std::uint32_t index,
             CUmemGenericAllocationHandle handle) noexcept;
    void cancel(const ChunkPlaces& claimed, std::uint32_t index) noexcept;
    /// A taken chunk is gone; its place is free for another.
    void remove(Chunk* chunk) noexcept;
    /// Free chunks of a context that went are gone, and so are their places. Says how many.
    std::uint64_t forget_context(CUcontext context) noexcept;

    std::uint32_t free_count(ChunkClass size_class) const noexcept {
        return free_count_[size_class];
    }
    bool is_valid() const noexcept;

  private:
    struct Run {
        ChunkGroup* group = nullptr;
        std::uint32_t first = 0;
        std::uint32_t length = 0;
    };
    static void note_free(ChunkGroup& group) noexcept;
    Run best_free_run(ChunkClass size_class, std::uint32_t count) noexcept;
    void take_run(const Run& run, std::span<Chunk*> out) noexcept;

    std::array<std::vector<ChunkGroup*>, kChunkBytes.size()> groups_;
    std::array<std::uint32_t, kChunkBytes.size()> free_count_{};
    std::deque<ChunkGroup> all_;  ///< stable addresses; entries are reused
    std::vector<ChunkGroup*> unused_;
};

}  // namespace libswap
