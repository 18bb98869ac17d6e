// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Operations: what they name, and the pins around the real call.

#include <algorithm>
#include <chrono>

#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/learning.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// Rule 15: without any progress for this long, the operation goes out with what is on the host.
constexpr std::uint64_t kNoProgressNs = 5'000'000'000;
// A waiting operation is told of progress; it looks by itself too, less and less often: looking
// costs processor time.
constexpr std::uint64_t kPollUs = 5'000;
constexpr std::uint64_t kLongestPollUs = 200'000;
constexpr std::uint64_t kEventEvery = 64;

}  // namespace

void Operation::clear() noexcept {
    blocks.clear();
    buffers.clear();
    tables.clear();
    operands.clear();
    signature = 0;
    kind = OpKind::Launch;
    function = nullptr;
    explained = true;
    writes = true;
    host_is_fine = false;
    names_ours = false;
    on_host = 0;
}

void Device::name_address(Operation& op, std::uint64_t address) {
    const PageTag tag = space_.find(address);
    if (tag == 0) return;
    op.names_ours = true;
    if (tag & kSlabTag) {
        if (!edges_.any()) return;
        SlabPiece piece;
        if (slabs_.find((tag & ~kSlabTag) - 1, address, &piece))
            name_table(op, piece.base, piece.bytes);
        return;
    }
    const BufferIndex index = blocks_.block(tag - 1).buffer;
    if (std::find(op.buffers.begin(), op.buffers.end(), index) != op.buffers.end()) return;
    const Buffer& buffer = blocks_.buffer(index);
    op.buffers.push_back(index);
    for (std::uint32_t i = 0; i < buffer.count; ++i) op.blocks.push_back(buffer.first + i);
    if (edges_.any()) name_table(op, buffer.base, buffer.span_bytes);
}

void Device::name_range(Operation& op, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t end = address + std::max<std::uint64_t>(bytes, 1);
    for (std::uint64_t at = address; at < end;) {
        const PageTag tag = space_.find(at);
        if (tag == 0) return;
        op.names_ours = true;
        if (tag & kSlabTag) {
            at = at / kPageBytes * kPageBytes + kPageBytes;
            continue;
        }
        const Block& block = blocks_.block(tag - 1);
        if (std::find(op.blocks.begin(), op.blocks.end(), tag - 1) == op.blocks.end())
            op.blocks.push_back(tag - 1);
        if (at >= block.base + block.bytes()) return;  // the gap behind a buffer
        at = block.base + block.bytes();
    }
}

bool Device::all_on_host(const Operation& op) noexcept {
    return std::all_of(op.blocks.begin(), op.blocks.end(), [&](BlockIndex index) {
        return blocks_.block(index).cell.load().state() == Residency::Host;
    });
}

void Device::name_table(Operation& op, std::uint64_t base, std::uint64_t bytes) {
    if (std::find(op.tables.begin(), op.tables.end(), base) != op.tables.end()) return;
    op.tables.push_back(base);
    // Collected first: naming a target looks for its edges in turn.
    std::vector<std::uint64_t> targets;
    edges_.for_each(base, bytes, [&](std::uint64_t target) { targets.push_back(target); });
    for (const std::uint64_t target : targets) name_address(op, target);
}

void Device::name_globals(Operation& op) {
    if (!any_globals_.load(std::memory_order_relaxed) || !edges_.any()) return;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> globals;
    {
        std::lock_guard lock(buffers_mutex_);
        globals = globals_;
    }
    for (const auto& [base, bytes] : globals) name_table(op, base, bytes);
}

void Device::name_everything_unmappable(Operation& op) {
    if (host_pool_.kind() != HandlePool::Kind::Pinned) return;
    for (BlockIndex i = 0; i < blocks_.end(); ++i) {
        const Block& block = blocks_.block(i);
        if (block.cell.load().state() != Residency::Free) op.blocks.push_back(i);
    }
}

void Device::add_global(std::uint64_t base, std::uint64_t bytes) {
    std::lock_guard lock(buffers_mutex_);
    for (const auto& global : globals_)
        if (global.first == base) return;
    globals_.emplace_back(base, bytes);
    any_globals_.store(true);
}

void Device::follow_payload(std::uint64_t dst, const void* payload, std::size_t bytes) {
    edges_.overwrite(dst, bytes);
    if (!payload || bytes > PointerEdges::kMaxPayloadBytes) return;
    std::uint64_t offset = (8 - dst % 8) % 8;
    for (; offset + 8 <= bytes; offset += 8) {
        std::uint64_t word;
        __builtin_memcpy(&word, static_cast<const char*>(payload) + offset, 8);
        if (space_.find(word) != 0) edges_.add(dst + offset, word);
    }
}

bool Device::try_pin_all(Operation& op, bool last_resort) {
    const bool mappable = host_pool_.kind() == HandlePool::Kind::Host;
    op.on_host = 0;
    for (std::size_t i = 0; i < op.blocks.size();) {
        Block& block = blocks_.block(op.blocks[i]);
        const bool host_is_fine =
            mappable && (op.host_is_fine || (last_resort && block.refused.load()));
        switch (block.cell.pin(host_is_fine)) {
            case PinResult::PinnedHost:
                ++op.on_host;
                if (op.writes) block.record_valid.store(false);
                [[fallthrough]];
            case PinResult::Pinned:
            case PinResult::Cancelled:
                ++i;
                break;
            case PinResult::Gone:
                // Freed by another thread: the program's own mistake, to be answered by the driver.
                op.blocks.erase(op.blocks.begin() + static_cast<std::ptrdiff_t>(i));
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
        if (!pinned && !mappable && any_refused(op)) break;
    }
    const std::uint64_t waited = now_ns() - begun;
    Counters::add(counters_.host_wait_ns, waited);
    if (log_) log_->stall(serial, waited, 0);
    return pinned;
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
    std::unique_lock turn(room_turn_, std::chrono::nanoseconds(kNoProgressNs));
    for (const BlockIndex index : op.blocks) {
        Block& block = blocks_.block(index);
        block.refused.store(false);
        block.wanted.fetch_add(1);
        block.last_touch.store(ops_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    bool ready = false;
    bool ask = true;
    std::uint64_t poll_us = kPollUs;
    std::uint64_t last_change = now_ns();
    while (!ready) {
        const std::uint32_t seen = worker_->progress();
        ready = true;
        for (const BlockIndex index : op.blocks) {
            Block& block = blocks_.block(index);
            const ResidencyWord word = block.cell.load();
            if (word.remapping() || word.state() == Residency::Coming) {
                ready = false;
            } else if (word.state() == Residency::Host && !block.refused.load()) {
                if (ask) worker_->want(index, serial);
                ready = false;
            }
        }
        ask = false;
        if (ready || worker_->lost()) break;
        worker_->wait_progress(seen, poll_us);
        if (worker_->progress() != seen) {
            last_change = now_ns();
            continue;
        }
        ask = true;
        poll_us = std::min(2 * poll_us, kLongestPollUs);
        if (now_ns() - last_change < kNoProgressNs) continue;
        Counters::add(counters_.stalls);
        for (const BlockIndex index : op.blocks) blocks_.block(index).refused.store(true);
        last_change = now_ns();
    }
    for (const BlockIndex index : op.blocks) blocks_.block(index).wanted.fetch_sub(1);
    return !worker_->lost() || ready;
}

bool Device::enter_gate() {
    if (gate_.enter()) return true;
    gate_.waiters.fetch_add(1);
    const std::uint64_t begun = now_ns();
    bool entered = false;
    while (!(entered = gate_.enter())) {
        const std::uint32_t seen = worker_->progress();
        if (gate_.enter()) {
            entered = true;
            break;
        }
        worker_->wait_progress(seen, 1000);
        if (worker_->lost() || now_ns() - begun > 5 * kNoProgressNs) break;
    }
    gate_.waiters.fetch_sub(1);
    Counters::add(counters_.host_wait_ns, now_ns() - begun);
    return entered;
}

void Device::publish(Operation& op, Use use) {
    const std::uint64_t now = ops_.load(std::memory_order_relaxed);
    for (const BlockIndex index : op.blocks) {
        Block& block = blocks_.block(index);
        block.last_touch.store(now, std::memory_order_relaxed);
        if (op.writes && block.fresh.load(std::memory_order_relaxed)) block.fresh.store(false);
        if (use) block.publish(use);
        block.cell.unpin();
    }
}

CUresult Device::run(Operation& op, CUcontext context, CUstream stream, RealCall real) {
    revive(context);
    const StreamIndex index = streams_.find(context, stream);
    if (capturing() && is_captured(stream)) {
        keep_for_good(op);
        return real();
    }
    ops_.fetch_add(1, std::memory_order_relaxed);
    const bool look = tracking() && (!op.blocks.empty() || op.kind == OpKind::Launch);
    Step step;
    bool wanted_event = false;
    if (look) step = learn(op, &wanted_event);
    const bool trusted = op.explained && (!op.function || op.function->trusted());
    const bool gated = !trusted && look;
    bool entered = false;
    for (;;) {
        if (!op.blocks.empty() && !acquire(op, step.serial)) {
            // Section 9 of the design: data could be lost, so the program is told.
            // A dead context's own error comes first.
            const CUresult state = driver_.cuStreamQuery(stream);
            if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) return state;
            if (lost()) return CUDA_ERROR_UNKNOWN;
            std::uint64_t bytes = 0;
            for (const BlockIndex block : op.blocks) bytes += blocks_.block(block).bytes();
            LIBSWAP_LOG(
                Warning,
                "an operation needs {} MiB at once and {} MiB could not be had, out of memory",
                bytes >> 20, budget_bytes_ >> 20);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (!gated) break;
        entered = gate_.enter();
        if (entered) break;
        // A waiting operation holds no pins.
        unpin(op, op.blocks.size());
        entered = enter_gate();
        if (!entered) {
            if (!op.blocks.empty() && !acquire(op, step.serial)) return CUDA_ERROR_UNKNOWN;
            break;
        }
        if (try_pin_all(op, true)) break;
        gate_.leave();
        entered = false;
    }
    if (op.on_host) Counters::add(counters_.host_operands, op.on_host);
    const bool timed = look && begin_timing(index, step);
    const CUresult result = real();
    Use use;
    if (index != kNoStream) use = streams_.take_place(index);
    if (timed) end_timing(index, step);
    if (entered) {
        gate_.note(use);
        gate_.leave();
    }
    if (op.function && result == CUDA_SUCCESS)
        op.function->launches.fetch_add(1, std::memory_order_relaxed);
    if (!trusted) last_unexplained_op_.store(ops_.load());
    if (index == kNoStream && !op.blocks.empty())
        LIBSWAP_CU_IGNORE(driver_.cuCtxSynchronize());  // nobody could wait for it later
    publish(op, use);
    if (look) note_issued(step, use);
    if (index == kNoStream || capturing()) return result;
    const bool own_thread_only = stream == CU_STREAM_PER_THREAD && look;
    if (wanted_event || own_thread_only || (look && use.place() % kEventEvery == 0))
        (void)streams_.record(index);
    return result;
}

bool Device::is_captured(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) return false;
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Device::keep_for_good(Operation& op) {
    bool any = false;
    for (const BlockIndex index : op.blocks) {
        Block& block = blocks_.block(index);
        block.fresh.store(false);
        if (block.for_good.exchange(true)) continue;
        Counters::add(counters_.for_good_bytes, block.bytes());
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
    if (acquire(op, 0)) publish(op, Use{});
}

void Device::start_tracking() { tracking_.store(true, std::memory_order_relaxed); }

void Device::begin_capture() noexcept { captures_.fetch_add(1, std::memory_order_seq_cst); }

void Device::end_capture() noexcept {
    captures_.fetch_sub(1, std::memory_order_seq_cst);
    worker_->kick();
}

}  // namespace libswap
