// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lanes.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

template <class T>
void mov(Warp& w, const Inst& i) {
    map1<T, T>(w, i, [](T a) { return a; });
}

template <class T>
void broadcast(Warp& w, std::uint32_t slot, T value) {
    auto* d = result<T>(w, slot);
    for (int l = 0; l < kLanes; ++l) d[l] = value;
    finish<T>(w, slot);
}

template <class F>
void per_lane(Warp& w, const Inst& i, F f) {
    auto* d = result<U32>(w, i.op[0]);
    for (int l = 0; l < kLanes; ++l) d[l] = f(static_cast<U32>(l));
    finish<U32>(w, i.op[0]);
}

/// Moves on at each look, so that a kernel may wait for a time to pass.
U64 instruction_clock(const Warp& w) {
    constexpr U64 kLookCycles = 20;
    w.launch->warp_instructions += kLookCycles;
    return w.launch->warp_instructions;
}

U64 global_time(const Warp& w) {
    const RunOptions& options = *w.launch->options;
    const U64 elapsed = instruction_clock(w);
    return options.globaltimer_ns ? options.globaltimer_ns() + elapsed : elapsed;
}

U64 uniform_special(const Warp& w, SpecialRegister which) {
    const LaunchGeometry& geometry = w.launch->geometry;
    const int x = static_cast<int>(SpecialRegister::NtidX);
    const int at = static_cast<int>(which);
    if (at >= x && at < x + 3) return geometry.block[static_cast<std::size_t>(at - x)];
    switch (which) {
        case SpecialRegister::CtaidX:
            return w.cta->id[0];
        case SpecialRegister::CtaidY:
            return w.cta->id[1];
        case SpecialRegister::CtaidZ:
            return w.cta->id[2];
        case SpecialRegister::NctaidX:
            return geometry.grid[0];
        case SpecialRegister::NctaidY:
            return geometry.grid[1];
        case SpecialRegister::NctaidZ:
            return geometry.grid[2];
        case SpecialRegister::WarpId:
            return w.index;
        case SpecialRegister::NwarpId:
            return w.cta->warps.size();
        case SpecialRegister::SmId:
            return w.cta->linear_id % w.launch->options->sm_count;
        case SpecialRegister::NsmId:
            return w.launch->options->sm_count;
        case SpecialRegister::Clock:
        case SpecialRegister::Clock64:
            return instruction_clock(w);
        case SpecialRegister::ClockHi:
            return instruction_clock(w) >> 32;
        case SpecialRegister::GlobalTimer:
        case SpecialRegister::GlobalTimerLo:
            return global_time(w);
        case SpecialRegister::GlobalTimerHi:
            return global_time(w) >> 32;
        case SpecialRegister::DynamicSharedBytes:
            return geometry.dynamic_shared_bytes;
        case SpecialRegister::TotalSharedBytes:
            return w.shared_bytes;
        case SpecialRegister::GridWorkspaceLow:
            return w.launch->options->cooperative ? kGridWorkspace & 0xffffffffU : 0;
        case SpecialRegister::GridWorkspaceHigh:
            return w.launch->options->cooperative ? kGridWorkspace >> 32 : 0;
        case SpecialRegister::One:
            return 1;
        case SpecialRegister::WarpSize:
            return kLanes;
        default:
            return 0;
    }
}

void special(Warp& w, const Inst& i) {
    const SpecialRegister which = static_cast<SpecialRegister>(i.mode);
    switch (which) {
        case SpecialRegister::TidX:
            return per_lane(w, i, [&](U32 l) { return w.tid[0][l]; });
        case SpecialRegister::TidY:
            return per_lane(w, i, [&](U32 l) { return w.tid[1][l]; });
        case SpecialRegister::TidZ:
            return per_lane(w, i, [&](U32 l) { return w.tid[2][l]; });
        case SpecialRegister::LaneId:
            return per_lane(w, i, [](U32 l) { return l; });
        case SpecialRegister::LanemaskEq:
            return per_lane(w, i, [](U32 l) { return 1U << l; });
        case SpecialRegister::LanemaskLt:
            return per_lane(w, i, [](U32 l) { return (1U << l) - 1; });
        case SpecialRegister::LanemaskLe:
            return per_lane(w, i, [](U32 l) { return (2U << l) - 1; });
        case SpecialRegister::LanemaskGe:
            return per_lane(w, i, [](U32 l) { return ~0U << l; });
        case SpecialRegister::LanemaskGt:
            return per_lane(w, i, [](U32 l) { return (~0U << l) << 1; });
        default:
            break;
    }
    const U64 value = uniform_special(w, which);
    if (i.mode2 == 8) return broadcast<U64>(w, i.op[0], value);
    broadcast<U32>(w, i.op[0], static_cast<U32>(value));
}

/// Registers into one: element 0 is the lowest. `mode` is an element's bytes.
template <class D>
void pack(Warp& w, const Inst& i) {
    auto* d = result<D>(w, i.op[0]);
    const U32 bits = i.mode * 8U;
    const D mask = static_cast<D>((U64{1} << bits) - 1);
    alignas(64) D out[kLanes] = {};
    for (U32 k = 0; k < i.count; ++k) {
        const auto* a = source<U32>(w, i.op[k + 1]);
        for (int l = 0; l < kLanes; ++l) out[l] |= (static_cast<D>(a[l]) & mask) << (bits * k);
    }
    for (int l = 0; l < kLanes; ++l) d[l] = out[l];
    finish<D>(w, i.op[0]);
}

template <class S>
void unpack(Warp& w, const Inst& i) {
    alignas(64) S a[kLanes];
    const auto* from = source<S>(w, i.addr);
    for (int l = 0; l < kLanes; ++l) a[l] = from[l];
    const U32 bits = i.mode * 8U;
    const U32 mask = static_cast<U32>((U64{1} << bits) - 1);
    for (U32 k = 0; k < i.count; ++k) {
        if (i.op[k] == kNoSlot) continue;
        auto* d = result<U32>(w, i.op[k]);
        for (int l = 0; l < kLanes; ++l) d[l] = static_cast<U32>(a[l] >> (bits * k)) & mask;
        finish<U32>(w, i.op[k]);
    }
}

U64 window(Space space) {
    switch (space) {
        case Space::Shared:
            return kSharedWindow;
        case Space::Local:
            return kLocalWindow;
        case Space::Param:
            return kParamWindow;
        default:
            return 0;
    }
}

void cvta(Warp& w, const Inst& i) {
    const U64 base = window(static_cast<Space>(i.mode));
    map1<U64, U64>(w, i, [base](U64 a) { return a + base; });
}
void cvta_to(Warp& w, const Inst& i) {
    const U64 base = window(static_cast<Space>(i.mode));
    map1<U64, U64>(w, i, [base](U64 a) { return a - base; });
}

void isspacep(Warp& w, const Inst& i) {
    const U64 base = window(static_cast<Space>(i.mode));
    const auto* a = source<U64>(w, i.op[1]);
    U32 mask = 0;
    for (int l = 0; l < kLanes; ++l) mask |= static_cast<U32>((a[l] & kWindowMask) == base) << l;
    set_predicate(w, i.op[0], mask);
}

}  // namespace

Handler find_move(const OpKey& key) {
    const bool wide = type_bytes(key.type) == 8;
    switch (key.op) {
        case Op::Mov:
            return wide ? &mov<U64> : &mov<U32>;
        case Op::Special:
            return &special;
        case Op::Pack:
            return wide ? &pack<U64> : &pack<U32>;
        case Op::Unpack:
            return wide ? &unpack<U64> : &unpack<U32>;
        case Op::Cvta:
            return &cvta;
        case Op::CvtaTo:
            return &cvta_to;
        case Op::Isspacep:
            return &isspacep;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
