// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Buffers of the program and the blocks they are made of. A block is the unit of residency: a run
// of equal chunks. Entries have stable addresses and are reused; a block's id never is.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/counters.hpp"
#include "runtime/digest.hpp"
#include "runtime/handle_pool.hpp"
#include "runtime/ranked_mutex.hpp"
#include "runtime/relaxed.hpp"
#include "runtime/residency.hpp"
#include "runtime/stream_table.hpp"
#include "runtime/zero_pages.hpp"

namespace libswap {

using BlockIndex = std::uint32_t;
using BufferIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = UINT32_MAX;
inline constexpr std::size_t kUsesPerBlock = 4;

struct Pool;

/// Who may touch what: `cell` and the atomics, anybody; the chunks and the record, whoever has made
/// the block `busy` (the worker), or holds it Free or newborn (the thread that allocates or frees).
/// What Relaxed fields say holds while the block is pinned: an address behind one buffer's end may
/// be another's begin, and that one may be freed and allocated anew meanwhile.
struct alignas(64) Block {
    ResidencyCell cell;
    /// The last use per stream, at most kUsesPerBlock streams; more set `many_streams`.
    std::array<std::atomic<std::uint64_t>, kUsesPerBlock> uses{};
    /// Resident already, and its content still on its way, or being copied in advance: whoever uses
    /// it waits for this event on the device (rule 10). The event stays what it is while the block
    /// is pinned.
    std::atomic<CUevent> arriving{nullptr};
    std::atomic<std::uint64_t> last_touch{0};  ///< number of the last operation that named it
    std::atomic<std::uint32_t> wanted{0};      ///< operations that wait for it: no victim
    std::atomic<bool> many_streams{false};
    std::atomic<bool> busy{false};   ///< the worker has a job on it
    std::atomic<bool> fresh{false};  ///< nothing was ever written to it: no content to move
    Relaxed<bool> alone;             ///< the only one of its buffer
    // Up to here one cache line: what a launch looks at while nothing can move.
    std::atomic<bool> refused{false};   ///< cannot be brought to the device now: use the host copy
    std::atomic<bool> for_good{false};  ///< stays resident
    std::atomic<StayReason> stays_because{StayReason::None};
    std::atomic<bool> record_valid{false};  ///< the host copy has the content of `record`
    std::atomic<std::uint64_t> id{0};       ///< of this allocation, for the learner and the log
    /// Lowest and highest offset that a launch named, plus one; 0: none. See extents.hpp.
    std::atomic<std::uint32_t> first_cut{0};
    std::atomic<std::uint32_t> last_cut{0};

    /// Of what the program's own allocator has given out of it, where that says so
    /// (device_lives.cpp).
    std::atomic<std::uint64_t> given_out_bytes{0};
    /// All of that was given back: nobody needs the content, until some is given out again.
    std::atomic<bool> given_back{false};

    Relaxed<std::uint64_t> base;
    std::uint64_t births = 0;  ///< allocations that began here
    Relaxed<ChunkRun> chunks;
    Relaxed<BufferIndex> buffer;
    std::uint32_t dirty_evictions = 0;  ///< in a row; digests are not worth their time where many
    std::uint32_t evictions = 0;        ///< begun, of this allocation
    std::array<Chunk*, kMaxChunksPerBlock> device{};
    std::array<Chunk*, kMaxChunksPerBlock> host{};
    Digest record;

    ChunkRun run() const noexcept { return chunks; }
    std::uint64_t bytes() const noexcept { return run().bytes(); }
    std::span<Chunk*> device_chunks() noexcept { return {device.data(), run().count}; }
    std::span<Chunk*> host_chunks() noexcept { return {host.data(), run().count}; }
    bool has_host() const noexcept { return host[0] != nullptr; }
    bool has_device() const noexcept { return device[0] != nullptr; }

    /// Notes a use; the block is pinned. Keeps the latest place of a stream.
    void publish(Use use) noexcept;
    void reset_uses() noexcept;
};

/// An allocation as the program knows it.
struct Buffer {
    Relaxed<std::uint64_t> base;
    Relaxed<std::uint64_t> asked_bytes;
    Relaxed<std::uint64_t> span_bytes;   ///< whole chunks
    Relaxed<std::uint64_t> range_bytes;  ///< of the address space: with a gap where the span has
                                         ///< no slack
    Relaxed<BlockIndex> first;
    Relaxed<std::uint32_t> count;
    Relaxed<CUcontext> context;
    Relaxed<std::uint64_t> id;
    std::atomic<bool> live{false};
    std::atomic<bool> sync_memops{false};
    /// A launch named a part of it: what it touches is believed, not known (extents.hpp).
    std::atomic<bool> in_parts{false};
    /// A launch wrote beyond what it was believed to use: the buffer is given out in other pieces
    /// than it was, and who reads one of them may do as that launch did, which nobody sees.
    std::atomic<bool> shifts{false};
    /// Such a belief was wrong: whatever names it names all of it.
    std::atomic<bool> whole{false};
    /// Whether the program's allocator gives out all of it, and says so.
    enum class Told : std::uint8_t { Unknown, Yes, No };
    std::atomic<Told> told{Told::Unknown};
    Pool* pool = nullptr;     ///< of a stream-ordered allocation
    std::uint64_t peers = 0;  ///< devices that were given access to all of it
};

/// @thread any
class BlockTable {
  public:
    static constexpr std::size_t kMaxBlocks = std::size_t{1} << 20;

    BlockTable();
    ~BlockTable();
    BlockTable(const BlockTable&) = delete;

    /// A buffer of these runs at `base`: its blocks are Free, and named by nobody yet. Null if the
    /// table is full.
    Buffer* add(std::uint64_t base, std::uint64_t asked_bytes, const std::vector<ChunkRun>& runs);
    /// The entry is free for another buffer.
    void remove(Buffer* buffer) noexcept;

    Block& block(BlockIndex index) noexcept { return blocks_[index]; }
    Buffer& buffer(BufferIndex index) noexcept { return *buffers_[index]; }
    Buffer& buffer_of(const Block& block) noexcept { return buffer(block.buffer); }
    BlockIndex index_of(const Block& block) const noexcept {
        return static_cast<BlockIndex>(&block - blocks_.data());
    }
    /// Blocks with an index below this one may be in use.
    BlockIndex end() const noexcept { return end_.load(std::memory_order_acquire); }

    /// A new allocation begins in this block: gives it an id that was never used, and forgets what
    /// was learned of the one before.
    void name_anew(Block& block) noexcept;
    /// Its content has ended, and another begins in the same memory: another id, as of a buffer
    /// that was freed and allocated again. One thread at a time.
    void name_next_life(Block& block) noexcept;
    /// The block with this id, or null if that allocation is gone.
    Block* find(std::uint64_t id) noexcept;

    /// Every word is valid, and chunks are where the states say.
    bool is_valid() noexcept;

  private:
    static constexpr unsigned kIndexBits = 24;

    ZeroPages<Block> blocks_;
    std::atomic<BlockIndex> end_{0};
    RankedMutex<LockRank::AddressSpace> mutex_;
    std::map<std::uint32_t, std::vector<BlockIndex>> free_runs_;  ///< by length
    ZeroPages<Buffer*> buffers_;
    BufferIndex buffer_end_ = 0;
    std::vector<BufferIndex> free_buffers_;
};

}  // namespace libswap
