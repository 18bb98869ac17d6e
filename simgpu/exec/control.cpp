// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>

#include "simgpu/exec/warp.hpp"

namespace simgpu::exec {

namespace {

std::uint32_t first_value(const Warp& w, std::uint32_t slot) {
    return reinterpret_cast<const std::uint32_t*>(w.regs + slot)[std::countr_zero(w.exec)];
}

void leave(Warp& w, std::uint32_t lanes) {
    w.active &= ~lanes;
    w.stop = 0;
}

void jump(Warp& w, std::uint32_t target) {
    if (target < w.pc) {
        --w.budget;
        --w.patience;
        if (w.budget <= 0 || w.has_waiting) w.stop = 0;
        if (w.patience == 0) {
            w.impatient = true;
            w.stop = 0;
        }
    }
    w.pc = target;
}

void bra(Warp& w, const Inst& i) {
    if (w.exec == w.active) return jump(w, i.addr);
    if (i.addr < w.pc) --w.budget;
    w.splits.push_back({w.frame, i.addr, w.exec, SplitState::Ready, 0, nullptr});
    leave(w, w.exec);
}

void brx(Warp& w, const Inst& i) {
    const auto& table = w.frame->function->branch_tables[static_cast<std::size_t>(i.imm)];
    const auto* index = reinterpret_cast<const std::uint32_t*>(w.regs + i.op[0]);
    std::uint32_t left = w.exec;
    while (left != 0) {
        const std::uint32_t at = index[std::countr_zero(left)];
        std::uint32_t same = 0;
        for (int l = 0; l < kLanes; ++l) same |= static_cast<std::uint32_t>(index[l] == at) << l;
        same &= left;
        left &= ~same;
        if (at >= table.size())
            return w.fault(RunStatus::Trap, 0, "brx.idx with an index outside its table");
        if (same == w.active) return jump(w, table[at]);
        if (table[at] < w.pc) --w.budget;
        w.splits.push_back({w.frame, table[at], same, SplitState::Ready, 0, nullptr});
        leave(w, same);
    }
}

void copy_variables(Warp& w, std::uint32_t lanes, const Frame& from,
                    const std::vector<FrameParam>& source, const Frame& to,
                    const std::vector<FrameParam>& target) {
    const std::size_t count = std::min(source.size(), target.size());
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t words = (std::min(source[k].bytes, target[k].bytes) + 3) / 4;
        const std::uint32_t* s =
            w.local.data() + (from.local_base + source[k].offset_bytes) / 4 * kLanes;
        std::uint32_t* t = w.local.data() + (to.local_base + target[k].offset_bytes) / 4 * kLanes;
        for (std::size_t word = 0; word < words; ++word) {
            for (int l = 0; l < kLanes; ++l) {
                if (((lanes >> l) & 1U) != 0)
                    t[word * kLanes + static_cast<std::size_t>(l)] =
                        s[word * kLanes + static_cast<std::size_t>(l)];
            }
        }
    }
}

void enter(Warp& w, const CallSite& site, std::uint32_t function, std::uint32_t lanes) {
    const Function& callee = w.launch->program->functions[function];
    Frame* caller = w.frame;
    Frame* frame = enter_function(w, callee, caller, lanes);
    if (frame == nullptr) return;
    frame->site = &site;
    frame->return_pc = w.pc;
    copy_variables(w, lanes, *caller, site.arguments, *frame, callee.params);
    w.splits.push_back({frame, 0, lanes, SplitState::Ready, 0, nullptr});
    leave(w, lanes);
}

void call_indirectly(Warp& w, const CallSite& site) {
    const auto* target = reinterpret_cast<const std::uint64_t*>(w.regs + site.slot);
    std::uint32_t left = w.exec;
    while (left != 0) {
        const std::uint64_t address = target[std::countr_zero(left)];
        std::uint32_t same = 0;
        for (int l = 0; l < kLanes; ++l)
            same |= static_cast<std::uint32_t>(target[l] == address) << l;
        same &= left;
        left &= ~same;
        const std::uint64_t index = address - kFunctionWindow;
        const auto& functions = w.launch->program->functions;
        if (index >= functions.size() || !functions[index].defined || functions[index].entry)
            return w.fault(RunStatus::IllegalAddress, address);
        enter(w, site, static_cast<std::uint32_t>(index), same);
    }
}

void call(Warp& w, const Inst& i) {
    const CallSite& site = w.frame->function->calls[static_cast<std::size_t>(i.imm)];
    if (site.callee == Callee::Function) return enter(w, site, site.function, w.exec);
    if (site.callee == Callee::Indirect) return call_indirectly(w, site);
    call_builtin(w, site);
}

void exit_lanes(Warp& w, const Inst&) {
    const std::uint32_t lanes = w.exec;
    w.live &= ~lanes;
    w.cta->live_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
    for (Frame* frame = w.frame; frame != nullptr; frame = frame->parent) frame->lanes &= ~lanes;
    Frame* frame = w.frame;
    leave(w, lanes);
    release_frame(w, frame);
}

void ret(Warp& w, const Inst& i) {
    Frame* frame = w.frame;
    if (frame->parent == nullptr) return exit_lanes(w, i);
    const std::uint32_t lanes = w.exec;
    copy_variables(w, lanes, *frame, frame->function->returns, *frame->parent,
                   frame->site->results);
    w.splits.push_back({frame->parent, frame->return_pc, lanes, SplitState::Ready, 0, nullptr});
    frame->lanes &= ~lanes;
    leave(w, lanes);
    if (frame->lanes == 0) release_frame(w, frame);
}

void trap(Warp& w, const Inst&) { w.fault(RunStatus::Trap, 0, "trap instruction"); }

/// Counts the lanes in; a warp that is whole counts as 32, as named barriers are sized in warps.
CtaBarrier& arrive(Warp& w, const Inst& i, std::uint32_t& id) {
    id = first_value(w, i.op[0]) & 15U;
    CtaBarrier& barrier = w.cta->barriers[id];
    const std::uint32_t expected = i.op[1] == kNoSlot ? 0 : first_value(w, i.op[1]);
    if (expected != 0) barrier.expected = expected;
    barrier.arrived +=
        expected != 0 && w.exec == w.live ? 32U : static_cast<std::uint32_t>(std::popcount(w.exec));
    return barrier;
}

void wait_at(Warp& w, std::uint32_t id, const Inst* reduction) {
    w.splits.push_back({w.frame, w.pc, w.exec, SplitState::AtCtaBarrier,
                        static_cast<std::uint8_t>(id), reduction});
    leave(w, w.exec);
}

void barrier(Warp& w, const Inst& i) {
    std::uint32_t id = 0;
    arrive(w, i, id);
    wait_at(w, id, nullptr);
}

void barrier_arrive(Warp& w, const Inst& i) {
    std::uint32_t id = 0;
    arrive(w, i, id);
}

void barrier_reduce(Warp& w, const Inst& i) {
    std::uint32_t id = 0;
    CtaBarrier& barrier = arrive(w, i, id);
    std::uint32_t p = *reinterpret_cast<const std::uint32_t*>(w.regs + i.op[3]);
    if (i.mode2 != 0) p = ~p;
    barrier.predicates_true += static_cast<std::uint32_t>(std::popcount(p & w.exec));
    barrier.predicates += static_cast<std::uint32_t>(std::popcount(w.exec));
    wait_at(w, id, &i);
}

void nothing(Warp&, const Inst&) {}

}  // namespace

Handler find_control_handler(const OpKey& key) {
    switch (key.op) {
        case Op::Bra:
            return &bra;
        case Op::Brx:
            return &brx;
        case Op::Call:
            return &call;
        case Op::Ret:
            return &ret;
        case Op::Exit:
            return &exit_lanes;
        case Op::Trap:
            return &trap;
        case Op::Barrier:
            return &barrier;
        case Op::BarrierArrive:
            return &barrier_arrive;
        case Op::BarrierReduce:
            return &barrier_reduce;
        case Op::Nothing:
            return &nothing;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec
