// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a device learns of its program: the iteration, how long its operations take, and the plan
// made of both on a thread of its own.
//
//   operation --> Learner --> a loop is found --> one iteration is timed (OperationTimes)
//                                                  --> plan (planning thread) --> PlanExecutor -->
//                                                  commands
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cost/machine.hpp"
#include "runtime/block_table.hpp"
#include "runtime/config.hpp"
#include "runtime/counters.hpp"
#include "runtime/event_log.hpp"
#include "runtime/iteration_clock.hpp"
#include "runtime/learner.hpp"
#include "runtime/model_error.hpp"
#include "runtime/operation_times.hpp"
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
        int device = 0;
        double max_slowdown = 0;
        double launch_us = 0;  ///< from one kernel's end to the next one's start, at most
        std::uint64_t host_limit_bytes = 0;
        CuptiUse cupti = CuptiUse::Auto;
        cost::PolicyKind policy = cost::PolicyKind::Libswap;  ///< that plans are made by
        std::uint64_t block_bytes = 0;                        ///< of the largest blocks
        std::string plan_file;  ///< each plan is written there; empty: none
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
    /// It and all before it on its stream are complete. May query events, and record one.
    bool is_complete(std::uint64_t serial) noexcept;

    using Timing = OperationTimes::How;
    /// Whether begin_timing() has something to do: most operations are timed until an iteration is
    /// found, a few ever after.
    bool wants_time(const Step& step) const noexcept {
        return timing_.load(std::memory_order_relaxed) || step.begins ||
               step.serial % kTimedEvery == 0;
    }
    /// Around an operation. begin_timing says how it is timed, if at all.
    /// `our_waits`: how often the program was made to wait so far.
    Timing begin_timing(StreamIndex stream, const Step& step, OperationClass kind,
                        std::uint64_t our_waits);
    void end_timing(Timing how, StreamIndex stream, const Step& step);
    /// Reads times that are there. True while some are outstanding. @thread the worker
    bool collect_times();
    /// Plans anew, as plan_machine is another one now. @thread the worker
    void plan_again();
    /// How long launches take, as is known by now. @thread the worker
    void launches_take(double us) noexcept { parts_.launch_us = us; }
    /// How far the mean of an operation's earlier times is from the next one. @thread any
    ModelError time_error(OperationClass kind);

    /// Times of the last iterations, against what was predicted of them.
    std::vector<IterationTime> last_iterations() { return clock_.last_iterations(); }

    /// The program is in the loop of a plan.
    bool follows_plan() const noexcept { return follows_plan_.load(std::memory_order_relaxed); }
    /// The operation that is issued next, or about that while several threads issue.
    std::uint64_t next_serial() const noexcept { return last_issued_.load() + 1; }
    /// The device is about to have done what was issued (HostLead). As is_complete.
    bool host_is_near() noexcept { return is_complete(near_serial_.load()); }
    std::uint32_t plan_run() noexcept { return run_.load(std::memory_order_acquire); }
    /// Memory that a plan may use. @thread the planning thread, the worker
    std::function<std::uint64_t()> plan_budget;
    /// What it is planned for; likewise.
    std::function<cost::Machine()> plan_machine = cost::engine_machine;

    /// Ends the planning thread. Events are destroyed unless the context is gone.
    void stop(bool context_gone);

  private:
    static constexpr std::size_t kIssuedRing = std::size_t{1} << 16;
    /// A prime, so that all operations of an iteration have their turn.
    static constexpr std::uint64_t kTimedEvery = 127;

    void want_event(std::uint64_t serial) noexcept;
    void learn_times();
    void learn_time(const OperationTime& time, std::uint64_t gap_ns, double late_us);
    bool waited_for_times();
    bool snapshot(cost::Trace* trace);
    /// What a plan was made for.
    struct PlannedFor {
        double compute_us = 0;
        std::uint64_t peak_bytes = 0;
        std::uint64_t budget_bytes = 0;
        cost::LinkModel link;
    };

    void plan_main();
    void make_plan();
    void start_planner();
    void time_operations_until(std::uint64_t serial, std::uint64_t plan_from);
    void look_at_iteration(const IterationTime& time);
    bool times_moved(const IterationTime& time);
    bool as_planned(LoopId loop, const PlannedFor& now) const;

    Parts parts_;
    RankedMutex<LockRank::Learner> mutex_;
    /// Megabytes of history, and none while everything fits: made with the first operation.
    std::optional<Learner> learner_;
    PlanExecutor executor_;
    std::atomic<std::uint32_t> run_{0};
    std::atomic<bool> follows_plan_{false};
    std::atomic<std::uint64_t> near_serial_{0};

    std::atomic<std::uint64_t> last_issued_{0};
    ZeroPages<std::atomic<std::uint64_t>> issued_{
        kIssuedRing};  ///< place of an operation, by serial
    /// serial + 1 that somebody waits for
    ZeroPages<std::atomic<std::uint64_t>> event_wanted_{kIssuedRing};

    OperationTimes times_;
    std::vector<OperationTime> new_times_;           ///< of one round; the worker's
    OperationTime last_time_;                        ///< by CUPTI, by number; the worker's
    std::uint64_t times_awaited_ns_ = 0;             ///< since then; 0: they are not. The worker's
    std::unique_ptr<KernelTimesModel> times_model_;  ///< under mutex_; made with the first time
    /// Of timed operations, by serial; kHadWaited beside it.
    ZeroPages<std::atomic<std::uint8_t>> classes_{kIssuedRing};
    std::atomic<std::uint64_t> our_waits_{0};  ///< when the last timed operation was issued
    /// Operations are timed until the iteration is known, and again where it has moved.
    std::atomic<bool> timing_{true};
    std::atomic<std::uint64_t> timing_end_serial_;
    std::atomic<std::uint64_t> plan_from_serial_{0};
    std::atomic<bool> plan_wanted_after_times_{false};
    LoopId loop_ = kNoLoop;
    std::atomic<std::uint64_t> period_{0};  ///< of loop_

    // What the plan in force was made for, and whether that still is so. See look_at_iteration.
    IterationClock clock_;
    std::atomic<double> predicted_us_{0};  ///< 0: there is no plan
    std::atomic<std::uint64_t> planned_budget_bytes_{0};
    LoopId planned_loop_ = kNoLoop;  ///< this and the next: the planning thread's
    PlannedFor planned_for_;
    double warned_slowdown_ = 0;
    std::atomic<std::uint32_t> to_second_look_{0};  ///< iterations; 0: there is none to come
    std::uint32_t off_in_a_row_ = 0;                ///< iterations
    std::uint32_t iterations_planned_ = 0;          ///< since the last plan
    std::uint32_t replans_ = 0;                     ///< because times had moved

    std::thread planner_;
    std::mutex planner_mutex_;
    std::condition_variable planner_signal_;
    bool plan_wanted_ = false;
    bool stopping_ = false;
};

}  // namespace libswap
