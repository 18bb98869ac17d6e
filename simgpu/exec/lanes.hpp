// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>
#include <type_traits>

#include "simgpu/exec/warp.hpp"

/// Loops over a warp's lanes. The files that include this are compiled once for each instruction
/// set, each into a namespace of its own (SIMGPU_ISA), so that no function compiled for a newer CPU
/// is taken by the linker for an older one.
namespace simgpu::exec::SIMGPU_ISA {

#define SIMGPU_INLINE [[gnu::always_inline]] inline

/// How a value of type T lies in a register: anything below 32 bits has 32, of which the upper may
/// be anything when read.
template <class T>
using Stored = std::conditional_t<sizeof(T) < 4, std::uint32_t, T>;

template <class T>
SIMGPU_INLINE const Stored<T>* source(const Warp& w, std::uint32_t slot) {
    return reinterpret_cast<const Stored<T>*>(__builtin_assume_aligned(w.regs + slot, 64));
}

template <class T>
SIMGPU_INLINE Stored<T> stored(T value) {
    if constexpr (sizeof(T) < 4 && std::is_signed_v<T>) {
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    } else {
        return static_cast<Stored<T>>(value);
    }
}

template <class T>
SIMGPU_INLINE void blend(Warp& w, std::uint32_t slot, const Stored<T>* values) {
    auto* out = reinterpret_cast<Stored<T>*>(__builtin_assume_aligned(w.regs + slot, 64));
    const std::uint32_t mask = w.exec;
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) out[l] = ((mask >> l) & 1U) != 0 ? values[l] : out[l];
}

/// Where results go: the register itself, or scratch to be blended in when lanes are off.
template <class T>
SIMGPU_INLINE Stored<T>* result(Warp& w, std::uint32_t slot) {
    std::byte* at = w.exec == kAllLanes ? w.regs + slot : w.scratch;
    return reinterpret_cast<Stored<T>*>(__builtin_assume_aligned(at, 64));
}

template <class T>
SIMGPU_INLINE void finish(Warp& w, std::uint32_t slot) {
    if (w.exec != kAllLanes) blend<T>(w, slot, reinterpret_cast<const Stored<T>*>(w.scratch));
}

SIMGPU_INLINE std::uint32_t predicate(const Warp& w, std::uint32_t slot) {
    return *reinterpret_cast<const std::uint32_t*>(w.regs + slot);
}

SIMGPU_INLINE void set_predicate(Warp& w, std::uint32_t slot, std::uint32_t value) {
    if (slot == kNoSlot) return;
    auto& out = *reinterpret_cast<std::uint32_t*>(w.regs + slot);
    out = (out & ~w.exec) | (value & w.exec);
}

template <class D, class A, class F>
SIMGPU_INLINE void map1(Warp& w, const Inst& i, F f) {
    const auto* a = source<A>(w, i.op[1]);
    auto* d = result<D>(w, i.op[0]);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) d[l] = stored<D>(f(static_cast<A>(a[l])));
    finish<D>(w, i.op[0]);
}

template <class D, class A, class B, class F>
SIMGPU_INLINE void map2(Warp& w, const Inst& i, F f) {
    const auto* a = source<A>(w, i.op[1]);
    const auto* b = source<B>(w, i.op[2]);
    auto* d = result<D>(w, i.op[0]);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l)
        d[l] = stored<D>(f(static_cast<A>(a[l]), static_cast<B>(b[l])));
    finish<D>(w, i.op[0]);
}

template <class D, class A, class B, class C, class F>
SIMGPU_INLINE void map3(Warp& w, const Inst& i, F f) {
    const auto* a = source<A>(w, i.op[1]);
    const auto* b = source<B>(w, i.op[2]);
    const auto* c = source<C>(w, i.op[3]);
    auto* d = result<D>(w, i.op[0]);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) {
        d[l] = stored<D>(f(static_cast<A>(a[l]), static_cast<B>(b[l]), static_cast<C>(c[l])));
    }
    finish<D>(w, i.op[0]);
}

/// Calls `f` for each lane that is on, in order.
template <class F>
SIMGPU_INLINE void each_lane(std::uint32_t mask, F f) {
    while (mask != 0) {
        const int lane = __builtin_ctz(mask);
        mask &= mask - 1;
        f(lane);
    }
}

/// Handlers are stateless functions of a tag's type.
template <class F>
SIMGPU_INLINE Handler for_integers(Type type, F f) {
    switch (type) {
        case Type::S16:
            return f(std::int16_t{});
        case Type::U16:
        case Type::B16:
            return f(std::uint16_t{});
        case Type::S32:
            return f(std::int32_t{});
        case Type::U32:
        case Type::B32:
            return f(std::uint32_t{});
        case Type::S64:
            return f(std::int64_t{});
        case Type::U64:
        case Type::B64:
            return f(std::uint64_t{});
        default:
            return nullptr;
    }
}

template <class F>
SIMGPU_INLINE Handler for_bits(Type type, F f) {
    switch (type_bytes(type)) {
        case 2:
            return f(std::uint16_t{});
        case 4:
            return f(std::uint32_t{});
        case 8:
            return f(std::uint64_t{});
        default:
            return nullptr;
    }
}

Handler find_integer(const OpKey& key);
Handler find_logic(const OpKey& key);
Handler find_float(const OpKey& key);
Handler find_half(const OpKey& key);
Handler find_compare(const OpKey& key);
Handler find_convert(const OpKey& key);
Handler find_move(const OpKey& key);
Handler find_memory(const OpKey& key);
Handler find_atomic(const OpKey& key);
Handler find_warp(const OpKey& key);

}  // namespace simgpu::exec::SIMGPU_ISA
