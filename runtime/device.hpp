// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// One device: its memory, the program's operations on it, and the worker that moves blocks.
//
// Life of an operation (a launch, a copy, a memset):
//   collect its blocks -> learn -> pin them all, or wait holding none -> the real call -> take a
//   place
//   -> publish it in each block -> unpin -> record an event where somebody may want one

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/block_table.hpp"
#include "runtime/config.hpp"
#include "runtime/copy_times.hpp"
#include "runtime/counters.hpp"
#include "runtime/device_machine.hpp"
#include "runtime/engine.hpp"
#include "runtime/event_log.hpp"
#include "runtime/event_order.hpp"
#include "runtime/extents.hpp"
#include "runtime/freed_ranges.hpp"
#include "runtime/function_table.hpp"
#include "runtime/graph_table.hpp"
#include "runtime/host_limit.hpp"
#include "runtime/learning.hpp"
#include "runtime/link_drift.hpp"
#include "runtime/live_pieces.hpp"
#include "runtime/measuring.hpp"
#include "runtime/pointer_edges.hpp"
#include "runtime/reach.hpp"
#include "runtime/slab_heap.hpp"
#include "runtime/stillness.hpp"
#include "runtime/trials.hpp"
#include "runtime/worker.hpp"

namespace libswap {

/// Blocks of a buffer that an operation named, and where they are in Operation::blocks.
struct NamedSpan {
    BufferIndex buffer = 0;
    BlockSpan span;
    std::uint32_t place = 0;
};

/// A pointer of a launch that is believed to reach a part of its buffer.
struct NamedPart {
    BufferIndex buffer = 0;
    BlockSpan span;
    std::uint64_t address = 0;
    std::uint64_t next = 0;  ///< where the next tensor begins; 0: not known
    std::uint32_t word = 0;
};

/// What an operation touches. One per thread, reused: no allocation once it has grown.
struct Operation {
    std::vector<BlockIndex> blocks;     ///< what it names, each once; the last `rest` are only held
    std::vector<std::uint8_t> changes;  ///< 0: believed to leave the block as it is. For plans
    std::vector<NamedSpan> spans;
    std::vector<NamedPart> parts;
    std::uint64_t buffers_seen =
        0;  ///< by a bit of the index: 0 says that none of these is in `spans`
    std::vector<std::uint64_t> targets;  ///< scratch of name_table, a stack
    std::vector<std::uint64_t> tables;   ///< memory whose pointers were followed
    std::vector<std::uint64_t> foreign;  ///< what they point at that is not this device's
    struct NamedOperand {
        BlockIndex block = kNoBlock;
        std::uint8_t chunk = 0;
        std::uint32_t word = 0;
    };
    std::vector<NamedOperand> operands_named;  ///< where a launch's pointers point, the first few
    std::vector<cost::TracedOperand> operands;
    std::vector<SwapCommand> commands;
    std::uint64_t signature = 0;
    OpKind kind = OpKind::Launch;
    FunctionInfo* function = nullptr;
    bool explained = true;
    bool writes = true;         ///< may write what it names
    bool host_is_fine = false;  ///< host copies may be used in place
    bool names_ours = false;    ///< at least one address of ours, slabs included
    /// Addresses stand for parts of big buffers (launches), not for all of them.
    bool by_parts = false;
    std::uint32_t words = 0;      ///< parameter words looked at
    std::uint32_t addresses = 0;  ///< of these, how many name memory of ours
    std::uint32_t on_host = 0;    ///< blocks that are used on the host
    /// Blocks that may be touched beside what is believed: held wherever they lie, not brought.
    std::uint32_t rest = 0;
    bool may_reach_further = false;  ///< than its parts: its numbers say so
    std::uint64_t launch_kind = 0;   ///< of launches: function, grid and extents
    Belief belief = Belief::Confirmed;

    std::size_t brought() const noexcept { return blocks.size() - rest; }
    /// Counts as explained: it touches what it names, and nothing else.
    bool trusted() const noexcept { return explained && (!function || function->trusted()); }
    void clear() noexcept;
};

/// What an operation waits for before it is issued, the slowest last among what moves.
enum class WaitReason : std::uint8_t { Remap, CopyIn, Room, Turn, Gate };

class Device {
  public:
    /// Looks at the device that the current context belongs to. Null, with one line said, where it
    /// cannot be swapped: then everything passes through. Never fails otherwise. `host_limit` and
    /// `edges` are shared by all devices, and outlive them.
    static std::unique_ptr<Device> open(const Driver& driver, const Config& config, EventLog* log,
                                        CUdevice ordinal, CUcontext context, HostLimit* host_limit,
                                        PointerEdges* edges);
    ~Device();

    CUresult mem_alloc(CUdeviceptr* ptr, std::size_t bytes, CUcontext context);
    /// False if the address is not ours.
    bool owns(std::uint64_t address) const noexcept { return space_.find(address) != 0; }
    CUresult mem_free(CUdeviceptr ptr);
    /// Allocates in the order of a stream, which is not captured. NOT_READY: nothing has changed,
    /// and the driver's own memory has to do.
    CUresult pool_alloc(CUdeviceptr* ptr, std::size_t bytes, CUcontext context, CUstream stream,
                        Pool& pool);
    /// Frees in the order of a stream, which is not captured; never waits for the device.
    CUresult pool_free(CUdeviceptr ptr, CUcontext context, CUstream stream);
    /// The pool that memory of ours came from; null for cuMemAlloc's.
    Pool* pool_of(std::uint64_t address);
    /// Releases what a pool holds beyond `keep_bytes`, as far as the device is done with it.
    void trim_pool(Pool& pool, std::uint64_t keep_bytes);
    /// The program has synchronised: releases what pools hold beyond their thresholds.
    void release_unused();
    EventOrder& event_order() noexcept { return order_; }
    /// Of memory of ours, the program's own allocator gives a range out, or takes it back: what
    /// lies there is nobody's from then on. Ranges may lie in several blocks; of memory that is not
    /// ours nothing is noted. @thread any
    void content_begins(std::uint64_t address, std::uint64_t bytes);
    void content_ends(std::uint64_t address, std::uint64_t bytes);
    /// The address lies in a block of which all was given back, and that nobody has named since: no
    /// operand of an operation that is issued now.
    bool has_no_content(std::uint64_t address) noexcept;
    void mem_info(std::size_t* free_bytes, std::size_t* total_bytes);
    /// The buffer (or piece of a slab) that holds an address of ours.
    bool range_of(std::uint64_t address, std::uint64_t* base, std::uint64_t* bytes,
                  std::uint64_t* id = nullptr, CUcontext* context = nullptr);
    void set_sync_memops(std::uint64_t address, bool on);
    bool sync_memops(std::uint64_t address);

    // Memory of the device that is not ours.
    void external_allocated(std::uint64_t bytes, MemoryPlace place) noexcept;
    void external_freed(std::uint64_t bytes, MemoryPlace place) noexcept;
    /// Gives `bytes` of our memory back to the driver, evicting where needed; keep_room() must
    /// follow the call that needs it. False if there was nothing to give.
    bool give_room(std::uint64_t bytes);
    /// `driver_bytes` of what was given stay with the driver.
    void keep_room(std::uint64_t driver_bytes) noexcept;
    /// The program lets another device use this one's memory.
    void add_peer(int peer);
    /// Releases host memory of ours that is not in use. False if there was none.
    bool trim_host() { return host_pool_.trim(0) != 0; }

    /// Adds what an address reaches to an operation: its whole buffer, and what its tables point
    /// at.
    void name_address(Operation& op, std::uint64_t address);
    /// Adds the blocks of a range: what a copy or memset touches.
    void name_range(Operation& op, std::uint64_t address, std::uint64_t bytes);
    /// Looks whether the numbers of a launch that names parts may take it beyond them.
    void look_at_numbers(Operation& op, const LaunchRequest& request);
    /// Adds what every operation may reach: targets of module globals.
    void name_globals(Operation& op);
    /// For a launch whose parameters are not known: where what has left cannot be reached by the
    /// device, all buffers have to be there.
    void name_everything_unmappable(Operation& op);
    /// For a graph that could not be read: any buffer may be an operand.
    void name_everything(Operation& op);
    /// All blocks of an operation are on the host now.
    bool all_on_host(const Operation& op) noexcept;
    /// Runs an operation on a stream around the real call.
    CUresult run(Operation& op, CUcontext context, CUstream stream, RealCall real);
    /// A launch while nothing can move, around the real call: what it names need not be collected.
    /// False where that is not all that there is to do; then nothing was done.
    bool launch_still(const LaunchRequest& request, CUcontext context, RealCall real,
                      CUresult* result);
    /// Marks the blocks of an operation as staying for good, and brings them.
    void keep_for_good(Operation& op, StayReason reason);

    void add_global(std::uint64_t base, std::uint64_t bytes);

    // Models, for the summary.
    /// Where the figures of the machine are from that plans are made for.
    std::string machine_source() const;
    const CopyTimes& copy_times() const noexcept { return copy_times_; }
    ModelError time_error(OperationClass kind) { return learning_->time_error(kind); }

    // Streams, contexts, captures.
    StreamTable& streams() noexcept { return streams_; }
    void begin_capture() noexcept;
    void end_capture() noexcept;
    /// A stream of any device was, and may be again: from now on no content ends.
    void note_captured() noexcept { has_captured_.store(true, std::memory_order_relaxed); }
    bool capturing() const noexcept { return captures_.load(std::memory_order_seq_cst) > 0; }
    /// The stream is part of a capture. Asks the driver.
    bool is_captured(CUstream stream);
    /// Addresses that are or may become buffers.
    std::pair<std::uint64_t, std::uint64_t> addresses() const noexcept {
        return {space_.low(), space_.high()};
    }
    /// Memory that graphs allocate by themselves: asks the driver how much it is now.
    void look_at_graph_memory() noexcept;
    /// Before a context of this device goes: what the worker has on it is settled.
    void settle(CUcontext context);
    /// After it went: its buffers are gone.
    void purge(CUcontext context);
    /// Starts the worker again, in this context, after the one it lived in went.
    void revive(CUcontext context);
    /// The process ends: the worker makes no further call.
    void park() noexcept { worker_->park(); }

    FunctionTable& functions() noexcept { return functions_; }
    Trials& trials() noexcept { return trials_; }
    /// What is known of a launch that names parts; until it is confirmed, adds the rest of them.
    void look_at_parts(Operation& op);
    Counters& counters() noexcept { return counters_; }
    CUdevice ordinal() const noexcept { return ordinal_; }
    std::uint64_t budget_bytes() const noexcept { return budget_bytes_; }
    std::uint64_t host_limit_bytes() const noexcept { return host_limit_.total_bytes(); }
    std::uint64_t swappable_span() const noexcept { return counters_.span_bytes.load(); }
    /// Something may have to move, or somebody wants to know: operations are looked at.
    bool tracking() const noexcept { return tracking_.load(std::memory_order_relaxed); }
    /// Launches may name parts of buffers.
    bool by_parts() const noexcept { return tracking() && !capturing(); }
    bool is_valid();
    /// Ends the worker. No driver call is made where the context or the driver is gone.
    void stop(bool context_gone);
    /// A worker moves its blocks.
    bool swaps() const noexcept { return worker_ && worker_->running(); }
    bool lost() const noexcept { return worker_ && worker_->lost(); }
    std::vector<IterationTime> last_iterations() { return learning_->last_iterations(); }

  private:
    struct Shape {
        std::uint64_t budget = 0;
        HostLimit* host_limit = nullptr;
        PointerEdges* edges = nullptr;
        HandlePool::Kind host_kind = HandlePool::Kind::Host;
        int numa_node = 0;
    };
    Device(const Driver& driver, const Config& config, EventLog* log, CUdevice ordinal,
           CUcontext home, const Shape& shape);

    // Memory.
    /// What a new life of memory begins with.
    struct Birth {
        std::uint64_t bytes = 0;
        CUcontext context = nullptr;
        Pool* pool = nullptr;
        StreamIndex stream = kNoStream;  ///< the stream whose order it is in, for pools
        Use after;                       ///< earlier work on the memory that may be under way
    };
    bool is_small(std::uint64_t bytes) const noexcept;
    bool stays(std::uint64_t bytes) const noexcept;
    CUresult allocate(CUdeviceptr* ptr, const Birth& birth);
    CUresult alloc_small(CUdeviceptr* ptr, const Birth& birth);
    CUresult alloc_buffer(CUdeviceptr* ptr, const Birth& birth);
    Result<Buffer*> new_buffer(std::uint64_t bytes);
    void begin_life(Buffer& buffer, const Birth& birth);
    void yield_to_fetches(std::uint64_t bytes);
    Buffer* take_cached(std::uint64_t size_key);
    bool give_memory(Buffer& buffer, bool must_be_device);
    bool give_block_memory(Block& block, bool must_be_device);
    /// `patient`: until no more becomes free by itself; else what is cold leaves for it.
    bool wait_for_memory(ChunkClass size_class, std::span<Chunk*> out, bool patient = false);
    void take_memory_back(Buffer& buffer);
    Use fill(Buffer& buffer, const Birth& birth);
    Use fill_in_order(std::uint64_t base, std::uint64_t bytes, const Birth& birth);
    void fill_now(std::uint64_t base, unsigned char value, std::uint64_t bytes);
    bool take_beyond_budget(std::span<Chunk*> chunks);
    bool extend_slabs(std::uint64_t bytes);
    void wait_for_streams();
    void wait_for_stream(StreamIndex stream, std::uint64_t place);
    void free_now(Buffer& buffer);
    void end_blocks(Buffer& buffer);
    void settle_blocks(Buffer& buffer);
    void recycle(Buffer& buffer);
    void release_range(Buffer& buffer);
    bool reclaim_cached();
    /// All operations that were issued are complete, as far as events tell, which are recorded here
    /// where there are none.
    bool device_idle();

    // Stream order.
    void free_piece(CUdeviceptr ptr, const SlabPiece& piece);
    bool take_freed(const Pool& pool, std::uint64_t size_key, StreamIndex stream, FreedRange* out);
    void reuse(const FreedRange& range, const Birth& birth);
    bool settled(const FreedRange& range);
    void look_at_frees();
    bool reclaim_freed();
    void recycle(const FreedRange& range);
    bool wait_for_freed();
    std::uint64_t taken_bytes() noexcept;
    std::uint64_t host_room() noexcept;
    void update_limit() noexcept;
    /// Raises the limit of device memory by what of the operation is still on the host, as far as
    /// the device has it free. False if it has not.
    bool exceed_budget(const Operation& op) noexcept;
    /// The same by so many bytes, for `why` to be said once.
    bool exceed_budget(std::uint64_t bytes, const char* why) noexcept;
    void grant_peers(Buffer& buffer);
    void count_alloc(std::uint64_t asked, std::uint64_t span);
    void count_free(std::uint64_t asked, std::uint64_t span);
    /// The block of one of our buffers; null for slabs, and for what is not ours.
    Block* block_at(std::uint64_t address) noexcept {
        const PageTag tag = space_.find(address);
        return tag == 0 || tag & kSlabTag ? nullptr : &blocks_.block(tag - 1);
    }
    /// Calls with each block of a range of one buffer, and how much of the range lies in it.
    template <typename Call>
    void for_each_block_of(std::uint64_t address, std::uint64_t bytes, const Call& call);
    static bool is_told_of(Buffer& buffer, std::uint64_t address) noexcept;
    void note_piece(std::uint64_t address, std::uint64_t bytes);
    std::optional<BlockSpan> told_part(const Buffer& buffer, std::uint64_t address) noexcept;
    bool reports_hold() const noexcept;
    bool content_may_end() const noexcept;
    void end_content(Block& block);

    // Operations.
    void name_tagged(Operation& op, PageTag tag, std::uint64_t address, std::uint32_t word);
    void name_table(Operation& op, std::uint64_t base, std::uint64_t bytes);
    void name_span(Operation& op, const Buffer& buffer, BlockSpan span, bool changes);
    static void append_span(Operation& op, const Buffer& buffer, BufferIndex index, BlockSpan span,
                            bool changes);
    BlockSpan named_part(Operation& op, Buffer& buffer, Block& block, std::uint64_t address,
                         std::uint32_t word);
    bool moves_in_parts(const Buffer& buffer) const noexcept;
    static std::uint8_t chunk_at(const Block& block, std::uint64_t address) noexcept;

    // Trials: what is done until the extents of a launch are known.
    Reach reach_of(const NamedPart& part) noexcept;
    bool is_count(const Operation& op, std::int64_t number) noexcept;
    void add_rest(Operation& op);
    std::uint32_t begin_trial(Operation& op, CUcontext context, CUstream stream);
    bool acquire(Operation& op, std::uint64_t serial);
    bool try_pin_all(Operation& op, bool last_resort);
    void unpin(Operation& op, std::size_t count);
    bool any_refused(const Operation& op) noexcept;
    bool wait_for_blocks(Operation& op, std::uint64_t serial);
    Step learn(Operation& op, bool* event_wanted);
    void note_issued(const Step& step, Use use) noexcept;
    Learning::Timing begin_timing(StreamIndex stream, const Step& step, const Operation& op);
    void note_block_free(std::uint64_t block);
    void publish(Operation& op, Use use);
    void note_touched(const Operation& op) noexcept;
    CUresult run_still(Operation& op, StreamIndex index, RealCall real);
    void take_still_place(StreamIndex index, bool trusted);
    void touch(std::uint64_t address, std::uint64_t now) noexcept;
    CUresult run_pinned(Operation& op, CUcontext context, StreamIndex index, CUstream stream,
                        RealCall real);
    bool end_stillness() noexcept;
    bool enter_gate(Gate& gate, std::uint64_t serial);
    bool is_believed_where_it_shifts(const Operation& op) noexcept;
    CUresult refuse(const Operation& op, CUstream stream);
    void order_after_arrivals(const Operation& op, CUstream stream);
    void wait_for_arrivals(const Operation& op);
    void note_wait(std::uint64_t serial, WaitReason reason, std::uint64_t waited_ns);
    void bring_for_good();
    void start_tracking();
    bool careful();
    Worker::Host worker_host();
    SwapEngine::Parts swap_parts();
    std::uint64_t plan_budget();
    void look_at_room() noexcept;
    cost::Machine plan_machine() const;
    void watch_link();

    // Measuring: where no profile of the device is there.
    bool may_be_measured() const;
    bool has_room_for_measuring() const noexcept;
    void look_at_measuring() noexcept;
    void take_profile();

    const Driver& driver_;
    const Config& config_;
    EventLog* log_;
    const CUdevice ordinal_;
    CUcontext home_;
    const std::uint64_t budget_bytes_;
    std::atomic<std::uint64_t> exceeded_bytes_{0};  ///< taken beyond the budget, see exceed_budget
    /// What the driver has for us, where other processes left less than the budget.
    std::atomic<std::uint64_t> reachable_bytes_{UINT64_MAX};
    std::uint64_t looked_at_room_ns_ = 0;  ///< the worker's
    bool said_room_ = false;               ///< the worker's
    HostLimit& host_limit_;
    const ChunkRun largest_block_;
    mutable std::mutex machine_mutex_;
    DeviceMachine machine_;  ///< under machine_mutex_ once there are threads; the worker changes it
    CopyTimes copy_times_;
    LinkDrift link_drift_;
    std::unique_ptr<Measuring> measuring_;  ///< the worker's. Null: the device is not measured
    std::atomic<bool> measuring_wanted_{false};

    Counters counters_;
    AddressSpace space_;
    HandlePool device_pool_;
    HandlePool host_pool_;
    Remapper remapper_;
    BlockTable blocks_;
    SlabHeap slabs_;
    StreamTable streams_;
    FunctionTable functions_;
    PointerEdges& edges_;
    Gate gate_;           ///< of unexplained launches
    Gate believed_gate_;  ///< of those that use parts of buffers that shift
    Stillness stillness_;
    Trials trials_;
    SeenNumbers seen_numbers_;
    std::unique_ptr<Worker> worker_;

    RankedMutex<LockRank::Buffers> buffers_mutex_;
    std::map<std::uint64_t, std::vector<Buffer*>> cached_;  ///< freed, still mapped, by size key
    std::atomic<std::uint32_t> run_without_yield_{UINT32_MAX};  ///< of a plan
    std::atomic<std::uint64_t> cached_bytes_{0};                ///< changed with it
    FreedRanges freed_;
    EventOrder order_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> globals_;
    std::atomic<bool> any_globals_{false};
    std::vector<BlockIndex> graph_blocks_;
    std::mutex revival_;
    LivePieces pieces_;
    std::mutex lives_;  ///< one content at a time ends

    std::atomic<int> captures_{0};
    std::atomic<bool> has_captured_{false};
    std::atomic<std::uint64_t> graph_memory_{0};
    std::atomic<bool> tracking_{false};
    std::atomic<std::uint64_t> last_unexplained_op_{0};
    std::timed_mutex room_turn_;  ///< one waiting operation at a time has its blocks brought
    std::unique_ptr<Learning> learning_;
};

}  // namespace libswap
