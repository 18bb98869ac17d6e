// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/worker.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/blocked_signals.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr int kContextTries = 3;
constexpr int kOpenTries = 3;
/// Rounds without any change until the device is asked whether it still lives.
constexpr std::uint32_t kLookEvery = 256;
constexpr auto kShortSleep = std::chrono::microseconds(20);
constexpr auto kLongSleep = std::chrono::microseconds(200);

}  // namespace

Worker::Worker(const Driver& driver, SwapEngine::Parts parts, Host host)
    : driver_(driver), parts_(parts), host_(std::move(host)), swap_(parts) {
    inbox_.reserve(1024);
    batch_.reserve(1024);
    demands_.reserve(1024);
}

void Worker::start(CUcontext context) noexcept {
    context_ = context;
    stopping_ = false;
    running_ = true;
}

void Worker::start_thread() noexcept {
    std::lock_guard lock(thread_mutex_);
    if (has_thread_ || !running_) return;
    host_.thread_starts();
    const BlockedSignals blocked;
    try {
        thread_ = std::thread([this] { run(); });
        has_thread_.store(true, std::memory_order_release);
    } catch (const std::system_error&) {
        running_ = false;
        LIBSWAP_LOG(Warning, "no thread to be had: nothing moves from now on");
    }
}

void Worker::stop(bool context_gone) {
    std::lock_guard lock(thread_mutex_);
    if (!running_.exchange(false)) return;
    stopping_ = true;
    if (has_thread_) {
        kick();
        thread_.join();
        has_thread_ = false;
    }
    swap_.close(context_gone);
}

void Worker::park() noexcept {
    if (!has_thread_.load(std::memory_order_acquire)) return;
    parking_ = true;
    kick();
    for (int tries = 0; tries < 100 && !parked_; ++tries)
        std::this_thread::sleep_for(std::chrono::microseconds(500));
}

void Worker::want(BlockIndex block, std::uint64_t serial) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.block = block;
        request.serial = serial;
    }
    inbox_signal_.notify_one();
}

void Worker::want_memory(std::uint64_t ticket, ChunkClass size_class, std::uint32_t count,
                         bool patient) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.kind = Request::Kind::Memory;
        request.run = {size_class, count};
        request.patient = patient;
        request.serial = ticket;
    }
    inbox_signal_.notify_one();
}

void Worker::end_want(std::uint64_t ticket) noexcept {
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.kind = Request::Kind::Taken;
        request.serial = ticket;
    }
    inbox_signal_.notify_one();
}

void Worker::give_commands(std::span<const SwapCommand> commands) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        for (const SwapCommand& command : commands) {
            Request& request = inbox_.emplace_back();
            request.kind = Request::Kind::Command;
            request.command = command;
            if (command.claim_serial != SwapCommand::kNoClaim) claims_.push_back(command);
        }
    }
    inbox_signal_.notify_one();
}

void Worker::kick() noexcept {
    if (!has_thread_.load(std::memory_order_acquire)) return;
    {
        std::lock_guard lock(inbox_mutex_);
        kicked_ = true;
    }
    inbox_signal_.notify_one();
}

void Worker::note_progress() noexcept {
    progress_.fetch_add(1, std::memory_order_acq_rel);
    if (progress_waiters_.load(std::memory_order_seq_cst) == 0) return;
    std::lock_guard lock(progress_mutex_);
    progress_signal_.notify_all();
}

void Worker::wait_progress(std::uint32_t seen, std::uint64_t timeout_us) noexcept {
    note_wait();
    progress_waiters_.fetch_add(1, std::memory_order_seq_cst);
    {
        std::unique_lock lock(progress_mutex_);
        progress_signal_.wait_for(lock, std::chrono::microseconds(timeout_us),
                                  [&] { return progress() != seen; });
    }
    progress_waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

bool Worker::enter_context() noexcept {
    for (int tries = 0; tries < kContextTries; ++tries)
        if (LIBSWAP_CU(driver_.cuCtxSetCurrent(context_))) return true;
    return false;
}

void Worker::open_engine() noexcept {
    Status opened;
    for (int tries = 0; tries < kOpenTries; ++tries)
        if (opened = swap_.open(); opened) return;
    swap_.stop_moving(opened.error());
}

void Worker::run() {
    prctl(PR_SET_NAME, "libswap", 0, 0, 0);
    if (!enter_context()) swap_.lose("the context cannot be entered");
    // Our calls must not end a capture that another thread has open.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    LIBSWAP_CU_IGNORE(driver_.cuThreadExchangeStreamCaptureMode(&mode));
    while (!stopping_ && !parking_ && !host_.may_begin()) std::this_thread::sleep_for(kShortSleep);
    if (!stopping_ && !parking_) open_engine();
    while (!stopping_ || swap_.jobs() != 0) {
        if (parking_) {
            parked_ = true;
            for (;;) pause();
        }
        drain_inbox();
        bool changed = swap_.step();
        if (swap_.take_guard_hit()) host_.guard_hit();
        needed_bytes_ = 0;
        changed |= serve_demands();
        if (!host_.capturing() && !stopping_) {
            if (calm_.load(std::memory_order_relaxed) == 0) {
                serve_commands();
                changed |= serve_out();
                changed |= serve_fetches();
            }
            changed |= make_room();
        }
        note_claims();
        changed |= swap_.map_one();
        if (changed) note_progress();
        if (swap_.lost()) {
            // Nobody may wait for what will not come.
            for (Demand& demand : demands_) refuse(demand);
            demands_.clear();
            refuse_memory();
            commands_.clear();
            due_fetches_.clear();
            due_out_.clear();
            swap_.abandon_all();
            note_progress();
        }
        idle(changed);
    }
}

void Worker::drain_inbox() {
    {
        std::lock_guard lock(inbox_mutex_);
        batch_.swap(inbox_);
        kicked_ = false;
    }
    for (const Request& request : batch_) {
        switch (request.kind) {
            case Request::Kind::Block: {
                Block& block = parts_.blocks->block(request.block);
                const bool known = std::any_of(
                    demands_.begin(), demands_.end(),
                    [&](const Demand& demand) { return demand.block == request.block; });
                if (!known) demands_.push_back({request.block, block.id.load(), request.serial, 0});
                break;
            }
            case Request::Kind::Memory:
                std::erase_if(memory_wanted_, [&](const MemoryDemand& demand) {
                    return demand.ticket == request.serial;
                });
                memory_wanted_.push_back({request.run, request.serial, request.patient});
                break;
            case Request::Kind::Taken:
                std::erase_if(memory_wanted_, [&](const MemoryDemand& demand) {
                    return demand.ticket == request.serial;
                });
                break;
            case Request::Kind::Command:
                add_in_order(commands_, request.command);
                break;
        }
    }
    batch_.clear();
}

bool Worker::pending() const noexcept {
    return swap_.jobs() != 0 || !demands_.empty() || !memory_wanted_.empty() ||
           !commands_.empty() || !due_fetches_.empty() || !due_out_.empty();
}

void Worker::idle(bool changed) {
    if (changed) {
        idle_rounds_ = 0;
        return;
    }
    const bool soon = host_.background() || pending();
    if (soon && (idle_rounds_ + 1) % kLookEvery == 0) swap_.check_device();
    std::unique_lock lock(inbox_mutex_);
    const auto ready = [&] {
        return !inbox_.empty() || kicked_ || parking_ || (stopping_ && !pending());
    };
    if (soon) {
        const auto sleep = ++idle_rounds_ < 100 ? kShortSleep : kLongSleep;
        inbox_signal_.wait_for(lock, sleep, ready);
    } else {
        inbox_signal_.wait(lock, ready);
    }
}

}  // namespace libswap
