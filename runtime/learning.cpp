// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/learning.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cost/critical_fetches.hpp"
#include "cost/machine.hpp"
#include "cost/planner.hpp"
#include "cost/policies/policy.hpp"
#include "runtime/blocked_signals.hpp"
#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/log.hpp"
#include "runtime/plan_dump.hpp"

namespace libswap {
namespace {

/// Operations that are timed before an iteration is found: what has none for so long may never
/// have.
constexpr std::uint64_t kTimedAtMost = std::uint64_t{1} << 16;
/// Shorter loops of operations are no iteration worth a plan.
constexpr std::size_t kShortestIteration = 8;
constexpr std::chrono::seconds kMostPlanningTime{3};
/// Of smaller blocks a copy takes no longer than the worker's calls for it: train_cnn at 40 %, with
/// blocks of 2 MiB, took 24.0 instead of 23.3 ms.
constexpr std::uint64_t kLeastBlockCopiedAhead = std::uint64_t{16} << 20;
/// What a plan was made for has moved when it is off by more than this.
constexpr double kBudgetMoved = 0.03;
constexpr double kPeakMoved = 0.02;
constexpr double kIterationMoved = 0.1;
constexpr double kComputeMoved = 0.03;
constexpr double kLinkMoved = 0.03;
/// Fetches that may come later than this do not keep allocations waiting.
constexpr double kCriticalUs = 3000;
constexpr double kSlowdownMoved = 0.2;  ///< worth saying again
constexpr std::uint32_t kOffInARow = 2;
/// So many iterations after a plan what it was made for is compared with the last ones.
constexpr std::uint32_t kToSecondLook = 2;
/// Iterations that a plan is left alone at first, twice as many after each time that its times had
/// moved: where planning again does not help, it is not done for ever.
constexpr std::uint32_t kIterationsLeftAlone = 4;
constexpr std::uint32_t kMostDoublings = 10;
/// The program had to wait for us between the operation before and this one.
constexpr std::uint8_t kHadWaited = 0x80;

bool moved(double from, double to, double by) { return std::abs(to - from) > by * from; }

bool moved(const cost::LinkModel& from, const cost::LinkModel& to) {
    return moved(from.to_host.gbps, to.to_host.gbps, kLinkMoved) ||
           moved(from.to_device.gbps, to.to_device.gbps, kLinkMoved) ||
           moved(from.to_host_duplex_gbps, to.to_host_duplex_gbps, kLinkMoved) ||
           moved(from.to_device_duplex_gbps, to.to_device_duplex_gbps, kLinkMoved);
}
/// Once the last operation is complete that a plan waits for: what is kept back for longer than
/// that is planned without.
constexpr std::uint64_t kMostWaitForTimesNs = 100'000'000;

}  // namespace

Learning::Learning(const Parts& parts)
    : parts_(parts),
      times_({parts.driver, parts.streams, parts.device, parts.cupti}),
      timing_end_serial_(kTimedAtMost),
      clock_(*parts.driver, *parts.streams) {}

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
        near_serial_.store(executor_.near_serial(), std::memory_order_relaxed);
        if (executor_.wants_event()) want_event(step.serial);
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
    for (const SwapCommand& command : *commands) want_event(command.after_serial);
    *event_wanted = event_wanted_[step.serial % kIssuedRing].load() == step.serial + 1;
    return step;
}

void Learning::want_event(std::uint64_t serial) noexcept {
    event_wanted_[serial % kIssuedRing].store(serial + 1);
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
    // Nobody may have wanted an event behind it when it was issued.
    return use.place() == 0 || parts_.streams->look(use);
}

Learning::Timing Learning::begin_timing(StreamIndex stream, const Step& step, OperationClass kind,
                                        std::uint64_t our_waits) {
    if (step.begins && stream != kNoStream)
        clock_.begin(stream, {step.serial, period_, plan_run(), predicted_us_});
    const bool learns = timing_.load(std::memory_order_relaxed);
    if (!learns && step.serial % kTimedEvery != 0) return Timing::None;
    const bool waited = our_waits_.exchange(our_waits, std::memory_order_relaxed) != our_waits;
    classes_[step.serial % kIssuedRing].store(
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(kind) | (waited ? kHadWaited : 0)),
        std::memory_order_relaxed);
    return times_.begin(stream, step.serial, learns);
}

void Learning::end_timing(Timing how, StreamIndex stream, const Step& step) {
    times_.end(how, stream, step.serial);
}

/// What a plan was made for may move: other programs take memory, clocks fall, a link is shared.
void Learning::look_at_iteration(const IterationTime& time) {
    parts_.counters->iteration_ns = static_cast<std::uint64_t>(time.us * 1000);
    const std::uint64_t planned_bytes = planned_budget_bytes_;
    if (planned_bytes == 0) return;
    // The first two iterations are the least like others: an optimizer makes its states, caches of
    // memory fill.
    if (to_second_look_ != 0 && --to_second_look_ == 0) plan_again();
    if (timing_) return;
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

/// CUPTI tells when a kernel ran, not what it took to begin, which is a part of the iteration: up
/// to launch_us since the one before. After more than that the device had waited for the host, and
/// will again, unless that was our doing.
void Learning::learn_times() {
    std::sort(new_times_.begin(), new_times_.end(),
              [](const OperationTime& a, const OperationTime& b) { return a.serial < b.serial; });
    const auto most_ns = static_cast<std::uint64_t>(1000 * parts_.launch_us);
    for (const OperationTime& time : new_times_) {
        std::uint64_t gap_ns = 0;
        double late_us = -1;
        if (time.is_on_clock()) {
            const bool follows = time.serial == last_time_.serial + 1 && last_time_.is_on_clock();
            const bool waited =
                (classes_[time.serial % kIssuedRing].load(std::memory_order_relaxed) &
                 kHadWaited) != 0;
            gap_ns = follows ? time.start_ns - std::min(last_time_.end_ns, time.start_ns) : most_ns;
            if (follows && !waited)
                late_us = static_cast<double>(gap_ns - std::min(gap_ns, most_ns)) / 1000;
            last_time_ = time;
        }
        learn_time(time, std::min(gap_ns, most_ns), late_us);
    }
}

void Learning::learn_time(const OperationTime& time, std::uint64_t gap_ns, double late_us) {
    const double us = static_cast<double>(time.end_ns - time.start_ns + gap_ns) / 1000;
    const auto kind = static_cast<OperationClass>(
        classes_[time.serial % kIssuedRing].load(std::memory_order_relaxed) & ~kHadWaited);
    {
        std::lock_guard lock(mutex_);
        if (!times_model_) times_model_ = std::make_unique<KernelTimesModel>();
        if (const std::uint64_t signature = learner_->signature_of(time.serial); signature != 0)
            times_model_->add(signature, learner_->sized_signature_of(time.serial), kind, us);
        learner_->set_duration(time.serial, us, late_us);
    }
    if (parts_.log) parts_.log->op_time(time.serial, time.start_ns, time.end_ns);
}

/// A plan waits for times, and has for long enough since the device did what they are of.
bool Learning::waited_for_times() {
    if (!plan_wanted_after_times_ || last_issued_ <= plan_from_serial_ ||
        !is_complete(plan_from_serial_)) {
        times_awaited_ns_ = 0;
        return false;
    }
    const std::uint64_t now = now_ns();
    if (times_awaited_ns_ == 0) times_awaited_ns_ = now;
    return now - times_awaited_ns_ > kMostWaitForTimesNs;
}

bool Learning::collect_times() {
    while (const auto time = clock_.next()) look_at_iteration(*time);
    if (!timing_) times_.end_learning();
    new_times_.clear();
    const bool waited = waited_for_times();
    const bool more = times_.collect(waited, &new_times_);
    learn_times();
    const bool reached = !new_times_.empty() && new_times_.back().serial > plan_from_serial_;
    const bool are_there = reached || (last_issued_ > plan_from_serial_ && (waited || !more));
    if (are_there && plan_wanted_after_times_.exchange(false)) start_planner();
    return more;
}

void Learning::plan_again() {
    if (parts_.counters->plans.load() != 0) start_planner();
}

ModelError Learning::time_error(OperationClass kind) {
    std::lock_guard lock(mutex_);
    return times_model_ ? times_model_->error(kind) : ModelError{};
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
bool Learning::as_planned(LoopId loop, const PlannedFor& now) const {
    const PlannedFor& then = planned_for_;
    return planned_loop_ == loop && !moved(then.compute_us, now.compute_us, kComputeMoved) &&
           !moved(static_cast<double>(then.peak_bytes), static_cast<double>(now.peak_bytes),
                  kPeakMoved) &&
           !moved(static_cast<double>(then.budget_bytes), static_cast<double>(now.budget_bytes),
                  kBudgetMoved) &&
           !moved(then.link, now.link);
}

/// The last iterations; what was not timed in them takes what it took before. Under mutex_.
bool Learning::snapshot(cost::Trace* trace) {
    if (!learner_->snapshot(*trace)) return false;
    if (times_model_) times_model_->fill_in(trace);
    return true;
}

void Learning::make_plan() {
    cost::Trace trace;
    LoopId loop = kNoLoop;
    std::size_t period = 0;
    {
        std::lock_guard lock(mutex_);
        loop = loop_;
        period = learner_->period(loop);
        if (period == 0 || !snapshot(&trace)) return;
    }
    cost::Iteration iteration = cost::build_iteration(trace, period);
    const cost::Machine machine = plan_machine();
    cost::PlanRequest request;
    request.budget_bytes = plan_budget();
    request.host_limit_bytes = parts_.host_limit_bytes;
    request.whole_tensors = true;
    request.copies_in_advance = parts_.block_bytes >= kLeastBlockCopiedAhead;
    // Iterations without a plan swap on demand, so the best one by then has to do.
    request.deadline = std::chrono::steady_clock::now() + kMostPlanningTime;
    const PlannedFor now{iteration.workload.compute_us(), iteration.workload.peak_bytes(),
                         request.budget_bytes, machine.link};
    if (as_planned(loop, now)) return;
    const auto by_policy =
        cost::make_policy_plan(parts_.policy, iteration.workload, machine, request);
    planned_loop_ = loop;
    planned_for_ = now;
    planned_budget_bytes_ = request.budget_bytes;
    to_second_look_ = kToSecondLook;
    if (!by_policy) {
        LIBSWAP_LOG(Info, "no plan for the iteration of {} operations: {}; swapping on demand",
                    period, by_policy.error().message);
        return;
    }
    const cost::PlanResult* const made = &by_policy->result;
    if (parts_.policy != cost::PolicyKind::Libswap)
        LIBSWAP_LOG(Info, "policy {}: {}", cost::policy_name(parts_.policy),
                    by_policy->note.empty() ? "as it is" : by_policy->note);
    const double slowdown =
        made->compute_us > 0 ? made->predicted.iteration_us / made->compute_us : 1;
    if (!made->plan.actions.empty()) {
        LIBSWAP_LOG(
            Info,
            "iteration of {} operations, {:.1f} ms without limit, peak {} MiB, budget {} MiB: "
            "planned {:.1f} ms, {} moves",
            period, made->compute_us / 1000, made->peak_bytes >> 20, request.budget_bytes >> 20,
            made->predicted.iteration_us / 1000, made->plan.actions.size());
        const bool is_news = moved(warned_slowdown_, slowdown, kSlowdownMoved);
        if (parts_.max_slowdown > 0 && slowdown > parts_.max_slowdown && is_news) {
            warned_slowdown_ = slowdown;
            LIBSWAP_LOG(Warning,
                        "expected to run {:.1f} times slower than with memory without limit "
                        "({:.1f} ms instead of {:.1f} ms per iteration), going on",
                        slowdown, made->predicted.iteration_us / 1000, made->compute_us / 1000);
        }
    }
    if (parts_.log)
        parts_.log->plan(loop, static_cast<std::uint64_t>(made->predicted.iteration_us),
                         static_cast<std::uint64_t>(made->compute_us), made->plan.actions.size());
    if (!parts_.plan_file.empty())
        write_plan_dump(parts_.plan_file,
                        plan_dump(iteration.workload, machine, request.budget_bytes, *made));
    parts_.counters->plan_predicted_us = static_cast<std::uint64_t>(made->predicted.iteration_us);
    Counters::add(parts_.counters->plans);
    if (made->plan.actions.empty()) return;
    const std::vector<cost::OpIndex> claims = cost::critical_claims(
        iteration.workload, machine, request.budget_bytes, made->plan, kCriticalUs);
    std::lock_guard lock(mutex_);
    if (learner_->period(loop) != period) return;
    if (auto installed = executor_.install(loop, period, std::move(iteration), made->plan, claims);
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
    times_.stop(context_gone);
}

}  // namespace libswap
