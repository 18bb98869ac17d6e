// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "interposer/hook_time.hpp"

#include <ctime>
#include <new>

namespace libswap {
namespace {

/// What the thread has computed so far. Not the time that passes: on a busy computer hooks would
/// have what the scheduler gives to others in the meantime.
std::uint64_t thread_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// One thread's. Written by it alone; kept after its end, for the sum.
struct ThreadTime {
    std::atomic<std::uint64_t> hooks_ns{0};
    ThreadTime* next = nullptr;
};

constinit std::atomic<ThreadTime*> g_threads{nullptr};
constinit thread_local ThreadTime* t_time = nullptr;
constinit thread_local std::uint64_t t_real_ns = 0;  ///< Since the hook began.
constinit thread_local bool t_in_real = false;

ThreadTime* this_thread() noexcept {
    if (t_time) return t_time;
    t_time = new (std::nothrow) ThreadTime;
    if (!t_time) return nullptr;
    t_time->next = g_threads.load(std::memory_order_relaxed);
    while (!g_threads.compare_exchange_weak(t_time->next, t_time, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
    return t_time;
}

}  // namespace

constinit std::atomic<bool> g_hooks_timed{false};

std::uint64_t hook_time_ns() noexcept {
    std::uint64_t all = 0;
    for (const ThreadTime* thread = g_threads.load(std::memory_order_acquire); thread;
         thread = thread->next)
        all += thread->hooks_ns.load(std::memory_order_relaxed);
    return all;
}

void HookTimer::begin() noexcept {
    t_real_ns = 0;
    start_ns_ = thread_ns();
}

void HookTimer::end() noexcept {
    ThreadTime* const thread = this_thread();
    if (!thread) return;
    const std::uint64_t taken = thread_ns() - start_ns_ - t_real_ns;
    thread->hooks_ns.store(thread->hooks_ns.load(std::memory_order_relaxed) + taken,
                           std::memory_order_relaxed);
}

void RealCallTimer::begin() noexcept {
    // A driver may call itself by its exported names.
    if (t_in_real) return;
    t_in_real = true;
    start_ns_ = thread_ns();
}

void RealCallTimer::end() noexcept {
    t_real_ns += thread_ns() - start_ns_;
    t_in_real = false;
}

}  // namespace libswap
