// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Physical memory, in chunks of two sizes. Each chunk has a permanent mapping of our own, its
// alias, through which our copies and digests go. Chunks are created in batches off the hot path
// and reused; the pool's limit counts all that exist, in use or not.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/address_space.hpp"
#include "runtime/chunk_groups.hpp"
#include "runtime/driver.hpp"
#include "runtime/host_limit.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

/// A run of equal chunks.
struct ChunkRun {
    ChunkClass size_class = 0;
    std::uint32_t count = 0;
    std::uint64_t bytes() const noexcept { return kChunkBytes[size_class] * count; }
};

/// The largest class whose chunks are at most a 4096th of the budget. Memory of one class serves no
/// other: a chunk has to be made anew, which takes longer than a copy of it. So there is one class
/// where what buffers leave over of larger chunks would be much, and two where chunks of one would
/// be so many that making them takes seconds, and buffers are large.
ChunkClass largest_class(std::uint64_t budget_bytes) noexcept;

/// The largest block for a budget: a 15th of it, and not beyond 64 MiB. A remap costs about the
/// same for a small range as for a larger one, so blocks are larger than chunks; much larger ones
/// would leave the planner too little to choose from.
ChunkRun largest_run(std::uint64_t budget_bytes) noexcept;

/// Cuts a buffer into runs, one per block: chunks of the largest class, at most `largest` and as
/// even as they come, then one run of the smaller class. Rounds up to the smallest chunk only.
void split_into_runs(std::uint64_t bytes, ChunkRun largest, std::vector<ChunkRun>* runs);

/// Chunks of a block, at most.
inline constexpr std::size_t kMaxChunksPerBlock = kGroupChunks;

/// @thread any
class HandlePool {
  public:
    enum class Kind : std::uint8_t {
        Device,  ///< VMM memory of the device
        Host,    ///< VMM memory at a HOST_NUMA location, so that it can be mapped at any address
        Pinned   ///< cuMemHostAlloc'ed, where HOST_NUMA is refused: cannot be mapped elsewhere
    };
    struct Settings {
        Kind kind = Kind::Device;
        int device = 0;
        int numa_node = 0;
        std::uint64_t limit_bytes = 0;
        HostLimit* shared = nullptr;  ///< what pools of host memory share; may be null
    };

    HandlePool(const Driver& driver, const Settings& settings) noexcept;
    ~HandlePool();
    HandlePool(const HandlePool&) = delete;
    HandlePool& operator=(const HandlePool&) = delete;

    /// `out.size()` chunks of a class that lie ready, or none. No driver call.
    bool take(ChunkClass size_class, std::span<Chunk*> out) noexcept;
    void give_back(std::span<Chunk* const> chunks) noexcept;

    /// Creates up to `count` chunks, within the limit; where that is reached, free chunks of other
    /// classes are released first. Says how many it made; the error is of the first that could not
    /// be made, if none was.
    Result<std::uint32_t> grow(ChunkClass size_class, std::uint32_t count) noexcept;

    /// take(), growing where needed.
    bool take_or_grow(ChunkClass size_class, std::span<Chunk*> out) noexcept;

    /// Releases free chunks until what exists is at most `bytes`. Says what was released.
    std::uint64_t trim(std::uint64_t bytes) noexcept;
    /// The context went, and pinned memory with it: its free chunks are forgotten. No driver call.
    void forget_context(CUcontext context) noexcept;

    void set_limit(std::uint64_t bytes) noexcept;
    std::uint64_t limit_bytes() const noexcept { return limit_bytes_.load(); }
    std::uint64_t existing_bytes() const noexcept {
        return existing_bytes_.load(std::memory_order_relaxed);
    }
    std::uint64_t free_bytes() noexcept;
    std::uint32_t free_count(ChunkClass size_class) noexcept;
    /// Bytes that could be taken: free, or not yet created. What the driver does not give, within
    /// the limit or not, is not counted while it refuses.
    std::uint64_t available_bytes() noexcept;

    Kind kind() const noexcept { return settings_.kind; }
    /// The driver did not give the last chunk that was asked of it.
    bool refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
    bool is_valid() noexcept;

  private:
    bool reserve_growth(ChunkClass size_class) noexcept;
    void cancel_growth(ChunkClass size_class) noexcept;
    std::uint32_t reserve_growth(ChunkClass size_class, std::uint32_t count) noexcept;
    Result<ChunkPlaces> claim_places(ChunkClass size_class, std::uint32_t count) noexcept;
    Status create(const ChunkPlaces& places, std::uint32_t index,
                  CUmemGenericAllocationHandle* handle) noexcept;
    Status grant(CUdeviceptr base, std::uint64_t bytes) noexcept;
    Chunk* take_other_class(ChunkClass keep) noexcept;
    void release(Chunk* chunk) noexcept;
    Result<std::uint32_t> grow_mapped(ChunkClass size_class, std::uint32_t count) noexcept;
    Result<std::uint32_t> grow_pinned(ChunkClass size_class, std::uint32_t count) noexcept;

    const Driver& driver_;
    const Settings settings_;
    std::atomic<std::uint64_t> limit_bytes_;
    std::atomic<bool> refused_{false};  ///< the last chunk could not be made
    AddressSpace aliases_;

    RankedMutex<LockRank::HandlePool> mutex_;
    ChunkGroups groups_;
    std::atomic<std::uint64_t> existing_bytes_{0};  ///< changed under the lock
};

}  // namespace libswap
