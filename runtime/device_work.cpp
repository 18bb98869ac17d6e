// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Operations: what they name, and the pins around the real call.

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/learning.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// Rule 15: without any progress for this long, the operation goes out with what is on the host.
constexpr std::uint64_t kNoProgressNs = 5'000'000'000;
/// The same where all that moves is other operations': a stream that always has work in memory that
/// others need keeps the worker busy for ever.
constexpr std::uint64_t kNoArrivalNs = 60'000'000'000;
// A waiting operation is told of progress; it looks by itself too, less and less often: looking
// costs processor time.
constexpr std::uint64_t kPollUs = 5'000;
constexpr std::uint64_t kLongestPollUs = 200'000;
constexpr std::uint64_t kEventEvery = 64;
/// Shorter waits are not worth a line in the trace.
constexpr std::uint64_t kShortestStallNs = 1000;

}  // namespace

void Operation::clear() noexcept {
    blocks.clear();
    changes.clear();
    spans.clear();
    parts.clear();
    buffers_seen = 0;
    targets.clear();
    operands_named.clear();
    tables.clear();
    foreign.clear();
    operands.clear();
    signature = 0;
    kind = OpKind::Launch;
    function = nullptr;
    explained = true;
    writes = true;
    host_is_fine = false;
    names_ours = false;
    by_parts = false;
    words = 0;
    addresses = 0;
    on_host = 0;
    rest = 0;
    may_reach_further = false;
    launch_kind = 0;
    belief = Belief::Confirmed;
}

bool Device::try_pin_all(Operation& op, bool last_resort) {
    const bool mappable = host_pool_.kind() == HandlePool::Kind::Host;
    op.on_host = 0;
    for (std::size_t i = 0; i < op.blocks.size();) {
        Block& block = blocks_.block(op.blocks[i]);
        const bool held = i >= op.brought();
        const bool host_is_fine =
            mappable && (held || op.host_is_fine || (last_resort && block.refused.load()));
        switch (block.cell.pin(host_is_fine)) {
            case PinResult::PinnedHost:
                if (!held) ++op.on_host;
                if (op.writes) block.record_valid.store(false);
                [[fallthrough]];
            case PinResult::Pinned:
            case PinResult::Cancelled:
                ++i;
                break;
            case PinResult::Gone:
                // Freed by another thread: the program's own mistake, to be answered by the driver.
                op.blocks.erase(op.blocks.begin() + static_cast<std::ptrdiff_t>(i));
                if (held) --op.rest;
                break;
            case PinResult::Absent:
            case PinResult::Busy:
                unpin(op, i);
                return false;
        }
    }
    return true;
}

void Device::unpin(Operation& op, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) blocks_.block(op.blocks[i]).cell.unpin();
}

bool Device::acquire(Operation& op, std::uint64_t serial) {
    if (try_pin_all(op, false)) return true;
    Counters::add(counters_.host_waits);
    const std::uint64_t begun = now_ns();
    bool pinned = false;
    const bool mappable = host_pool_.kind() == HandlePool::Kind::Host;
    // Each round brings all of it; between a round's end and the pins something may leave again.
    for (int round = 0; !pinned && round < 64; ++round) {
        if (!wait_for_blocks(op, serial)) break;
        pinned = try_pin_all(op, true);
        // What was refused and cannot be used where it is will be refused again.
        if (!pinned && !mappable && any_refused(op) && !exceed_budget(op)) break;
    }
    Counters::add(counters_.host_wait_ns, now_ns() - begun);
    return pinned;
}

void Device::note_wait(std::uint64_t serial, WaitReason reason, std::uint64_t waited_ns) {
    static constexpr const char* kNames[] = {"a mapping is changed", "a copy in", "room",
                                             "another operation's turn", "an unexplained launch"};
    if (log_ && waited_ns >= kShortestStallNs)
        log_->stall(serial, waited_ns, log_->name(kNames[static_cast<int>(reason)]));
}

bool Device::any_refused(const Operation& op) noexcept {
    return std::any_of(op.blocks.begin(), op.blocks.end(), [&](BlockIndex index) {
        const Block& block = blocks_.block(index);
        return block.refused.load() && block.cell.load().state() == Residency::Host;
    });
}

bool Device::wait_for_blocks(Operation& op, std::uint64_t serial) {
    // One at a time: two operations that together need more than the budget would hold each other
    // up.
    const std::uint64_t asked_turn = now_ns();
    std::unique_lock turn(room_turn_, std::chrono::nanoseconds(kNoProgressNs));
    note_wait(serial, WaitReason::Turn, now_ns() - asked_turn);
    const std::span<const BlockIndex> brought(op.blocks.data(), op.brought());
    for (const BlockIndex index : brought) {
        Block& block = blocks_.block(index);
        block.refused.store(false);
        block.wanted.fetch_add(1);
        block.last_touch.store(stillness_.number(), std::memory_order_relaxed);
    }
    // What is only held must come to rest where it is.
    if (op.rest) worker_->begin_calm();
    bool ready = false;
    bool ask = true;
    std::uint64_t poll_us = kPollUs;
    std::uint64_t last_change = now_ns();
    std::uint64_t last_arrival = last_change;
    std::uint64_t looked = last_change;
    for (std::size_t fewest_missing = op.blocks.size() + 1; !ready;) {
        const std::uint32_t seen = worker_->progress();
        std::size_t missing = 0;
        auto reason = WaitReason::Remap;
        for (std::size_t i = 0; i < op.blocks.size(); ++i) {
            Block& block = blocks_.block(op.blocks[i]);
            const ResidencyWord word = block.cell.load();
            if (word.remapping() || word.state() == Residency::Coming ||
                word.state() == Residency::HandedOver) {
                ++missing;
                if (!word.remapping()) reason = std::max(reason, WaitReason::CopyIn);
            } else if (word.state() == Residency::Host && i < brought.size() &&
                       !block.refused.load()) {
                if (ask) worker_->want(op.blocks[i], serial);
                ++missing;
                reason = WaitReason::Room;
            }
        }
        ready = missing == 0;
        if (ready || worker_->lost()) break;
        worker_->wait_progress(seen, poll_us);
        const std::uint64_t now = now_ns();
        note_wait(serial, reason, now - std::exchange(looked, now));
        if (missing < fewest_missing) last_arrival = now;
        fewest_missing = std::min(fewest_missing, missing);
        ask = worker_->progress() == seen;
        if (ask)
            poll_us = std::min(2 * poll_us, kLongestPollUs);
        else
            last_change = now;
        if (now - last_change < kNoProgressNs && now - last_arrival < kNoArrivalNs) continue;
        Counters::add(counters_.stalls);
        for (const BlockIndex index : brought) blocks_.block(index).refused.store(true);
        last_change = last_arrival = now;
    }
    for (const BlockIndex index : brought) blocks_.block(index).wanted.fetch_sub(1);
    if (op.rest) worker_->end_calm();
    return !worker_->lost() || ready;
}

/// Launches that hold all of the buffers they name a part of have nothing beyond it to be believed.
bool Device::is_believed_where_it_shifts(const Operation& op) noexcept {
    return op.rest == 0 && op.belief == Belief::Confirmed &&
           std::any_of(op.parts.begin(), op.parts.end(), [&](const NamedPart& part) {
               return blocks_.buffer(part.buffer).shifts.load();
           });
}

bool Device::enter_gate(Gate& gate, std::uint64_t serial) {
    if (gate.enter()) return true;
    gate.waiters.fetch_add(1);
    const std::uint64_t begun = now_ns();
    bool entered = false;
    while (!(entered = gate.enter())) {
        const std::uint32_t seen = worker_->progress();
        if (gate.enter()) {
            entered = true;
            break;
        }
        worker_->wait_progress(seen, 1000);
        if (worker_->lost() || now_ns() - begun > 5 * kNoProgressNs) break;
    }
    gate.waiters.fetch_sub(1);
    Counters::add(counters_.host_wait_ns, now_ns() - begun);
    note_wait(serial, WaitReason::Gate, now_ns() - begun);
    return entered;
}

void Device::order_after_arrivals(const Operation& op, CUstream stream) {
    CUevent last = nullptr;
    for (const BlockIndex index : op.blocks) {
        CUevent event = blocks_.block(index).arriving.load(std::memory_order_acquire);
        if (!event || event == last) continue;
        last = event;
        worker_->note_wait();
        if (LIBSWAP_CU(driver_.cuStreamWaitEvent(stream, event, 0))) continue;
        wait_for_arrivals(op);
        return;
    }
}

void Device::wait_for_arrivals(const Operation& op) {
    for (const BlockIndex index : op.blocks)
        while (blocks_.block(index).arriving.load(std::memory_order_acquire) && !worker_->lost()) {
            const std::uint32_t seen = worker_->progress();
            if (blocks_.block(index).arriving.load(std::memory_order_acquire))
                worker_->wait_progress(seen, 1000);
        }
}

void Device::note_touched(const Operation& op) noexcept {
    const std::uint64_t now = stillness_.number();
    for (std::size_t i = 0; i < op.blocks.size(); ++i) {
        Block& block = blocks_.block(op.blocks[i]);
        if (i < op.brought()) block.last_touch.store(now, std::memory_order_relaxed);
        // Whoever moves the block has seen the pin go before it looks.
        if (op.writes && block.fresh.load(std::memory_order_relaxed))
            block.fresh.store(false, std::memory_order_relaxed);
    }
}

void Device::publish(Operation& op, Use use) {
    note_touched(op);
    for (const BlockIndex index : op.blocks) {
        Block& block = blocks_.block(index);
        if (use) block.publish(use);
        block.cell.unpin();
    }
}

CUresult Device::run(Operation& op, CUcontext context, CUstream stream, RealCall real) {
    revive(context);
    const StreamIndex index = streams_.find(context, stream);
    if (capturing() && is_captured(stream)) {
        keep_for_good(op, StayReason::Capture);
        return real();
    }
    // On a per-thread stream only its own thread can record events, and it may never come back: no
    // block waits for that without need.
    const bool own_thread_only = stream == CU_STREAM_PER_THREAD;
    if (own_thread_only)
        stillness_.pass();
    else if (stillness_.enter())
        return run_still(op, index, real);
    return run_pinned(op, context, index, stream, real);
}

/// Section 9 of the design: data could be lost, so the program is told.
CUresult Device::refuse(const Operation& op, CUstream stream) {
    // A dead context's own error comes first.
    const CUresult state = driver_.cuStreamQuery(stream);
    if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) return state;
    if (lost()) return CUDA_ERROR_UNKNOWN;
    std::uint64_t bytes = 0;
    for (const BlockIndex block : op.blocks) bytes += blocks_.block(block).bytes();
    LIBSWAP_LOG(Warning,
                "an operation needs {} MiB at once and {} MiB could not be had, out of memory",
                bytes >> 20, budget_bytes_ >> 20);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Device::run_pinned(Operation& op, CUcontext context, StreamIndex index, CUstream stream,
                            RealCall real) {
    if (!op.parts.empty()) look_at_parts(op);
    const bool look = tracking() && (!op.blocks.empty() || op.kind == OpKind::Launch);
    Step step;
    bool wanted_event = false;
    if (look) step = learn(op, &wanted_event);
    const bool trusted = op.trusted();
    GatePass passes[] = {{gate_, !trusted && look},
                         {believed_gate_, is_believed_where_it_shifts(op) && look}};
    const auto enter = [&](GatePass& pass) { return pass.enter(); };
    for (;;) {
        if (!op.blocks.empty() && !acquire(op, step.serial)) return refuse(op, stream);
        if (std::all_of(std::begin(passes), std::end(passes), enter)) break;
        // A waiting operation holds no pins.
        unpin(op, op.blocks.size());
        bool entered = true;
        for (GatePass& pass : passes)
            entered &= pass.enter() ||
                       pass.wait_for([&](Gate& gate) { return enter_gate(gate, step.serial); });
        if (!entered) {
            if (!op.blocks.empty() && !acquire(op, step.serial)) return CUDA_ERROR_UNKNOWN;
            break;
        }
        if (try_pin_all(op, true)) break;
        for (GatePass& pass : passes) pass.leave();
    }
    if (op.on_host) Counters::add(counters_.host_operands, op.on_host);
    order_after_arrivals(op, stream);
    const std::uint32_t trial =
        look && index != kNoStream ? begin_trial(op, context, stream) : Trials::kNoTicket;
    // Over the link it takes longer than a plan may count on.
    const auto timed =
        look && op.on_host == 0 ? begin_timing(index, step, op) : Learning::Timing::None;
    const CUresult result = real();
    // Before anything of ours, which is not a part of it.
    if (timed != Learning::Timing::None) learning_->end_timing(timed, index, step);
    if (trial != Trials::kNoTicket) trials_.end(trial, stream, result == CUDA_SUCCESS);
    Use use;
    if (index != kNoStream) use = streams_.take_place(index);
    if (trial != Trials::kNoTicket) {
        trials_.note_place(trial, use);
        wanted_event = true;
    }
    for (GatePass& pass : passes) pass.leave(use);
    if (op.function && result == CUDA_SUCCESS) op.function->note_launch();
    if (!trusted) last_unexplained_op_.store(stillness_.number());
    if (index == kNoStream && !op.blocks.empty())
        LIBSWAP_CU_IGNORE(driver_.cuCtxSynchronize());  // nobody could wait for it later
    publish(op, use);
    if (look) note_issued(step, use);
    if (index == kNoStream || capturing()) return result;
    // Not `look`: whatever was issued before something could move is covered by end_stillness().
    const bool own_thread_only =
        stream == CU_STREAM_PER_THREAD && tracking_.load(std::memory_order_seq_cst);
    if (wanted_event || own_thread_only || (look && use.place() % kEventEvery == 0))
        (void)streams_.record(index);
    return result;
}

bool Device::is_captured(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) return false;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Device::keep_for_good(Operation& op, StayReason reason) {
    bool any = false;
    for (const BlockIndex index : op.blocks) {
        Block& block = blocks_.block(index);
        block.fresh.store(false);
        if (block.for_good.exchange(true)) continue;
        block.stays_because.store(reason);
        Counters::add(counters_.for_good_bytes, block.bytes());
        Counters::add(counters_.stay_bytes[static_cast<std::size_t>(reason)], block.bytes());
        std::lock_guard lock(buffers_mutex_);
        graph_blocks_.push_back(index);
        any = true;
    }
    if (any && !capturing()) bring_for_good();
}

void Device::bring_for_good() {
    Operation op;
    {
        std::lock_guard lock(buffers_mutex_);
        op.blocks = graph_blocks_;
    }
    if (op.blocks.empty()) return;
    if (!acquire(op, 0)) return;
    // A graph's nodes have no event of ours to wait for.
    wait_for_arrivals(op);
    publish(op, Use{});
}

void Device::start_tracking() {
    tracking_.store(true, std::memory_order_relaxed);
    worker_->ensure_thread();
}

void Device::begin_capture() noexcept {
    captures_.fetch_add(1, std::memory_order_seq_cst);
    note_captured();
    streams_.forbid_records();
    KernelTimes::instance().begin_capture();
}

void Device::end_capture() noexcept {
    streams_.allow_records();
    captures_.fetch_sub(1, std::memory_order_seq_cst);
    KernelTimes::instance().end_capture();
    worker_->kick();
}

}  // namespace libswap
