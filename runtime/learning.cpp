// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/learning.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cost/machine.hpp"
#include "cost/planner.hpp"
#include "runtime/blocked_signals.hpp"
#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::size_t kMaxTimedOutstanding = 4096;
/// Operations that are timed before an iteration is found: what has none for so long may never
/// have.
constexpr std::uint64_t kTimedAtMost = std::uint64_t{1} << 16;
/// Shorter loops of operations are no iteration worth a plan.
constexpr std::size_t kShortestIteration = 8;
constexpr std::chrono::seconds kMostPlanningTime{3};
/// What a plan was made for has moved when it is off by more than this.
constexpr double kBudgetMoved = 0.03;
constexpr double kIterationMoved = 0.1;
constexpr double kComputeMoved = 0.03;
constexpr std::uint32_t kOffInARow = 2;
/// Iterations that a plan is left alone at first, twice as many after each time that its times had
/// moved: where planning again does not help, it is not done for ever.
constexpr std::uint32_t kIterationsLeftAlone = 4;
constexpr std::uint32_t kMostDoublings = 10;

bool moved(double from, double to, double by) { return std::abs(to - from) > by * from; }

}  // namespace

Learning::Learning(const Parts& parts)
    : parts_(parts), timing_end_serial_(kTimedAtMost), clock_(*parts.driver, *parts.streams) {}

Learning::~Learning() { stop(true); }

Step Learning::observe(std::uint64_t signature, std::span<const cost::TracedOperand> operands,
                       std::vector<SwapCommand>* commands, bool* event_wanted) {
    commands->clear();
    Step step;
    bool found = false;
    std::uint64_t learner_period = 0;
    {
        std::lock_guard lock(mutex_);
        if (!learner_) learner_.emplace();
        step = learner_->observe(signature, operands);
        const auto due = executor_.step(step, operands);
        commands->assign(due.begin(), due.end());
        run_.store(executor_.run(), std::memory_order_release);
        follows_plan_.store(executor_.active(), std::memory_order_relaxed);
        // Loops within an iteration are found first; the iteration is the longest one.
        if (step.locked && learner_->period(step.loop) > learner_->period(loop_)) {
            loop_ = step.loop;
            learner_period = learner_->period(loop_);
            found = learner_period >= kShortestIteration;
            period_ = learner_period;
            parts_.counters->iterations = 2;
        }
        step.begins = step.loop == loop_ && loop_ != kNoLoop && step.phase == 0;
        if (step.begins) Counters::add(parts_.counters->iterations);
    }
    if (found) {
        LIBSWAP_LOG(Info, "found an iteration of {} operations", learner_period);
        // Its operations were timed as they came, but in a program that had none for long. Timing
        // goes on for a while: it may be a loop inside a longer one.
        if (timing_)
            time_operations_until(std::min(4 * step.serial, kTimedAtMost), step.serial);
        else
            time_operations_until(step.serial + 2 * learner_period, step.serial + learner_period);
        if (parts_.log) parts_.log->iteration(step.serial, step.loop, learner_period);
    }
    const std::uint64_t end = timing_end_serial_.load(std::memory_order_relaxed);
    const bool known = step.loop != kNoLoop && step.serial >= end;
    if (timing_ && (known || step.serial >= std::max(end, kTimedAtMost))) timing_ = false;
    for (const SwapCommand& command : *commands)
        event_wanted_[command.after_serial % kIssuedRing].store(command.after_serial + 1);
    *event_wanted = event_wanted_[step.serial % kIssuedRing].load() == step.serial + 1;
    return step;
}

/// The plan is made once the operation `plan_from` has been timed.
void Learning::time_operations_until(std::uint64_t serial, std::uint64_t plan_from) {
    plan_from_serial_ = plan_from;
    plan_wanted_after_times_ = true;
    timing_end_serial_ = serial;
    timing_ = true;
}

void Learning::note_free(std::uint64_t block) {
    std::lock_guard lock(mutex_);
    if (learner_) learner_->note_free(block);
}

void Learning::note_issued(const Step& step, Use use) noexcept {
    issued_[step.serial % kIssuedRing].store(use.raw ? use.raw : 1, std::memory_order_release);
    issued_[(step.serial + kIssuedRing / 2) % kIssuedRing].store(0, std::memory_order_release);
    std::uint64_t last = last_issued_.load(std::memory_order_relaxed);
    while (last < step.serial && !last_issued_.compare_exchange_weak(last, step.serial)) {
    }
}

bool Learning::is_complete(std::uint64_t serial) noexcept {
    if (serial + kIssuedRing / 2 <= last_issued_.load()) return true;
    const std::uint64_t raw = issued_[serial % kIssuedRing].load(std::memory_order_acquire);
    if (raw == 0) return false;
    const Use use{raw};
    return use.place() == 0 || parts_.streams->is_complete(use);
}

bool Learning::begin_timing(StreamIndex stream, const Step& step) {
    if (stream == kNoStream) return false;
    if (step.begins) clock_.begin(stream, {step.serial, period_, plan_run(), predicted_us_});
    if (!timing_.load(std::memory_order_relaxed)) return false;
    Timed timed;
    timed.serial = step.serial;
    {
        std::lock_guard lock(timing_mutex_);
        if (timed_.size() >= kMaxTimedOutstanding) return false;
        if (!spare_events_.empty()) {
            timed.begin = spare_events_.back();
            spare_events_.pop_back();
        }
        if (!spare_events_.empty()) {
            timed.end = spare_events_.back();
            spare_events_.pop_back();
        }
    }
    for (CUevent* event : {&timed.begin, &timed.end})
        if (!*event && !LIBSWAP_CU(parts_.driver->cuEventCreate(event, CU_EVENT_DEFAULT)))
            return false;
    if (!LIBSWAP_CU(parts_.driver->cuEventRecord(timed.begin, parts_.streams->handle(stream)))) {
        std::lock_guard lock(timing_mutex_);
        spare_events_.push_back(timed.begin);
        spare_events_.push_back(timed.end);
        return false;
    }
    std::lock_guard lock(timing_mutex_);
    timed_.push_back(timed);
    return true;
}

void Learning::end_timing(StreamIndex stream, const Step& step) {
    CUevent event = nullptr;
    {
        std::lock_guard lock(timing_mutex_);
        for (auto timed = timed_.rbegin(); timed != timed_.rend(); ++timed)
            if (timed->serial == step.serial) {
                event = timed->end;
                break;
            }
    }
    const bool recorded =
        event &&
        LIBSWAP_CU(parts_.driver->cuEventRecord(event, parts_.streams->handle(stream))).has_value();
    std::lock_guard lock(timing_mutex_);
    for (auto timed = timed_.rbegin(); timed != timed_.rend(); ++timed)
        if (timed->serial == step.serial) {
            timed->ended = recorded;
            // Never recorded, it would query as complete: the entry is dropped at its turn.
            if (!recorded) timed->serial = UINT64_MAX;
            break;
        }
}

/// What a plan was made for may move: other programs take memory, clocks fall, a link is shared.
void Learning::look_at_iteration(const IterationTime& time) {
    parts_.counters->iteration_ns = static_cast<std::uint64_t>(time.us * 1000);
    const std::uint64_t planned_bytes = planned_budget_bytes_;
    if (planned_bytes == 0 || timing_) return;
    ++iterations_planned_;
    const bool budget_moved =
        moved(static_cast<double>(planned_bytes), static_cast<double>(plan_budget()), kBudgetMoved);
    if (!budget_moved && !times_moved(time)) return;
    iterations_planned_ = 0;
    off_in_a_row_ = 0;
    // One iteration from its begin, wherever the program is now.
    const std::uint64_t now = last_issued_.load();
    time_operations_until(now + 2 * period_ + 1, now + 2 * period_);
}

bool Learning::times_moved(const IterationTime& time) {
    const bool off = time.predicted_us > 0 && moved(time.predicted_us, time.us, kIterationMoved);
    off_in_a_row_ = off ? off_in_a_row_ + 1 : 0;
    const std::uint32_t left_alone = kIterationsLeftAlone << std::min(replans_, kMostDoublings);
    if (off_in_a_row_ < kOffInARow || iterations_planned_ < left_alone) return false;
    ++replans_;
    return true;
}

bool Learning::collect_times() {
    while (const auto time = clock_.next()) look_at_iteration(*time);
    for (;;) {
        Timed oldest;
        {
            std::lock_guard lock(timing_mutex_);
            if (timed_.empty()) break;
            oldest = timed_.front();
        }
        if (!oldest.ended && oldest.serial != UINT64_MAX) return true;
        if (oldest.ended) {
            if (parts_.driver->cuEventQuery(oldest.end) == CUDA_ERROR_NOT_READY) return true;
            float ms = 0;
            if (parts_.driver->cuEventElapsedTime(&ms, oldest.begin, oldest.end) == CUDA_SUCCESS) {
                {
                    std::lock_guard lock(mutex_);
                    learner_->set_duration(oldest.serial, static_cast<double>(ms) * 1000);
                }
                if (parts_.log)
                    parts_.log->op_time(oldest.serial, 0, static_cast<std::uint64_t>(ms * 1e6));
            }
        }
        if (oldest.serial > plan_from_serial_ && oldest.serial != UINT64_MAX &&
            plan_wanted_after_times_.exchange(false))
            start_planner();
        std::lock_guard lock(timing_mutex_);
        timed_.pop_front();
        spare_events_.push_back(oldest.begin);
        spare_events_.push_back(oldest.end);
    }
    if (plan_wanted_after_times_.exchange(false)) start_planner();
    return false;
}

void Learning::start_planner() {
    std::lock_guard lock(planner_mutex_);
    plan_wanted_ = true;
    if (!planner_.joinable() && !stopping_) {
        const BlockedSignals blocked;
        try {
            planner_ = std::thread([this] { plan_main(); });
        } catch (const std::system_error&) {
            plan_wanted_ = false;  // reactive eviction goes on
        }
    }
    planner_signal_.notify_one();
}

void Learning::plan_main() {
    prctl(PR_SET_NAME, "libswap-plan", 0, 0, 0);
    std::unique_lock lock(planner_mutex_);
    while (!stopping_) {
        planner_signal_.wait(lock, [&] { return plan_wanted_ || stopping_; });
        if (stopping_) return;
        plan_wanted_ = false;
        lock.unlock();
        try {
            make_plan();
        } catch (const std::bad_alloc&) {
            LIBSWAP_LOG(Warning, "no memory for a plan, going on without");
        }
        lock.lock();
    }
}

/// There is a plan for this already. @thread the planning thread
bool Learning::as_planned(LoopId loop, double compute_us, std::uint64_t budget_bytes) const {
    return planned_loop_ == loop && !moved(planned_compute_us_, compute_us, kComputeMoved) &&
           !moved(static_cast<double>(planned_budget_bytes_), static_cast<double>(budget_bytes),
                  kBudgetMoved);
}

void Learning::make_plan() {
    cost::Trace trace;
    LoopId loop = kNoLoop;
    std::size_t period = 0;
    {
        std::lock_guard lock(mutex_);
        loop = loop_;
        period = learner_->period(loop);
        if (period == 0 || !learner_->snapshot(trace)) return;
    }
    cost::Iteration iteration = cost::build_iteration(trace, period);
    const cost::Machine machine = cost::engine_machine();
    cost::PlanRequest request;
    request.budget_bytes = plan_budget();
    request.host_limit_bytes = parts_.host_limit_bytes;
    request.whole_tensors = true;
    request.copies_in_advance = false;  // the worker evicts and fetches only
    // Iterations without a plan swap on demand, so the best one by then has to do.
    request.deadline = std::chrono::steady_clock::now() + kMostPlanningTime;
    const double compute_us = iteration.workload.compute_us();
    if (as_planned(loop, compute_us, request.budget_bytes)) return;
    auto made = cost::make_plan(iteration.workload, machine, request);
    planned_loop_ = loop;
    planned_compute_us_ = compute_us;
    planned_budget_bytes_ = request.budget_bytes;
    if (!made) {
        LIBSWAP_LOG(Info, "no plan for the iteration of {} operations: {}; swapping on demand",
                    period, made.error().message);
        return;
    }
    const double slowdown =
        made->compute_us > 0 ? made->predicted.iteration_us / made->compute_us : 1;
    if (!made->plan.actions.empty()) {
        LIBSWAP_LOG(
            Info,
            "iteration of {} operations, {:.1f} ms without limit, peak {} MiB, budget {} MiB: "
            "planned {:.1f} ms, {} moves",
            period, made->compute_us / 1000, made->peak_bytes >> 20, request.budget_bytes >> 20,
            made->predicted.iteration_us / 1000, made->plan.actions.size());
        if (parts_.max_slowdown > 0 && slowdown > parts_.max_slowdown)
            LIBSWAP_LOG(Warning,
                        "expected to run {:.1f} times slower than with memory without limit "
                        "({:.1f} ms instead of {:.1f} ms per iteration), going on",
                        slowdown, made->predicted.iteration_us / 1000, made->compute_us / 1000);
    }
    if (parts_.log)
        parts_.log->plan(loop, static_cast<std::uint64_t>(made->predicted.iteration_us),
                         static_cast<std::uint64_t>(made->compute_us), made->plan.actions.size());
    parts_.counters->plan_predicted_us = static_cast<std::uint64_t>(made->predicted.iteration_us);
    Counters::add(parts_.counters->plans);
    if (made->plan.actions.empty()) return;
    std::lock_guard lock(mutex_);
    if (learner_->period(loop) != period) return;
    if (auto installed = executor_.install(loop, period, std::move(iteration), made->plan);
        !installed)
        LIBSWAP_LOG(Info, "a plan is not used: {}", installed.error());
    else
        predicted_us_ = made->predicted.iteration_us;
    run_.store(executor_.run(), std::memory_order_release);
}

void Learning::stop(bool context_gone) {
    {
        std::lock_guard lock(planner_mutex_);
        stopping_ = true;
    }
    planner_signal_.notify_all();
    if (planner_.joinable()) planner_.join();
    stopping_ = false;
    timing_ = false;
    clock_.stop(context_gone);
    std::lock_guard lock(timing_mutex_);
    if (!context_gone) {
        for (const Timed& timed : timed_) {
            LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(timed.begin));
            LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(timed.end));
        }
        for (CUevent event : spare_events_) LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(event));
    }
    timed_.clear();
    spare_events_.clear();
}

}  // namespace libswap
