// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The worker of a device: a thread that completes what is under way, brings what is wanted, makes
// room and follows the plan. It queries events and never blocks on one. All choices of what leaves
// are made here, so one thread at a time makes room.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/plan_executor.hpp"
#include "runtime/swap_engine.hpp"

namespace libswap {

class Worker {
  public:
    /// What the worker asks of the device around it. All called on the worker's thread, but where
    /// it says otherwise.
    struct Host {
        /// On whatever thread starts the worker's: something may move from now on.
        std::function<void()> thread_starts;
        /// False while operations are being issued that began before that. Nothing is begun then.
        std::function<bool()> may_begin;
        /// Operation `serial` and all before it have completed. May query events.
        std::function<bool(std::uint64_t serial)> op_complete;
        /// Frees the memory of a freed range that still has its mapping. False if there is none.
        std::function<bool()> reclaim_cached;
        /// The plan that commands belong to.
        std::function<std::uint32_t()> plan_run;
        /// It is being followed: what leaves is what it says, as long as that frees memory.
        std::function<bool()> follows_plan;
        /// All operations that were issued are complete. May record and query events.
        std::function<bool()> device_idle;
        /// Unexplained launches are about: be careful.
        std::function<bool()> careful;
        /// How blocks move whose users are all explained; `planned`: the plan's moves are due.
        std::function<SwapEngine::Way(bool planned)> explained_way;
        /// A capture is open: begin nothing.
        std::function<bool()> capturing;
        /// A guard found a hidden write.
        std::function<void()> guard_hit;
        /// Now and then, also when idle: collects times of operations. True if more is to come
        /// soon.
        std::function<bool()> background;
    };

    Worker(const Driver& driver, SwapEngine::Parts parts, Host host);

    /// Blocks move in this context from now on. The thread starts when it is first needed, and
    /// makes its streams and loads its kernel then: a program that fits has none of them. @thread
    /// any
    void start(CUcontext context) noexcept;
    /// There will be something to do. Does nothing once the thread runs. @thread any
    void ensure_thread() noexcept {
        if (!has_thread_.load(std::memory_order_acquire)) start_thread();
    }
    /// Finishes what is under way and ends the thread. `context_gone` as SwapEngine::close.
    void stop(bool context_gone);
    /// From now on the thread makes no call; the process ends around it. Waits a moment for a call
    /// under way.
    void park() noexcept;
    bool running() const noexcept { return running_.load(std::memory_order_acquire); }

    /// An operation waits for this block. @thread any
    void want(BlockIndex block, std::uint64_t serial) noexcept;
    /// A number for an allocation that waits for memory. @thread any
    std::uint64_t new_ticket() noexcept { return tickets_.fetch_add(1) + 1; }
    /// An allocation waits for free chunks of a size; asked again with its ticket, it is one
    /// request still. @thread any
    /// `patient`: nothing leaves for it, it is refused once nothing more becomes free by itself.
    void want_memory(std::uint64_t ticket, ChunkClass size_class, std::uint32_t count,
                     bool patient = false) noexcept;
    /// Who asked with this ticket has what it needs, or has given up. @thread any
    void end_want(std::uint64_t ticket) noexcept;
    /// What was asked for does not come: nothing can leave for it. Said of all tickets up to the
    /// latest that waited then. @thread any
    bool refused_memory(std::uint64_t ticket) const noexcept {
        return refused_ticket_.load(std::memory_order_acquire) >= ticket;
    }
    /// @thread any
    void give_commands(std::span<const SwapCommand> commands) noexcept;
    /// Something may have changed (a free, an end of a capture). @thread any
    void kick() noexcept;

    /// Memory that fetches are to have which the plan cannot have late, before operation `serial`
    /// has its own. `issued_only`: of those that an operation before `serial` uses. @thread any
    std::uint64_t reserved_bytes(std::uint64_t serial, bool issued_only) noexcept;

    /// Until the matching end_calm(), nothing is begun that no operation waits for. @thread any
    void begin_calm() noexcept { calm_.fetch_add(1, std::memory_order_relaxed); }
    void end_calm() noexcept { calm_.fetch_sub(1, std::memory_order_relaxed); }

    /// Counts changes of any block. @thread any
    std::uint32_t progress() const noexcept { return progress_.load(std::memory_order_acquire); }
    /// Waits until progress() is not `seen`, at most `timeout_us`. @thread any but the worker
    void wait_progress(std::uint32_t seen, std::uint64_t timeout_us) noexcept;
    /// Says that something changed. @thread any
    void note_progress() noexcept;
    /// How often the program, or its stream, was made to wait, if only for work of ours. @thread
    /// any
    std::uint64_t waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
    void note_wait() noexcept { waits_.fetch_add(1, std::memory_order_relaxed); }

    bool lost() const noexcept { return swap_.lost(); }
    bool gave_up() const noexcept { return swap_.gave_up(); }

  private:
    /// Evictions and fetches under way at once: enough to keep both directions of the link busy.
    static constexpr std::size_t kMaxUnderWay = 64;

    struct Demand {
        BlockIndex block = kNoBlock;
        std::uint64_t id = 0;
        std::uint64_t serial = 0;
        std::uint32_t failures = 0;
    };
    struct MemoryDemand {
        ChunkRun run;
        std::uint64_t ticket = 0;
        bool patient = false;
        bool served = false;  ///< it lies ready for who asked
    };
    struct Request {
        enum class Kind : std::uint8_t { Block, Memory, Taken, Command } kind = Kind::Block;
        bool patient = false;
        BlockIndex block = kNoBlock;
        ChunkRun run;
        std::uint64_t serial =
            0;  ///< of the operation that waits for a block; the ticket for memory
        SwapCommand command;
    };

    void start_thread() noexcept;
    void run();
    bool enter_context() noexcept;
    void open_engine() noexcept;
    void drain_inbox();
    bool serve_demands();
    bool serve_memory(MemoryDemand& demand, bool all_patient);
    void serve_commands();
    bool serve_out();
    bool serve_fetches();
    bool make_room();
    bool reclaim_until_enough();
    bool room_will_come();
    bool planned_to_come(const Block& block) const noexcept;
    void refuse_ticket(std::uint64_t ticket) noexcept;
    bool reclaim_host_memory();
    Block* coldest();
    Block* without_content(bool in_use);
    bool drop_contentless(std::uint64_t wanted_bytes);
    void put_off(Block& block);
    Block* planned_victim();
    bool may_leave(const Block& block) const noexcept;
    bool may_leave_later() const noexcept;
    SwapEngine::Start evict(Block& block, std::uint64_t after_serial);
    SwapEngine::Start fetch(Block& block, std::uint64_t after_serial);
    static bool comes_before(const SwapCommand& command, const SwapCommand& other) noexcept;
    static void add_in_order(std::deque<SwapCommand>& commands, const SwapCommand& command);
    bool follows_plan() const noexcept;
    void note_claims();
    bool pending() const noexcept;
    void idle(bool changed);
    void refuse(Demand& demand);
    void refuse_memory() noexcept;

    const Driver& driver_;
    SwapEngine::Parts parts_;
    Host host_;
    SwapEngine swap_;

    CUcontext context_ = nullptr;
    std::mutex thread_mutex_;  ///< over thread_ and has_thread_
    std::thread thread_;
    std::atomic<bool> has_thread_{false};
    std::atomic<bool> running_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> parking_{false};
    std::atomic<bool> parked_{false};

    RankedMutex<LockRank::WorkerQueue> inbox_mutex_;
    std::condition_variable_any inbox_signal_;
    std::vector<Request> inbox_;
    std::vector<SwapCommand> claims_;  ///< fetches that have not begun; under inbox_mutex_
    bool kicked_ = false;

    std::vector<Request> batch_;
    std::vector<Demand> demands_;
    std::vector<MemoryDemand> memory_wanted_;
    std::atomic<std::uint64_t> tickets_{0};
    std::atomic<std::uint64_t> refused_ticket_{0};
    std::uint32_t unserved_rounds_ = 0;  ///< in a row, with memory enough that serves nobody
    std::deque<SwapCommand> commands_;
    std::deque<SwapCommand> due_fetches_;
    std::deque<SwapCommand> due_out_;  ///< evictions and copies in advance
    std::uint64_t needed_bytes_ = 0;
    std::uint64_t kept_bytes_ = 0;  ///< ready for who asked, and not taken yet
    std::uint32_t idle_rounds_ = 0;
    std::atomic<std::uint32_t> calm_{0};

    std::atomic<std::uint32_t> progress_{0};
    std::mutex progress_mutex_;
    std::condition_variable progress_signal_;
    std::atomic<std::uint32_t> progress_waiters_{0};
    std::atomic<std::uint64_t> waits_{0};
};

}  // namespace libswap
