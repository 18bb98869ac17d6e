// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a device learns of its program: the iteration, how long its operations take, and the plan
// made of both on a thread of its own.
//
//   operation --> Learner --> a loop is found --> one iteration is timed by events around its
//   operations
//                                                  --> plan (planning thread) --> PlanExecutor -->
//                                                  commands
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/block_table.hpp"
#include "runtime/counters.hpp"
#include "runtime/event_log.hpp"
#include "runtime/learner.hpp"
#include "runtime/plan_executor.hpp"
#include "runtime/stream_table.hpp"
#include "runtime/zero_pages.hpp"

namespace libswap {

/// @thread any, except as said
class Learning {
  public:
    struct Parts {
        const Driver* driver = nullptr;
        StreamTable* streams = nullptr;
        Counters* counters = nullptr;
        EventLog* log = nullptr;
        double max_slowdown = 0;
        std::uint64_t host_limit_bytes = 0;
    };

    explicit Learning(const Parts& parts);
    ~Learning();

    /// An operation is about to be issued. `commands` receives what is due; valid until the next
    /// call of the same thread. `event_wanted`: something waits for this operation.
    Step observe(std::uint64_t signature, std::span<const cost::TracedOperand> operands,
                 std::vector<SwapCommand>* commands, bool* event_wanted);
    void note_free(std::uint64_t block);
    /// The operation was issued at a place.
    void note_issued(const Step& step, Use use) noexcept;
    /// It and all before it on its stream are complete. May query events.
    bool is_complete(std::uint64_t serial) noexcept;

    /// Around an operation that is to be timed. begin_timing says whether it is.
    bool begin_timing(StreamIndex stream, const Step& step);
    void end_timing(StreamIndex stream, const Step& step);
    /// Reads events that are done. True while some are outstanding. @thread the worker
    bool collect_times();

    std::uint32_t plan_run() noexcept { return run_.load(std::memory_order_acquire); }
    /// Memory that a plan may use; called on the planning thread.
    std::function<std::uint64_t()> plan_budget;

    /// Ends the planning thread. Events are destroyed unless the context is gone.
    void stop(bool context_gone);

  private:
    static constexpr std::size_t kIssuedRing = std::size_t{1} << 16;
    struct Timed {
        CUevent begin = nullptr;
        CUevent end = nullptr;
        std::uint64_t serial = 0;
        bool ended = false;
    };

    void plan_main();
    void make_plan();
    void start_planner();

    Parts parts_;
    RankedMutex<LockRank::Learner> mutex_;
    /// Megabytes of history, and none while everything fits: made with the first operation.
    std::optional<Learner> learner_;
    PlanExecutor executor_;
    std::atomic<std::uint32_t> run_{0};

    std::atomic<std::uint64_t> last_issued_{0};
    ZeroPages<std::atomic<std::uint64_t>> issued_{
        kIssuedRing};  ///< place of an operation, by serial
    /// serial + 1 that somebody waits for
    ZeroPages<std::atomic<std::uint64_t>> event_wanted_{kIssuedRing};

    // Timing until an iteration is found. Under timing_mutex_.
    std::mutex timing_mutex_;
    std::deque<Timed> timed_;
    std::vector<CUevent> spare_events_;
    std::atomic<bool> timing_{true};
    std::uint64_t timing_end_serial_ = UINT64_MAX;  ///< only where operations are observed
    std::atomic<std::uint64_t> plan_from_serial_{0};
    std::atomic<bool> plan_wanted_after_times_{false};
    LoopId loop_ = kNoLoop;
    std::uint64_t iteration_begun_ns_ = 0;

    std::thread planner_;
    std::mutex planner_mutex_;
    std::condition_variable planner_signal_;
    bool plan_wanted_ = false;
    bool stopping_ = false;
};

}  // namespace libswap
