// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/kernel_times.hpp"

#include <new>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/driver.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kCollectEveryNs = 2 * kMs;
/// After the last tagged operation was issued: what has not come by then does not count. The host
/// may be far ahead of the device; CUPTI goes sooner where all has come.
constexpr std::uint64_t kDrainNs = 2000 * kMs;
/// Operations without a single time, and how long that may last, until CUPTI is given up.
constexpr std::uint64_t kPatience = 64;
constexpr std::uint64_t kPatienceNs = 2000 * kMs;

constexpr int kDeviceShift = 48;
constexpr std::uint64_t kSerials = (std::uint64_t{1} << kDeviceShift) - 1;

std::atomic<KernelTimes*> g_times{nullptr};
std::atomic<bool> g_forked{false};

}  // namespace

KernelTimes& KernelTimes::instance() {
    KernelTimes* times = g_times.load(std::memory_order_acquire);
    if (times != nullptr) return *times;
    auto* made = new KernelTimes;  // leaked: workers may outlive static destructors
    if (g_times.compare_exchange_strong(times, made)) return *made;
    delete made;
    return *times;
}

void KernelTimes::forget() noexcept {
    if (g_times.exchange(nullptr) != nullptr) g_forked = true;
}

void KernelTimes::acquire(CuptiUse use) noexcept try {
    learners_.fetch_add(1);
    if (use == CuptiUse::Off || g_forked) return;
    State off = State::Off;
    if (state_.compare_exchange_strong(off, State::Starting)) start(use);
} catch (const std::bad_alloc&) {
    state_ = State::Over;
}

void KernelTimes::start(CuptiUse use) {
    std::string why;
    auto trace = cupti::Trace::open(use == CuptiUse::On, &why);
    if (trace && begin(std::move(trace), &why)) {
        LIBSWAP_LOG(Info, "operations are timed by CUPTI while the iteration is learnt");
        return;
    }
    LIBSWAP_LOG(Info, "operations are timed by events: {}", why);
    state_ = State::Over;
}

bool KernelTimes::begin(std::unique_ptr<cupti::Trace> trace, std::string* why) {
    // Whoever comes now, waits, and finds it begun.
    std::lock_guard lock(mutex_);
    if (others_) *why = "the program uses CUPTI";
    if (others_ || !trace->begin(why)) return false;
    trace_ = std::move(trace);
    started_ns_ = now_ns();
    state_ = State::On;
    if (learners_ == 0) drain(started_ns_);  // who asked was done sooner
    return true;
}

void KernelTimes::leave_to_others() noexcept {
    std::lock_guard lock(mutex_);
    if (std::exchange(others_, true) || !trace_) return;
    // A thread between enter() and leave() is not waited for: its operation's times are lost.
    if (state_.exchange(State::Over) == State::Over) return;
    trace_->hand_over();
    LIBSWAP_LOG(Info, "operations are timed by events: the program begins to use CUPTI");
}

void KernelTimes::begin_capture() noexcept {
    captures_.fetch_add(1, std::memory_order_seq_cst);
    if (is_out()) return;
    std::lock_guard lock(mutex_);
}

void KernelTimes::release() noexcept {
    if (learners_.fetch_sub(1) != 1) return;
    std::lock_guard lock(mutex_);
    if (learners_ == 0) drain(now_ns());
}

/// Nothing more is tagged; what is under way still comes.
void KernelTimes::drain(std::uint64_t now) noexcept {
    State on = State::On;
    if (state_.compare_exchange_strong(on, State::Draining)) released_ns_ = now;
}

bool KernelTimes::enter(int device, std::uint64_t serial) noexcept {
    if (state_.load(std::memory_order_relaxed) != State::On || process_is_exiting()) return false;
    // finish() looks at the counter after it has changed the state, this at the state after the
    // counter: one of them sees the other.
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (!is_on()) {
        inside_.fetch_sub(1, std::memory_order_release);
        return false;
    }
    entered_.fetch_add(1, std::memory_order_relaxed);
    trace_->enter(static_cast<std::uint64_t>(device) << kDeviceShift | (serial & kSerials));
    return true;
}

void KernelTimes::leave() noexcept {
    trace_->leave();
    inside_.fetch_sub(1, std::memory_order_release);
}

bool KernelTimes::gives_nothing(std::uint64_t now) const noexcept {
    return answered_ == 0 && entered_.load(std::memory_order_relaxed) >= kPatience &&
           now - started_ns_ > kPatienceNs;
}

void KernelTimes::drain_if_done(std::uint64_t now) noexcept {
    if (is_on() && gives_nothing(now)) {
        LIBSWAP_LOG(Info, "CUPTI tells no times, operations are timed by events");
        drain(now);
    }
    if (state_.load() != State::Draining) return;
    const bool all_came = inside_ == 0 && answered_ >= entered_;
    if (!all_came && now - released_ns_ <= kDrainNs) return;
    if (capturing()) return;
    trace_->disable();
    state_.store(State::Drained, std::memory_order_release);
}

bool KernelTimes::collect(int device, bool hurry, std::vector<OperationTime>* out) {
    if (is_out() || state_.load() == State::Starting) return false;
    std::lock_guard lock(mutex_);
    const State state = state_.load();
    if (!trace_ || state == State::Over) return false;
    const std::uint64_t now = now_ns();
    if (hurry || (now - collected_ns_ >= kCollectEveryNs && state != State::Drained)) {
        collected_ns_ = now;
        const auto times = trace_->collect(hurry || state == State::Draining);
        answered_ += times.size();
        for (const cupti::TaggedTime& time : times)
            waiting_[static_cast<int>(time.tag >> kDeviceShift)].push_back(
                {time.tag & kSerials, time.start_ns, time.end_ns});
        drain_if_done(now);
    }
    auto& mine = waiting_[device];
    out->insert(out->end(), mine.begin(), mine.end());
    mine.clear();
    return is_on() || state_.load() == State::Draining;
}

void KernelTimes::take_out() noexcept {
    // Whoever is first does it; the worker may be at it just now, then the next call does.
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || inside_.load(std::memory_order_seq_cst) != 0 || capturing()) return;
    State drained = State::Drained;
    if (!state_.compare_exchange_strong(drained, State::Over)) return;
    trace_->stop();
    LIBSWAP_LOG(Debug, "CUPTI is out of the process again, after {} times", answered());
}

}  // namespace libswap
