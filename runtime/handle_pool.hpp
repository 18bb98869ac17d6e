// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Physical memory, in chunks of three sizes. Each chunk has a permanent mapping of our own, its
// alias, through which our copies and digests go. Chunks are created in batches off the hot path
// and reused; the pool's limit counts all that exist, in use or not.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "runtime/address_space.hpp"
#include "runtime/driver.hpp"
#include "runtime/host_limit.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

inline constexpr std::array<std::uint64_t, 3> kChunkBytes{
    std::uint64_t{2} << 20, std::uint64_t{16} << 20, std::uint64_t{64} << 20};
using ChunkClass = std::uint8_t;

/// A run of equal chunks.
struct ChunkRun {
    ChunkClass size_class = 0;
    std::uint32_t count = 0;
    std::uint64_t bytes() const noexcept { return kChunkBytes[size_class] * count; }
};

/// The largest class whose chunks are at most a 64th of the budget.
ChunkClass largest_class(std::uint64_t budget_bytes) noexcept;

/// Most bytes of a block: a tenth of the budget, and not beyond 64 MiB. A remap call costs about
/// the same for one small chunk as for several, so blocks are larger than chunks; much larger ones
/// would leave the planner too little to choose from.
std::uint64_t largest_block_bytes(std::uint64_t budget_bytes) noexcept;

/// Cuts a buffer into runs, one per block: chunks of the largest class, as many to a run as
/// `block_bytes` allows and as even as they come, then one run per smaller class. Rounds up to the
/// smallest chunk only.
void split_into_runs(std::uint64_t bytes, ChunkClass largest, std::uint64_t block_bytes,
                     std::vector<ChunkRun>* runs);

/// Chunks of a block, at most.
inline constexpr std::size_t kMaxChunksPerBlock = 8;

/// One chunk of physical memory. Belongs to its pool; whoever took it may use it alone.
struct Chunk {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr alias = 0;
    ChunkClass size_class = 0;
    CUcontext context = nullptr;  ///< of pinned memory: it goes with it
    Chunk* next_free = nullptr;
};

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
    bool is_valid() noexcept;

  private:
    bool reserve_growth(ChunkClass size_class) noexcept;
    void cancel_growth(ChunkClass size_class) noexcept;
    Status create(Chunk* chunk, CUdeviceptr alias) noexcept;
    Status grant(CUdeviceptr base, std::uint64_t bytes) noexcept;
    void add(Chunk* chunk) noexcept;
    Chunk* pop_other_class(ChunkClass keep) noexcept;
    void release(Chunk* chunk) noexcept;
    void note_gone(Chunk* chunk) noexcept;
    Result<std::uint32_t> grow_mapped(ChunkClass size_class, std::uint32_t count) noexcept;
    Result<std::uint32_t> grow_pinned(ChunkClass size_class, std::uint32_t count) noexcept;

    const Driver& driver_;
    const Settings settings_;
    std::atomic<std::uint64_t> limit_bytes_;
    std::atomic<bool> refused_{false};  ///< the last chunk could not be made
    AddressSpace aliases_;

    RankedMutex<LockRank::HandlePool> mutex_;
    std::deque<Chunk> chunks_;  ///< stable addresses; entries are reused
    std::vector<Chunk*> unused_entries_;
    std::array<Chunk*, kChunkBytes.size()> free_{};
    std::array<std::uint32_t, kChunkBytes.size()> free_count_{};
    std::atomic<std::uint64_t> existing_bytes_{0};  ///< changed under the lock
};

}  // namespace libswap
