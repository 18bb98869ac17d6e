// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lanes.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;

/// Lanes that take part: those here that the mask names. False if they have to wait for others.
SIMGPU_INLINE bool members(Warp& w, std::uint32_t slot, U32& mask) {
    mask = w.exec;
    if (slot == kNoSlot) return true;
    const U32 named = source<U32>(w, slot)[__builtin_ctz(w.exec)];
    if ((named & w.live & ~w.exec) != 0 && !w.wait_for_lanes(named)) return false;
    mask = w.exec & named;
    return true;
}

template <ShflMode kMode>
void shfl(Warp& w, const Inst& i) {
    U32 mask = 0;
    if (!members(w, i.op[5], mask)) return;
    const auto* a = source<U32>(w, i.op[2]);
    const auto* b = source<U32>(w, i.op[3]);
    const auto* c = source<U32>(w, i.op[4]);
    alignas(64) U32 out[kLanes];
    U32 valid = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int distance = static_cast<int>(b[lane] & 0x1fU);
        const int segment = static_cast<int>((c[lane] >> 8) & 0x1fU);
        const int clamp = static_cast<int>(c[lane] & 0x1fU);
        const int last = (lane & segment) | (clamp & ~segment & 31);
        int from = 0;
        bool ok = false;
        if constexpr (kMode == ShflMode::Up) {
            from = lane - distance;
            ok = from >= last;
        } else if constexpr (kMode == ShflMode::Down) {
            from = lane + distance;
            ok = from <= last;
        } else if constexpr (kMode == ShflMode::Bfly) {
            from = lane ^ distance;
            ok = from <= last;
        } else {
            from = (lane & segment) | (distance & ~segment & 31);
            ok = from <= last;
        }
        out[lane] = a[ok ? from : lane];
        valid |= static_cast<U32>(ok) << lane;
    }
    if (i.op[0] != kNoSlot) blend<U32>(w, i.op[0], out);
    set_predicate(w, i.op[1], valid);
}

template <Op kOp>
void vote(Warp& w, const Inst& i) {
    U32 mask = 0;
    if (!members(w, i.op[2], mask)) return;
    const U32 p = (i.mode2 != 0 ? ~predicate(w, i.op[1]) : predicate(w, i.op[1])) & mask;
    if constexpr (kOp == Op::VoteBallot) {
        auto* d = result<U32>(w, i.op[0]);
        for (int l = 0; l < kLanes; ++l) d[l] = p;
        finish<U32>(w, i.op[0]);
    } else {
        const bool yes = kOp == Op::VoteAll   ? p == mask
                         : kOp == Op::VoteAny ? p != 0
                                              : p == mask || p == 0;
        set_predicate(w, i.op[0], yes ? ~0U : 0U);
    }
}

template <class T, bool kAll>
void match(Warp& w, const Inst& i) {
    U32 mask = 0;
    if (!members(w, i.op[3], mask)) return;
    const auto* a = source<T>(w, i.op[2]);
    alignas(64) U32 out[kLanes] = {};
    bool all = true;
    each_lane(mask, [&](int l) {
        U32 same = 0;
        each_lane(mask, [&](int other) { same |= static_cast<U32>(a[other] == a[l]) << other; });
        out[l] = same;
        all = all && same == mask;
    });
    if constexpr (kAll) {
        for (U32& lane : out) lane = all ? mask : 0;
        set_predicate(w, i.op[1], all ? ~0U : 0U);
    }
    if (i.op[0] != kNoSlot) blend<U32>(w, i.op[0], out);
}

void activemask(Warp& w, const Inst& i) {
    auto* d = result<U32>(w, i.op[0]);
    for (int l = 0; l < kLanes; ++l) d[l] = w.exec;
    finish<U32>(w, i.op[0]);
}

template <class T>
SIMGPU_INLINE T reduce(AtomOp op, T x, T y) {
    switch (op) {
        case AtomOp::Add:
            return static_cast<T>(static_cast<U32>(x) + static_cast<U32>(y));
        case AtomOp::Min:
            return x < y ? x : y;
        case AtomOp::Max:
            return x > y ? x : y;
        case AtomOp::And:
            return x & y;
        case AtomOp::Or:
            return x | y;
        default:
            return x ^ y;
    }
}

template <class T>
void redux(Warp& w, const Inst& i) {
    U32 mask = 0;
    if (!members(w, i.op[2], mask) || mask == 0) return;
    const auto* a = source<T>(w, i.op[1]);
    const AtomOp op = static_cast<AtomOp>(i.mode);
    const int first = __builtin_ctz(mask);
    T sum = a[first];
    each_lane(mask & (mask - 1), [&](int l) { sum = reduce<T>(op, sum, a[l]); });
    auto* d = result<T>(w, i.op[0]);
    for (int l = 0; l < kLanes; ++l) d[l] = sum;
    finish<T>(w, i.op[0]);
}

void elect(Warp& w, const Inst& i) {
    U32 mask = 0;
    if (!members(w, i.op[2], mask) || mask == 0) return;
    const U32 leader = static_cast<U32>(__builtin_ctz(mask));
    if (i.op[0] != kNoSlot) {
        auto* d = result<U32>(w, i.op[0]);
        for (int l = 0; l < kLanes; ++l) d[l] = leader;
        finish<U32>(w, i.op[0]);
    }
    set_predicate(w, i.op[1], 1U << leader);
}

void warp_barrier(Warp& w, const Inst& i) {
    U32 mask = 0;
    members(w, i.op[0], mask);
}

Handler find_shfl(const OpKey& key) {
    switch (static_cast<ShflMode>(key.compare)) {
        case ShflMode::Up:
            return &shfl<ShflMode::Up>;
        case ShflMode::Down:
            return &shfl<ShflMode::Down>;
        case ShflMode::Bfly:
            return &shfl<ShflMode::Bfly>;
        case ShflMode::Idx:
            return &shfl<ShflMode::Idx>;
    }
    return nullptr;
}

}  // namespace

Handler find_warp(const OpKey& key) {
    const bool wide = type_bytes(key.type) == 8;
    switch (key.op) {
        case Op::Shfl:
            return find_shfl(key);
        case Op::VoteAll:
            return &vote<Op::VoteAll>;
        case Op::VoteAny:
            return &vote<Op::VoteAny>;
        case Op::VoteUni:
            return &vote<Op::VoteUni>;
        case Op::VoteBallot:
            return &vote<Op::VoteBallot>;
        case Op::MatchAny:
            return wide ? &match<std::uint64_t, false> : &match<U32, false>;
        case Op::MatchAll:
            return wide ? &match<std::uint64_t, true> : &match<U32, true>;
        case Op::Activemask:
            return &activemask;
        case Op::Redux:
            if (key.type == Type::S32) return &redux<std::int32_t>;
            return type_bytes(key.type) == 4 && !is_float(key.type) ? &redux<U32> : nullptr;
        case Op::Elect:
            return &elect;
        case Op::WarpBarrier:
            return &warp_barrier;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
