// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// The threads that drive the simulation, and how the clock follows the program's threads. The rules
// are in timeline.hpp.

#include <algorithm>
#include <chrono>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

/// Real time that a sleeping poller is given to notice that what it polls is done.
constexpr std::uint64_t kNoticeNs = 2'000'000;
/// How long one look at /proc holds, as long as no thread calls us.
constexpr std::uint64_t kQuietNs = 100'000;
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

thread_local ThreadSlot thread_slot;

void block_signals() {
    // Handlers are the program's, and belong on its own threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

Timeline::Timeline(const MachineProfile& profile, Memory& memory, int devices)
    : profile_(profile), memory_(memory) {
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
    auto& slot = thread_slot;
    if (slot.thread != nullptr && slot.address == this && slot.timeline.lock().get() == this)
        return *slot.thread;
    slot.timeline = weak_from_this();
    slot.address = this;
    slot.thread = &threads_.add(gettid());
    slot.thread->base_now_ns = now_ns();
    slot.thread->base_cpu_ns = HostThreads::own_cpu_ns();
    return *slot.thread;
}

void Timeline::forget_thread(pid_t tid) {
    std::lock_guard guard(lock_);
    threads_.remove(tid);
    ++activity_;
    conductor_wake_.notify_one();
}

Timeline::Call::Call(Timeline& timeline) : timeline_(timeline) {
    const std::uint64_t cpu_ns = HostThreads::own_cpu_ns();
    lock_ = std::unique_lock(timeline.lock_);
    self_ = &timeline.self_thread();
    ++timeline.activity_;
    // What a poller does between two questions is waiting, whatever processor time it takes.
    if (self_->state != HostThread::State::Polling) timeline.credit(*self_, cpu_ns);
    self_->state = HostThread::State::Running;
    timeline.process_due();
}

Timeline::Call::~Call() {
    if (!polled_) {
        self_->polled.clear();
        self_->state = HostThread::State::Running;
    } else {
        self_->state = HostThread::State::Polling;
    }
    self_->notice_until_ns = 0;
    self_->base_now_ns = timeline_.now_ns();
    self_->base_cpu_ns = HostThreads::own_cpu_ns();
    lock_.unlock();
    // A program that spins on queries leaves the processor to those it waits for.
    if (polled_) sched_yield();
}

void Timeline::credit(HostThread& thread, std::uint64_t cpu_ns) {
    const std::uint64_t used = cpu_ns > thread.base_cpu_ns ? cpu_ns - thread.base_cpu_ns : 0;
    advance_to(thread.base_now_ns + used);
}

Status Timeline::poll(Call& call, const OpPtr& op) {
    if (op == nullptr || op->done) return CUDA_SUCCESS;
    call.polled_ = true;
    auto& polled = call.self_->polled;
    if (std::find(polled.begin(), polled.end(), op) == polled.end()) polled.push_back(op);
    conductor_wake_.notify_one();
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
    const std::uint64_t target = now_ns() + ns;
    advance_to(target);
    if (now_ns() >= target) return;
    ++pending_;
    call.self_->waiting_for = 1;
    add_timer(target, TimerKind::Wake, nullptr, call.self_);
    block(call);
}

void Timeline::block(Call& call) {
    HostThread& self = *call.self_;
    if (self.waiting_for == 0) return;
    self.polled.clear();
    self.state = HostThread::State::Blocked;
    ++activity_;
    conductor_wake_.notify_one();
    self.wake.wait(call.lock_, [&] { return self.waiting_for == 0; });
}

void Timeline::wake(HostThread& thread) {
    thread.waiting_for = 0;
    thread.state = HostThread::State::Running;
    thread.base_now_ns = now_ns();
    thread.base_cpu_ns = HostThreads::cpu_ns(thread.tid);
    ++activity_;
    thread.wake.notify_one();
}

bool Timeline::quiescent(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t real_ns = HostThreads::real_ns();
    if (activity_ == quiet_activity_ && real_ns < quiet_until_ns_) return !notice_due(real_ns);
    if (notice_due(real_ns)) return false;
    threads_.reconcile(now_ns());
    std::vector<pid_t> look;
    for (const auto& [tid, thread] : threads_.all()) {
        if (thread->state == HostThread::State::Running || thread->notice_until_ns != 0)
            look.push_back(tid);
    }
    const std::uint64_t activity = activity_;
    if (!look.empty()) {
        lock.unlock();
        const bool asleep = HostThreads::asleep(look);
        lock.lock();
        if (!asleep || activity != activity_) return false;
    }
    quiet_activity_ = activity;
    quiet_until_ns_ = real_ns + kQuietNs;
    return true;
}

bool Timeline::notice_due(std::uint64_t real_ns) {
    bool due = false;
    for (const auto& [tid, thread] : threads_.all()) {
        if (thread->state != HostThread::State::Polling) continue;
        const bool any_done = std::any_of(thread->polled.begin(), thread->polled.end(),
                                          [](const OpPtr& op) { return op->done; });
        if (!any_done) continue;
        if (thread->notice_until_ns == 0) {
            thread->notice_until_ns = real_ns + kNoticeNs;
            quiet_until_ns_ = 0;
        }
        if (real_ns < thread->notice_until_ns) due = true;
    }
    return due;
}

bool Timeline::credit_running() {
    std::uint64_t target_ns = now_ns();
    std::vector<std::pair<HostThread*, std::uint64_t>> running;
    for (const auto& [tid, thread] : threads_.all()) {
        if (thread->state != HostThread::State::Running) continue;
        const std::uint64_t cpu_ns = HostThreads::cpu_ns(tid);
        if (cpu_ns <= thread->base_cpu_ns) continue;
        running.emplace_back(thread.get(), cpu_ns);
        target_ns = std::max(target_ns, thread->base_now_ns + cpu_ns - thread->base_cpu_ns);
    }
    advance_to(target_ns);
    for (const auto& [thread, cpu_ns] : running) {
        if (thread->state != HostThread::State::Running) continue;
        thread->base_now_ns = now_ns();
        thread->base_cpu_ns = cpu_ns;
    }
    return !running.empty();
}

void Timeline::jump_to(std::uint64_t at_ns) {
    now_.store(at_ns, std::memory_order_release);
    for (const auto& [tid, thread] : threads_.all()) thread->base_now_ns = at_ns;
    process_due();
}

void Timeline::tick(std::unique_lock<std::mutex>& lock) {
    if (activity_ != tick_activity_) tick_ns_ = kShortestTickNs;
    tick_activity_ = activity_;
    const std::uint64_t next = next_event_ns();
    std::uint64_t wait_ns = tick_ns_;
    if (next != kNever && next > now_ns())
        wait_ns = std::clamp(next - now_ns(), kShortestTickNs, tick_ns_);
    tick_ns_ = std::min(tick_ns_ * 2, kLongestTickNs);
    conductor_wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
    credit_running();
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
        if (parked_) {
            conductor_wake_.wait(lock);
        } else if (!conductor_work_.empty()) {
            const OpPtr op = std::move(conductor_work_.front());
            conductor_work_.pop_front();
            run(lock, op);
        } else if (value_waits_.empty() &&
                   (pending_ == 0 || frozen() || next_event_ns() == kNever)) {
            conductor_wake_.wait(lock);
        } else if (!frozen() && next_event_ns() != kNever && quiescent(lock)) {
            jump_to(next_event_ns());
        } else if (conductor_work_.empty() && !stop_) {
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
    self.state = HostThread::State::Blocked;
    enter("simgpu-host");
    for (;;) {
        function_wake_.wait(lock, [this] { return stop_ || (!functions_.empty() && !parked_); });
        if (stop_) return;
        const OpPtr op = std::move(functions_.front());
        functions_.pop_front();
        const Status status = op->context->error;
        self.state = HostThread::State::Running;
        self.base_now_ns = now_ns();
        self.base_cpu_ns = HostThreads::own_cpu_ns();
        ++activity_;
        ++working_;
        lock.unlock();
        op->function(status);
        const std::uint64_t cpu_ns = HostThreads::own_cpu_ns();
        lock.lock();
        --working_;
        credit(self, cpu_ns);
        self.state = HostThread::State::Blocked;
        ++activity_;
        finish(op, status);
        process_due();
        conductor_wake_.notify_one();
        if (parked_) parked_wake_.notify_all();
    }
}

}  // namespace simgpu
