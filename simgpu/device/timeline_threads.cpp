// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// The threads that drive the simulation, and how the clock follows the program's threads. The rules
// are in timeline.hpp.

#include <algorithm>
#include <chrono>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "simgpu/device/timeline.hpp"
#include "simgpu/per_thread.hpp"

namespace simgpu {

namespace {

/// Real time that a sleeping poller is given to notice that what it polls is done.
constexpr std::uint64_t kNoticeNs = 20'000'000;
/// Between two looks at it, no more than this counts as time to notice: whoever looks may have
/// waited for a processor too.
constexpr std::uint64_t kMostBetweenLooksNs = 4'000'000;
/// A thread's open questions are kept up to here, the oldest dropped first.
constexpr std::size_t kMostPolled = 256;
/// Questions that one who sleeps between them may ask twice before it does: several of its reasons
/// to ask may be the same operation.
constexpr std::uint32_t kMostRepeated = 256;
/// How long one look at /proc holds, as long as no thread calls us: one that does may have woken
/// another before.
constexpr std::uint64_t kLookNs = 50'000;
/// How often a look at the program's threads is repeated at once when one of them called meanwhile.
constexpr int kLooks = 4;
/// Processor time between two calls that costs nothing.
constexpr std::uint64_t kFreeNs = 200'000;
constexpr std::uint64_t kShortestTickNs = 50'000;
constexpr std::uint64_t kLongestTickNs = 1'000'000;
constexpr auto kParkPatience = std::chrono::seconds(2);

/// What a thread of the program remembers of the timeline it called last.
struct ThreadSlot {
    std::weak_ptr<Timeline> timeline;
    const Timeline* address = nullptr;
    HostThread* thread = nullptr;

    ~ThreadSlot() {
        const auto alive = timeline.lock();
        if (alive != nullptr && !alive->dead()) alive->forget_thread(gettid());
    }
};

/// How often the calling thread had slept when it left us, while it has open questions: when it
/// sleeps in our calls, that is our doing. -1: not looked at.
thread_local long t_sleeps_so_far = -1;

long sleeps() {
    rusage usage{};
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/// One that asks the same again and again does not sleep in between any more.
void repeats(HostThread& thread) {
    if (++thread.repeated > kMostRepeated) thread.sleeps = false;
}

void block_signals() {
    // Handlers are the program's, and belong on its own threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

Timeline::Timeline(const MachineProfile& profile, Memory& memory, int devices, double host_speed)
    : profile_(profile), host_speed_(host_speed), memory_(memory) {
    for (int i = 0; i < devices; ++i) devices_.push_back(std::make_unique<DeviceState>(profile));
}

Timeline::~Timeline() = default;

void Timeline::start() {
    sigset_t before;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Held until the three are entered, so that none is taken for a thread of the program.
    std::unique_lock lock(lock_);
    conductor_ = std::thread([this] { conduct(); });
    carrier_ = std::thread([this] { carry(); });
    function_caller_ = std::thread([this] { call_functions(); });
    parked_wake_.wait(lock, [this] { return entered_ == 3; });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Timeline::stop() {
    {
        std::lock_guard guard(lock_);
        stop_ = true;
        conductor_wake_.notify_all();
        carrier_wake_.notify_all();
        function_wake_.notify_all();
    }
    conductor_.join();
    carrier_.join();
    function_caller_.join();
}

void Timeline::park() {
    if (dead()) return;
    std::unique_lock lock(lock_);
    parked_ = true;
    parked_wake_.wait_for(lock, kParkPatience, [this] { return working_ == 0; });
}

void Timeline::enter(const char* name) {
    block_signals();
    pthread_setname_np(pthread_self(), name);
    ++entered_;
    parked_wake_.notify_all();
}

HostThread& Timeline::self_thread() {
    auto& slot = per_thread<ThreadSlot>();
    if (slot.thread != nullptr && slot.address == this && slot.timeline.lock().get() == this)
        return *slot.thread;
    slot.timeline = weak_from_this();
    slot.address = this;
    slot.thread = &threads_.add(gettid());
    slot.thread->stranger = false;
    slot.thread->local_ns = now_ns();
    see(*slot.thread, HostThreads::real_ns(), true);
    return *slot.thread;
}

void Timeline::forget_thread(pid_t tid) {
    std::lock_guard guard(lock_);
    threads_.remove(tid);
    ++activity_;
    conductor_wake_.notify_one();
}

Timeline::Call::Call(Timeline& timeline) : timeline_(timeline) {
    const std::uint64_t real_ns = HostThreads::real_ns();
    slept_ = t_sleeps_so_far >= 0 && sleeps() != t_sleeps_so_far;
    t_sleeps_so_far = -1;
    timeline.entering_.fetch_add(1);
    lock_ = std::unique_lock(timeline.lock_);
    timeline.entering_.fetch_sub(1);
    self_ = &timeline.self_thread();
    ++timeline.activity_;
    // What a poller does between two questions is waiting, whatever processor time it takes.
    if (self_->state != HostThread::State::Polling) timeline.follow(*self_, real_ns);
    if (slept_) {
        ++self_->round;
        self_->repeated = 0;
        self_->sleeps = true;
    }
    self_->local_ns = std::max(self_->local_ns, timeline.now_ns());
    self_->state = HostThread::State::Running;
    timeline.process_due();
}

Timeline::Call::~Call() {
    self_->asked_before = queried_;
    self_->state = polled_ ? HostThread::State::Polling : HostThread::State::Running;
    const std::uint64_t real_ns = HostThreads::real_ns();
    // Reading processor time is a system call: between calls in quick succession an older figure
    // will do.
    timeline_.see(*self_, real_ns, real_ns - self_->cpu_read_ns > kFreeNs / 2);
    const bool sleeper = self_->sleeps;
    const bool asks = polled_ || !self_->polled.empty();
    lock_.unlock();
    // A program that spins on queries leaves the processor to those it waits for. One that sleeps
    // does so by itself: on a busy machine it would get it back late.
    if (asks) t_sleeps_so_far = sleeps();
    if (polled_ && !sleeper) sched_yield();
}

void Timeline::see(HostThread& thread, std::uint64_t real_ns, bool read_cpu) {
    thread.base_local_ns = thread.local_ns;
    thread.base_real_ns = real_ns;
    thread.asleep_until_ns = 0;
    if (!read_cpu) return;
    thread.base_cpu_ns = HostThreads::cpu_ns(thread.tid);
    thread.cpu_read_ns = real_ns;
}

Timeline::OwnWork::OwnWork(Timeline& timeline) : timeline_(timeline) {
    if (timeline.dead()) return;
    Call call(timeline);
    call.self_->in_our_work = true;
}

Timeline::OwnWork::~OwnWork() {
    if (timeline_.dead()) return;
    Call call(timeline_);
    call.self_->in_our_work = false;
    timeline_.see(*call.self_, HostThreads::real_ns(), true);
    timeline_.spend(call, cost_ns_);
}

void Timeline::follow(HostThread& thread, std::uint64_t real_ns) {
    if (thread.in_our_work) return;
    if (real_ns < thread.base_real_ns + kFreeNs) return;
    const std::uint64_t cpu_ns = HostThreads::cpu_ns(thread.tid);
    if (cpu_ns < thread.base_cpu_ns) return;
    const std::uint64_t used_ns =
        std::min(real_ns - thread.base_real_ns, cpu_ns - thread.base_cpu_ns);
    if (used_ns <= kFreeNs) return;
    const auto costs_ns =
        static_cast<std::uint64_t>(static_cast<double>(used_ns - kFreeNs) / host_speed_);
    thread.local_ns = std::max(thread.local_ns, thread.base_local_ns + costs_ns);
}

Status Timeline::poll(Call& call, const OpPtr& op) {
    HostThread& self = *call.self_;
    if (op == nullptr || op->done) {
        // Asking again and again about what is complete is waiting for something else.
        call.polled_ = self.asked_before && self.last_complete == op.get();
        if (call.polled_ && !call.slept_) repeats(self);
        call.queried_ = true;
        self.last_complete = op.get();
        std::erase_if(self.polled, [&](const HostThread::Polled& entry) { return entry.op == op; });
        return CUDA_SUCCESS;
    }
    call.polled_ = true;
    auto& polled = self.polled;
    const auto known =
        std::find_if(polled.begin(), polled.end(),
                     [&](const HostThread::Polled& entry) { return entry.op == op; });
    if (known != polled.end() && known->asked_in_round == self.round) repeats(self);
    // A sleeper holds the clock until it sleeps again, and mostly has more questions.
    if (!self.sleeps || call.slept_) conductor_wake_.notify_one();
    if (known != polled.end()) {
        known->asked_in_round = self.round;
        return CUDA_ERROR_NOT_READY;
    }
    if (polled.size() == kMostPolled) polled.erase(polled.begin());
    polled.push_back({op, 0, self.round});
    return CUDA_ERROR_NOT_READY;
}

void Timeline::wait(Call& call, const std::vector<OpPtr>& ops) {
    HostThread& self = *call.self_;
    self.waiting_for = 0;
    for (const auto& op : ops) {
        if (op == nullptr || op->done) continue;
        op->waiters.push_back(&self);
        ++self.waiting_for;
    }
    block(call);
}

void Timeline::spend(Call& call, std::uint64_t ns) {
    log_.note_call(call.self_->tid, call.self_->local_ns, ns);
    call.self_->local_ns += ns;
}

void Timeline::block(Call& call) {
    HostThread& self = *call.self_;
    if (self.waiting_for == 0) return;
    self.polled.clear();
    self.state = HostThread::State::Blocked;
    ++activity_;
    conductor_wake_.notify_one();
    self.wake.wait(call.lock_, [&] { return self.waiting_for == 0; });
    self.local_ns = std::max(self.local_ns, now_ns());
}

void Timeline::wake(HostThread& thread) {
    thread.state = HostThread::State::Running;
    thread.local_ns = std::max(thread.local_ns, now_ns());
    see(thread, HostThreads::real_ns(), false);
    ++activity_;
    thread.wake.notify_one();
}

bool Timeline::must_notice(HostThread& thread) {
    // Each has a deadline of its own, which other questions do not move: a thread that goes on
    // polling something else, and never asks about this one again, would hold the clock for ever.
    bool any = false;
    std::erase_if(thread.polled, [&](HostThread::Polled& polled) {
        if (!polled.op->done) return false;
        if (polled.give_up_ns == 0) polled.give_up_ns = thread.own_time_ns + kNoticeNs;
        const bool over = polled.give_up_ns <= thread.own_time_ns;
        any |= !over;
        return over;
    });
    return any;
}

void Timeline::count_own_time(HostThread& thread, std::uint64_t real_ns, bool asleep) {
    const std::uint64_t cpu_ns = HostThreads::cpu_ns(thread.tid);
    if (asleep && thread.looked_asleep)
        thread.own_time_ns += std::min(real_ns - thread.looked_at_ns, kMostBetweenLooksNs);
    else if (cpu_ns > thread.looked_cpu_ns && thread.looked_cpu_ns != 0)
        thread.own_time_ns += std::min(cpu_ns - thread.looked_cpu_ns, kMostBetweenLooksNs);
    thread.looked_at_ns = real_ns;
    thread.looked_cpu_ns = cpu_ns;
    thread.looked_asleep = asleep;
}

std::vector<HostThread*> Timeline::awake_threads(std::unique_lock<std::mutex>& lock,
                                                 std::uint64_t real_ns) {
    std::vector<HostThread*> awake;
    std::vector<pid_t> look;
    for (const auto& [tid, thread] : threads_.all()) {
        using State = HostThread::State;
        if (thread->state == State::Blocked || thread->state == State::Idle) continue;
        const bool notices = must_notice(*thread);
        if (!notices && thread->state == State::Polling && !thread->sleeps) continue;
        if (notices || real_ns >= thread->asleep_until_ns || thread->asleep_activity != activity_)
            look.push_back(tid);
    }
    if (look.empty()) return awake;
    const std::uint64_t activity = activity_;
    const std::uint64_t memory_calls = memory_.calls();
    const bool in_calls = entering_.load() != 0 || memory_.busy();
    lock.unlock();
    const std::vector<bool> asleep = threads_.asleep(look);
    lock.lock();
    // Who looked asleep may have waited for one of our locks, and got it since.
    const bool stale = in_calls || activity != activity_ || memory_calls != memory_.calls();
    for (std::size_t i = 0; i < look.size(); ++i) {
        const auto found = threads_.all().find(look[i]);
        if (found == threads_.all().end()) continue;
        HostThread& thread = *found->second;
        const bool notices = must_notice(thread);
        if (notices) count_own_time(thread, real_ns, asleep[i]);
        if (notices || !asleep[i] || stale) {
            awake.push_back(&thread);
        } else {
            thread.asleep_until_ns = real_ns + kLookNs;
            thread.asleep_activity = activity;
        }
    }
    return awake;
}

std::uint64_t Timeline::horizon_ns(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t real_ns = HostThreads::real_ns();
    if (real_ns > reconciled_ns_ + kLookNs) {
        threads_.reconcile(now_ns());
        reconciled_ns_ = real_ns;
    }
    const std::uint64_t activity = activity_;
    const std::vector<HostThread*> awake = awake_threads(lock, real_ns);
    // What was seen is stale when somebody called meanwhile, was woken, or ended.
    if (activity != activity_) return now_ns();
    const auto& all = threads_.all();
    const bool any_blocked = std::any_of(all.begin(), all.end(), [](const auto& entry) {
        return entry.second->state == HostThread::State::Blocked;
    });
    const bool any_caller = std::any_of(awake.begin(), awake.end(),
                                        [](const HostThread* thread) { return !thread->stranger; });
    std::uint64_t horizon = kNever;
    for (HostThread* thread : awake) {
        if (thread->stranger && any_blocked && !any_caller) continue;
        if (thread->local_ns < now_ns()) {
            // Just woken, or first seen: its time begins here.
            thread->local_ns = now_ns();
            see(*thread, real_ns, true);
        }
        if (thread->state == HostThread::State::Running || thread->sleeps) follow(*thread, real_ns);
        horizon = std::min(horizon, thread->local_ns);
    }
    return horizon;
}

void Timeline::jump_to(std::uint64_t at_ns) {
    now_.store(at_ns, std::memory_order_release);
    process_due();
}

bool Timeline::move_clock(std::unique_lock<std::mutex>& lock) {
    for (int look = 0; look < kLooks; ++look) {
        if (entering_.load() != 0 || memory_.busy()) {
            lock.unlock();
            sched_yield();
            lock.lock();
            continue;
        }
        const std::uint64_t activity = activity_;
        const std::uint64_t horizon = horizon_ns(lock);
        if (entering_.load() != 0 || memory_.busy()) continue;
        // The lock was open for a while.
        if (stop_ || frozen() || !conductor_work_.empty()) return true;
        const std::uint64_t target = std::min(horizon, next_event_ns());
        if (target != kNever && target > now_ns()) {
            jump_to(target);
            return true;
        }
        if (activity == activity_) break;
    }
    return false;
}

void Timeline::tick(std::unique_lock<std::mutex>& lock) {
    if (activity_ != tick_activity_) tick_ns_ = kShortestTickNs;
    tick_activity_ = activity_;
    conductor_wake_.wait_for(lock, std::chrono::nanoseconds(tick_ns_));
    tick_ns_ = std::min(tick_ns_ * 2, kLongestTickNs);
}

void Timeline::run(std::unique_lock<std::mutex>& lock, const OpPtr& op) {
    ++working_;
    lock.unlock();
    run_data_work(*op);
    lock.lock();
    --working_;
    ++activity_;
    work_finished(op);
    process_due();
    if (parked_) parked_wake_.notify_all();
}

void Timeline::conduct() {
    std::unique_lock lock(lock_);
    threads_.add_own(gettid());
    enter("simgpu-clock");
    while (!stop_) {
        process_due();
        if (!conductor_work_.empty() && !parked_) {
            const OpPtr op = std::move(conductor_work_.front());
            conductor_work_.pop_front();
            run(lock, op);
        } else if (parked_ || (value_waits_.empty() && (frozen() || next_event_ns() == kNever))) {
            conductor_idle_ = true;
            conductor_wake_.wait(lock);
            conductor_idle_ = false;
        } else if (frozen() || !move_clock(lock)) {
            tick(lock);
        }
    }
}

void Timeline::carry() {
    std::unique_lock lock(lock_);
    threads_.add_own(gettid());
    enter("simgpu-copy");
    for (;;) {
        carrier_wake_.wait(lock, [this] { return stop_ || (!carrier_work_.empty() && !parked_); });
        if (stop_) return;
        const OpPtr op = std::move(carrier_work_.front());
        carrier_work_.pop_front();
        run(lock, op);
        conductor_wake_.notify_one();
    }
}

void Timeline::call_functions() {
    std::unique_lock lock(lock_);
    HostThread& self = threads_.add(gettid());
    self.state = HostThread::State::Idle;
    enter("simgpu-host");
    for (;;) {
        function_wake_.wait(lock, [this] { return stop_ || (!functions_.empty() && !parked_); });
        if (stop_) return;
        const OpPtr op = std::move(functions_.front());
        functions_.pop_front();
        const Status status = op->context->error;
        self.state = HostThread::State::Running;
        self.local_ns = now_ns();
        see(self, HostThreads::real_ns(), true);
        ++activity_;
        ++working_;
        lock.unlock();
        op->function(status);
        lock.lock();
        --working_;
        follow(self, HostThreads::real_ns());
        self.state = HostThread::State::Idle;
        ++activity_;
        op->status = status;
        op->work_done = true;
        add_timer(std::max(now_ns(), self.local_ns), TimerKind::End, op);
        process_due();
        conductor_wake_.notify_one();
        if (parked_) parked_wake_.notify_all();
    }
}

}  // namespace simgpu
