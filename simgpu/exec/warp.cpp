// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/warp.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace simgpu::exec {

namespace {

/// What a thread may have in local memory, as on a device.
constexpr std::uint32_t kMaxLocalBytes = 512 * 1024;
/// Jumps back that a split may take while others of its warp are ready.
constexpr std::uint32_t kPatience = 2048;

std::uint64_t constant_value(const Warp& warp, const Frame& frame, const Constant& constant) {
    switch (constant.kind) {
        case ConstantKind::Value:
        case ConstantKind::Predicate:
            return constant.bits;
        case ConstantKind::Global:
            return warp.launch->global_addresses[constant.index] + constant.bits;
        case ConstantKind::Shared: {
            const auto found = warp.launch->layout->offsets.find(constant.index);
            return constant.bits +
                   (found == warp.launch->layout->offsets.end() ? 0 : found->second);
        }
        case ConstantKind::Local:
            return constant.bits + frame.local_base;
        case ConstantKind::Function:
            return kFunctionWindow + constant.index;
    }
    return 0;
}

void fill_constants(const Warp& warp, const Frame& frame) {
    for (const Constant& constant : frame.function->constants) {
        const std::uint64_t value = constant_value(warp, frame, constant);
        std::byte* slot = frame.regs + constant.slot;
        if (constant.kind == ConstantKind::Predicate) {
            *reinterpret_cast<std::uint32_t*>(slot) = value != 0 ? kAllLanes : 0;
        } else if (constant.wide) {
            std::fill_n(reinterpret_cast<std::uint64_t*>(slot), kLanes, value);
        } else {
            std::fill_n(reinterpret_cast<std::uint32_t*>(slot), kLanes,
                        static_cast<std::uint32_t>(value));
        }
    }
}

void flush_counts(Warp& warp, std::uint32_t active) {
    const auto lanes = static_cast<std::uint64_t>(std::popcount(active));
    warp.launch->counters.thread_instructions += warp.pending_instructions * lanes;
    warp.launch->counters.flops += warp.pending_flops * lanes;
    warp.launch->warp_instructions += warp.pending_instructions;
    warp.pending_instructions = 0;
    warp.pending_flops = 0;
}

/// Runs the current split until it reaches `stop`, or until `turn`, where it is short, is used up.
template <bool kShort>
void execute(Warp& warp, std::uint64_t& turn) {
    const Inst* code = warp.frame->function->code.data();
    const std::uint32_t lanes = warp.active;
    std::uint64_t instructions = 0;
    std::uint64_t flops = 0;
    while (warp.pc < warp.stop) {
        if constexpr (kShort) {
            if (instructions == turn) break;
        }
        const Inst& inst = code[warp.pc++];
        ++instructions;
        std::uint32_t exec = warp.active;
        if (inst.guard != kNoGuard) {
            std::uint32_t guard = *reinterpret_cast<const std::uint32_t*>(warp.regs + inst.guard);
            if (inst.guard_negated) guard = ~guard;
            exec &= guard;
            if (exec == 0) continue;
        }
        warp.exec = exec;
        flops += inst.flops;
        inst.fn(warp, inst);
    }
    if constexpr (kShort) turn -= instructions;
    warp.pending_instructions = instructions;
    warp.pending_flops = flops;
    flush_counts(warp, lanes);
}

bool goes_before(const Split& a, const Split& b) {
    if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
    return a.pc < b.pc;
}

/// The split to run next, or nullptr. `skip` is one that has had its share.
Split* pick(Warp& warp, SplitState state, const Split* skip) {
    Split* best = nullptr;
    for (Split& split : warp.splits) {
        if (split.state != state || &split == skip) continue;
        if (best == nullptr || goes_before(split, *best)) best = &split;
    }
    return best;
}

/// Makes `chosen` the current split, together with those at the same place.
void resume(Warp& warp, Split chosen) {
    warp.frame = chosen.frame;
    warp.regs = chosen.frame->regs;
    warp.pc = chosen.pc;
    warp.active = 0;
    warp.stop = std::numeric_limits<std::uint32_t>::max();
    warp.has_waiting = false;
    std::size_t kept = 0;
    for (const Split& split : warp.splits) {
        const bool here = split.frame == chosen.frame && split.pc == chosen.pc;
        if (here && split.state != SplitState::AtCtaBarrier) {
            warp.active |= split.mask;
            continue;
        }
        warp.splits[kept++] = split;
        if (split.state == SplitState::AtCtaBarrier) continue;
        warp.has_waiting = warp.has_waiting || split.state == SplitState::AtWarpBarrier;
        if (split.frame == chosen.frame && split.pc > chosen.pc)
            warp.stop = std::min(warp.stop, split.pc);
    }
    warp.splits.resize(kept);
}

void suspend(Warp& warp) {
    if (warp.active == 0) return;
    warp.splits.push_back({warp.frame, warp.pc, warp.active, SplitState::Ready, 0, nullptr});
    warp.active = 0;
}

}  // namespace

bool Launch::fill(CachedPage& page, std::uint64_t va, bool write) {
    const std::uint64_t tag = va / kPageBytes;
    std::byte* bytes = nullptr;
    if (tag == kGridWorkspace / kPageBytes && options->cooperative) {
        if (grid_workspace == nullptr) grid_workspace = std::make_unique<std::byte[]>(kPageBytes);
        bytes = grid_workspace.get();
    } else {
        bytes = memory->page(tag * kPageBytes, write);
    }
    if (bytes == nullptr) return false;
    page = {tag, bytes};
    return true;
}

void Warp::fault(RunStatus status, std::uint64_t address, std::string detail) {
    stop = 0;
    if (launch->status != RunStatus::Ok) return;
    launch->status = status;
    launch->fault_address = address;
    launch->detail = std::move(detail);
}

bool Warp::wait_for_lanes(std::uint32_t) {
    if (forced) {
        forced = false;
        return true;
    }
    splits.push_back({frame, pc - 1, exec, SplitState::AtWarpBarrier, 0, nullptr});
    active &= ~exec;
    stop = 0;
    return false;
}

Frame* enter_function(Warp& warp, const Function& function, Frame* parent, std::uint32_t lanes) {
    std::unique_ptr<Frame> frame;
    for (auto& candidate : warp.free_frames) {
        if (candidate->function == &function) std::swap(candidate, warp.free_frames.back());
    }
    if (!warp.free_frames.empty() && warp.free_frames.back()->function == &function) {
        frame = std::move(warp.free_frames.back());
        warp.free_frames.pop_back();
    } else {
        frame = std::make_unique<Frame>();
        frame->function = &function;
        frame->regs_capacity = function.frame_bytes;
        frame->storage = std::make_unique<std::byte[]>(function.frame_bytes + 64);
        const auto raw = reinterpret_cast<std::uintptr_t>(frame->storage.get());
        frame->regs = frame->storage.get() + ((64 - raw % 64) % 64);
    }
    const std::uint32_t base =
        parent == nullptr ? 0 : (parent->local_base + parent->function->local_bytes + 15) / 16 * 16;
    const std::uint64_t needed = std::uint64_t{base} + function.local_bytes;
    if (needed > kMaxLocalBytes) {
        warp.fault(RunStatus::StackOverflow);
        warp.free_frames.push_back(std::move(frame));
        return nullptr;
    }
    if (needed > warp.local_bytes) {
        warp.local_bytes = static_cast<std::uint32_t>((needed + 15) / 16 * 16);
        warp.local.resize(std::size_t{warp.local_bytes} / 4 * kLanes);
    }
    frame->parent = parent;
    frame->depth = parent == nullptr ? 0 : parent->depth + 1;
    frame->local_base = base;
    frame->lanes = lanes;
    fill_constants(warp, *frame);
    warp.frames.push_back(std::move(frame));
    return warp.frames.back().get();
}

void release_frame(Warp& warp, Frame* frame) {
    while (frame != nullptr && frame->lanes == 0) {
        Frame* parent = frame->parent;
        const auto found = std::find_if(warp.frames.begin(), warp.frames.end(),
                                        [&](const auto& f) { return f.get() == frame; });
        if (found == warp.frames.end()) return;
        warp.free_frames.push_back(std::move(*found));
        warp.frames.erase(found);
        frame = parent;
    }
}

void start_warp(Warp& warp, const Function& kernel, std::uint32_t mask) {
    warp.live = mask;
    warp.active = 0;
    warp.carry = 0;
    warp.splits.clear();
    Frame* frame = enter_function(warp, kernel, nullptr, mask);
    if (frame != nullptr) warp.splits.push_back({frame, 0, mask, SplitState::Ready, 0, nullptr});
}

WarpOutcome run_warp(Warp& warp, std::int64_t budget, std::uint64_t instructions) {
    const bool is_short = instructions != std::numeric_limits<std::uint64_t>::max();
    warp.budget = budget;
    for (;;) {
        const bool had_share = warp.impatient && warp.active != 0;
        suspend(warp);
        if (warp.launch->status != RunStatus::Ok) return WarpOutcome::Faulted;
        if (warp.splits.empty()) return WarpOutcome::Finished;
        if (warp.budget <= 0 || instructions == 0) return WarpOutcome::OutOfBudget;
        Split* next = pick(warp, SplitState::Ready, had_share ? &warp.splits.back() : nullptr);
        if (next == nullptr && had_share) next = &warp.splits.back();
        warp.forced = false;
        if (next == nullptr) {
            // Nothing else can come: whoever waits for lanes goes on with those that are here.
            next = pick(warp, SplitState::AtWarpBarrier, nullptr);
            warp.forced = next != nullptr;
        }
        if (next == nullptr) return WarpOutcome::Blocked;
        // Counted across calls: a lane that spins must not keep the one that holds the lock
        // waiting.
        if (warp.impatient || warp.patience == 0) warp.patience = kPatience;
        warp.impatient = false;
        resume(warp, *next);
        if (is_short) {
            execute<true>(warp, instructions);
        } else {
            execute<false>(warp, instructions);
        }
    }
}

void read_local(const Warp& warp, int lane, std::uint64_t offset, void* into, std::size_t bytes) {
    auto* to = static_cast<std::byte*>(into);
    const auto* words = reinterpret_cast<const std::byte*>(warp.local.data());
    for (std::size_t k = 0; k < bytes; ++k, ++offset) {
        to[k] =
            offset < warp.local_bytes
                ? words[(offset / 4 * kLanes + static_cast<std::uint64_t>(lane)) * 4 + offset % 4]
                : std::byte{0};
    }
}

void write_local(Warp& warp, int lane, std::uint64_t offset, const void* from, std::size_t bytes) {
    const auto* source = static_cast<const std::byte*>(from);
    auto* words = reinterpret_cast<std::byte*>(warp.local.data());
    for (std::size_t k = 0; k < bytes; ++k, ++offset) {
        if (offset < warp.local_bytes)
            words[(offset / 4 * kLanes + static_cast<std::uint64_t>(lane)) * 4 + offset % 4] =
                source[k];
    }
}

}  // namespace simgpu::exec
