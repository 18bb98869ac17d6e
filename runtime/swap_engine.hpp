// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Moves blocks: one job per block under way, each a small machine of states that step() advances
// when its event is done. Nothing here waits.
//
//   evict   users' events -> [digest] -> copy out -> remap onto the host copy -> [guard digest] ->
//   Host
//                              '-- same as at the last fetch: no copy ----^
//   fetch   users' events -> copy in -> [digest] -> swap the mapping -> Resident
//   ahead   digest, copy out -> Resident all the time
//
// Early (rule 10), for explained blocks: a fetch may be mapped before its copy is done, and who
// uses the block waits for that on the device. With hand-over (rule 9) it may also take the memory
// of an eviction whose copy out is under way.
//
//   evict   ... copy out ------------------> remap onto the host copy -> Host
//                  '- HandedOver: the memory is the fetched block's
//   fetch          copy in (behind that copy out) -> swap the mapping -> Resident, arriving ->
//   there
//
// Any driver call may fail. A job that fails before its remap is cancelled, and ends when what it
// had submitted is done; a remap that fails is undone. Only when undoing fails too is the block
// lost to the program (`lost()`), and nothing new may be begun.

#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/block_table.hpp"
#include "runtime/copy_times.hpp"
#include "runtime/counters.hpp"
#include "runtime/digest.hpp"
#include "runtime/event_log.hpp"
#include "runtime/gate.hpp"
#include "runtime/quiet_turn.hpp"
#include "runtime/remap.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

/// @thread one at a time (the worker), except as said
class SwapEngine {
  public:
    struct Parts {
        const Driver* driver = nullptr;
        HandlePool* device_pool = nullptr;
        HandlePool* host_pool = nullptr;
        StreamTable* streams = nullptr;
        BlockTable* blocks = nullptr;
        AddressSpace* space = nullptr;
        Remapper* remapper = nullptr;
        Gate* gate = nullptr;
        Gate* believed = nullptr;  ///< for launches that use parts of buffers that shift
        Counters* counters = nullptr;
        EventLog* log = nullptr;  ///< may be null
        CopyTimes* copy_times = nullptr;
        bool verify = false;
    };
    /// How a block moves.
    enum class Way : std::uint8_t {
        Careful,  ///< its users are not all explained: gate and guard
        Plain,
        Early,    ///< as Plain, but mapped before the copy in is done: the device waits for it
        HandOver  ///< as Early, and its memory may be that of a block whose copy out is under way
    };
    enum class Start : std::uint8_t {
        Started,
        NotNow,          ///< pinned, moving already, or its users cannot be waited for yet
        NoDeviceMemory,  ///< no free chunks of its size
        NoHostMemory,
        Failed  ///< the driver refused; nothing has changed
    };

    explicit SwapEngine(const Parts& parts) noexcept;

    /// Makes our streams, unless there are some. The context must be current, here and in all that
    /// follows.
    Status open() noexcept;
    /// Nothing may be under way. `context_gone`: our streams and events went with it.
    void close(bool context_gone) noexcept;
    bool is_open() const noexcept { return out_ != nullptr; }

    /// Begins to move a resident block to the host. `careful`: its users are not all explained.
    Start evict(Block& block, bool careful, std::uint64_t after_serial) noexcept;
    /// Begins to bring a block. Takes its memory first.
    Start fetch(Block& block, Way way, std::uint64_t after_serial) noexcept;

    /// Copies a resident block to the host in advance, once all that uses it has completed. Failed
    /// also where there is nothing to copy.
    Start copy_ahead(Block& block, std::uint64_t after_serial) noexcept;
    /// Nothing that was issued uses the block any more. May record and query events.
    bool users_done(const Block& block) noexcept;
    /// Copies to the host that are under way, of blocks that leave.
    std::size_t copying_out() const noexcept;
    /// Another copy in advance may begin.
    bool may_copy_ahead() const noexcept;
    /// The block is to leave. False while it is being copied in advance; a copy that has not begun
    /// does not.
    bool end_copy_ahead(const Block& block) noexcept;

    /// Polls what is under way. True if anything changed.
    bool step() noexcept;
    /// Maps the host copy of one block that has left. False if there is none. To be called once
    /// others that could go on have been served.
    bool map_one() noexcept;
    std::size_t jobs() const noexcept { return jobs_.size(); }
    std::size_t evictions() const noexcept { return evictions_; }
    /// Device memory that evictions under way will free.
    std::uint64_t leaving_bytes() const noexcept { return leaving_bytes_; }
    /// A remap could not be undone, or data may be lost. @thread any
    /// Nothing moves from now on; `what` is said once. @thread the worker
    void lose(const char* what) noexcept;
    bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    /// Nothing moves from now on, since the driver refused something; all blocks stay where they
    /// are. @thread the worker
    void stop_moving(const Error& why) noexcept;
    /// The driver refuses to move anything; all blocks stay in their certain places. @thread any
    bool gave_up() const noexcept { return gave_up_.load(std::memory_order_relaxed); }
    /// Whether the device still answers, for who has waited for long.
    void check_device() noexcept;
    /// The context is dead: jobs are given up where they stand. For context destruction.
    void abandon_all() noexcept;
    /// True once after a guard found a write that nobody had announced.
    bool take_guard_hit() noexcept;

    Digester& digester() noexcept { return digester_; }

  private:
    enum class Stage : std::uint8_t {
        EvictQuiet,   ///< careful: until no unexplained launch is in flight
        EvictDigest,  ///< compares with the record
        EvictCopy,
        EvictGuard,  ///< after the remap, the second digest
        EvictMap,    ///< unmapped, its memory given away: until the host copy is mapped there
        FetchQuiet,
        FetchCopy,
        FetchArrive,  ///< mapped: until the copy is done
        FetchBack,    ///< mapped, but the copy could not be submitted: until it can be unmapped
        FetchRest,    ///< it is: until no launch can still have the event
        AheadDigest,  ///< in advance
        AheadCopy,    ///< FetchRest follows
        Drain         ///< cancelled or failed: until what was submitted is done
    };
    struct Job {
        Block* block = nullptr;
        std::uint64_t generation = 0;
        Stage stage = Stage::Drain;
        bool is_evict = false;
        bool careful = false;
        bool copied = false;             ///< a copy was submitted
        bool mapped = false;             ///< of a fetch: its new memory is at the block's address
        bool left = false;               ///< its device memory is free
        bool maps_at_once = false;       ///< the host copy, as the device's is unmapped
        bool hand_over = false;          ///< of an eviction: may take part in a hand-over
        bool early = false;              ///< of a fetch: its mapping need not wait for its copy
        bool handed = false;             ///< its memory is another block's
        bool holds_gate = false;         ///< unexplained launches wait until it is over
        bool waits = false;              ///< what was submitted waits for the program's operations
        bool cancelled = false;          ///< copies in advance: not wanted any more
        bool event_set = false;          ///< `event` covers what was submitted
        CUstream last_stream = nullptr;  ///< of the last work submitted
        std::uint8_t failures = 0;
        CUevent event = nullptr;
        std::uint32_t slot = Digester::kNoSlot;
        std::uint32_t second_slot = Digester::kNoSlot;
        Digest first;
        std::array<Chunk*, kMaxChunksPerBlock> chunks{};  ///< of a fetch: the new memory
        std::array<std::uint64_t, kUsesPerBlock> uses{};  ///< in advance: when the digest began
        std::uint64_t after_serial = 0;
        std::uint64_t start_ns = 0;
    };
    enum class Next : std::uint8_t { Wait, Again, Done };
    static constexpr std::size_t kMaxJobs = 256;

    Job& add_job(Block& block, bool is_evict, bool careful, std::uint64_t after_serial) noexcept;
    Status order_after_users(Job& job, CUstream stream) noexcept;
    Status order_after(Use use, CUstream stream, bool* waits) noexcept;
    bool any_waits(bool is_evict) const noexcept;
    bool keep_out_unexplained(Job& job) noexcept;
    bool shifts(const Job& job) const noexcept;
    bool may_remap(const Job& job) noexcept;
    bool inherit(Job& job, std::size_t from) noexcept;
    std::size_t find_heritage(const Block& block) const noexcept;
    bool wants_one_copy(const Job& job) const noexcept;
    bool has_no_content(const Job& job) const noexcept;
    bool may_map_early(Job& job) noexcept;
    bool begin_mapping(Job& job) noexcept;
    bool map_new(Job& job) noexcept;
    Next expect_copy(Job& job) noexcept;
    Next take_back(Job& job, const Error& why) noexcept;
    Next map_host_again(Job& job) noexcept;
    static std::array<std::uint64_t, kUsesPerBlock> uses_of(const Block& block) noexcept;
    std::size_t copying_ahead() const noexcept;
    Next begin_ahead_copy(Job& job) noexcept;
    Next stop_ahead(Job& job, const Error& why) noexcept;
    void note_copied_ahead(Job& job) noexcept;
    Next arrived(Job& job) noexcept;
    void note_content(Job& job) noexcept;
    bool unmap_handed(Block& block) noexcept;
    bool advance_jobs(bool wanted) noexcept;
    Next advance(Job& job) noexcept;
    Next begin_evict_work(Job& job) noexcept;
    Next begin_fetch_work(Job& job) noexcept;
    Next after_digest(Job& job) noexcept;
    Next remap_out(Job& job) noexcept;
    Next after_guard(Job& job) noexcept;
    Next map_back(Job& job) noexcept;
    Next remap_in(Job& job) noexcept;
    Next give_up(Job& job, const Error& why) noexcept;
    void finish(Job& job) noexcept;

    Status submit_copy_out(Job& job) noexcept;
    Status submit_copy_in(Job& job) noexcept;
    Status copy_out(Block& block) noexcept;
    Status copy_in(Job& job) noexcept;
    Status begin_digest(Job& job, std::uint32_t* slot, CUstream stream) noexcept;
    Status submit_digest_in_place(Job& job, CUstream stream) noexcept;
    Status submit_digest(Job& job, std::uint32_t* slot, std::span<Chunk* const> chunks,
                         CUstream stream) noexcept;
    Status set_event(Job& job, CUstream stream) noexcept;
    bool event_done(Job& job, bool* failed) noexcept;
    bool still_mine(const Job& job) const noexcept;
    bool digest_is_worth_it(const Block& block) const noexcept;
    void verify_copy(Job& job) noexcept;
    void log_move(MoveKind kind, const Job& job) noexcept;
    void note_failure(const Error& why) noexcept;

    Parts parts_;
    const Driver& driver_;
    Digester digester_;
    // Copies have streams of their own, so that the link never waits for a digest.
    CUstream out_ = nullptr;
    CUstream in_ = nullptr;
    CUstream check_out_ = nullptr;
    CUstream check_in_ = nullptr;
    QuietTurn remap_turn_;  ///< in buffers that shift
    std::vector<Job> jobs_;
    std::vector<CUevent> events_;
    std::size_t evictions_ = 0;
    std::uint64_t leaving_bytes_ = 0;
    bool guard_hit_ = false;
    std::uint32_t failed_moves_ = 0;  ///< in a row
    std::atomic<bool> gave_up_{false};
    std::atomic<bool> lost_{false};
};

}  // namespace libswap
