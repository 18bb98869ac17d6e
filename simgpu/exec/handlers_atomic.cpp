// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>

#include "simgpu/exec/addressing.hpp"
#include "simgpu/exec/math.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// Packed and 16-bit floats, as their bits.
template <bool kBrain, bool kPacked>
struct Small {
    using Bits = std::conditional_t<kPacked, U32, U16>;
    Bits bits;
};

template <class T>
struct BitsOf {
    using type = std::make_unsigned_t<T>;
};
template <>
struct BitsOf<float> {
    using type = U32;
};
template <>
struct BitsOf<double> {
    using type = U64;
};
template <bool kBrain, bool kPacked>
struct BitsOf<Small<kBrain, kPacked>> {
    using type = typename Small<kBrain, kPacked>::Bits;
};

template <bool kBrain>
SIMGPU_INLINE U16 add_small(U16 a, U16 b) {
    if constexpr (kBrain)
        return double_to_bf16(static_cast<double>(bf16_to_float(a)) +
                              static_cast<double>(bf16_to_float(b)));
    return double_to_half(static_cast<double>(half_to_float(a)) +
                          static_cast<double>(half_to_float(b)));
}

template <AtomOp kOp, class T>
SIMGPU_INLINE T combine(T old, T a, T b) {
    if constexpr (kOp == AtomOp::Exch)
        return a;
    else if constexpr (kOp == AtomOp::Cas)
        return old == a ? b : old;
    else if constexpr (kOp == AtomOp::Min)
        return a < old ? a : old;
    else if constexpr (kOp == AtomOp::Max)
        return a > old ? a : old;
    else if constexpr (kOp == AtomOp::And)
        return old & a;
    else if constexpr (kOp == AtomOp::Or)
        return old | a;
    else if constexpr (kOp == AtomOp::Xor)
        return old ^ a;
    else if constexpr (kOp == AtomOp::Inc)
        return old >= a ? T{0} : static_cast<T>(old + 1);
    else if constexpr (kOp == AtomOp::Dec)
        return old == 0 || old > a ? a : static_cast<T>(old - 1);
    else if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                              static_cast<std::make_unsigned_t<T>>(a));
    else
        return old + a;
}

template <AtomOp kOp, bool kBrain, bool kPacked>
SIMGPU_INLINE Small<kBrain, kPacked> combine(Small<kBrain, kPacked> old, Small<kBrain, kPacked> a,
                                             Small<kBrain, kPacked>) {
    static_assert(kOp == AtomOp::Add);
    if constexpr (kPacked) {
        const U32 low = add_small<kBrain>(static_cast<U16>(old.bits), static_cast<U16>(a.bits));
        const U32 high =
            add_small<kBrain>(static_cast<U16>(old.bits >> 16), static_cast<U16>(a.bits >> 16));
        return {(high << 16) | low};
    } else {
        return {add_small<kBrain>(old.bits, a.bits)};
    }
}

/// Other launches and the host may work on the same memory: truly atomic.
template <AtomOp kOp, class T>
SIMGPU_INLINE typename BitsOf<T>::type update(std::byte* at, T a, T b) {
    using B = typename BitsOf<T>::type;
    B* to = reinterpret_cast<B*>(at);
    if constexpr (kOp == AtomOp::Add && std::is_integral_v<T>) {
        return __atomic_fetch_add(to, static_cast<B>(a), __ATOMIC_RELAXED);
    } else {
        B old = __atomic_load_n(to, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(
            to, &old, std::bit_cast<B>(combine<kOp>(std::bit_cast<T>(old), a, b)), true,
            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        }
        return old;
    }
}

/// op: results (count of them), then operands a, then (cas) one b. Lanes go in order.
template <AtomOp kOp, class T>
void atom(Warp& w, const Inst& i) {
    using B = typename BitsOf<T>::type;
    const U64 bytes = i.count * sizeof(T);
    const Space space = static_cast<Space>(i.mode);
    Addresses a;
    if (!gather_addresses(w, i, a, bytes)) return;
    Place places[kLanes];
    U32 global_lanes = 0;
    if (!find_places(w, space, a, bytes, true, places, global_lanes)) return;
    w.launch->counters.global_bytes_loaded += bytes * global_lanes;
    w.launch->counters.global_bytes_stored += bytes * global_lanes;
    for (U32 k = 0; k < i.count; ++k) {
        const auto* value = source<B>(w, i.op[i.count + k]);
        const auto* other = kOp == AtomOp::Cas ? source<B>(w, i.op[i.count * 2]) : value;
        auto* d = i.op[k] == kNoSlot ? nullptr : reinterpret_cast<Stored<B>*>(w.regs + i.op[k]);
        each_lane(w.exec, [&](int l) {
            const T x = std::bit_cast<T>(static_cast<B>(value[l]));
            const T y = std::bit_cast<T>(static_cast<B>(other[l]));
            const B old = update<kOp, T>(element_place<T>(places[l], k), x, y);
            if (d != nullptr) d[l] = old;
        });
    }
}

template <class T>
Handler pick_integer(AtomOp op) {
    switch (op) {
        case AtomOp::Add:
            return &atom<AtomOp::Add, T>;
        case AtomOp::Min:
            return &atom<AtomOp::Min, T>;
        case AtomOp::Max:
            return &atom<AtomOp::Max, T>;
        case AtomOp::Inc:
            return &atom<AtomOp::Inc, T>;
        case AtomOp::Dec:
            return &atom<AtomOp::Dec, T>;
        case AtomOp::And:
            return &atom<AtomOp::And, T>;
        case AtomOp::Or:
            return &atom<AtomOp::Or, T>;
        case AtomOp::Xor:
            return &atom<AtomOp::Xor, T>;
        case AtomOp::Exch:
            return &atom<AtomOp::Exch, T>;
        case AtomOp::Cas:
            return &atom<AtomOp::Cas, T>;
    }
    return nullptr;
}

template <class T>
Handler pick_float(AtomOp op) {
    if (op == AtomOp::Add) return &atom<AtomOp::Add, T>;
    return op == AtomOp::Exch ? &atom<AtomOp::Exch, T> : nullptr;
}

}  // namespace

Handler find_atomic(const OpKey& key) {
    if (key.op != Op::Atom) return nullptr;
    const bool add = key.atom == AtomOp::Add;
    switch (key.type) {
        case Type::F32:
            return pick_float<float>(key.atom);
        case Type::F64:
            return pick_float<double>(key.atom);
        case Type::F16:
            return add ? &atom<AtomOp::Add, Small<false, false>> : nullptr;
        case Type::F16x2:
            return add ? &atom<AtomOp::Add, Small<false, true>> : nullptr;
        case Type::BF16:
            return add ? &atom<AtomOp::Add, Small<true, false>> : nullptr;
        case Type::BF16x2:
            return add ? &atom<AtomOp::Add, Small<true, true>> : nullptr;
        case Type::B16:
            return key.atom == AtomOp::Cas    ? &atom<AtomOp::Cas, U16>
                   : key.atom == AtomOp::Exch ? &atom<AtomOp::Exch, U16>
                                              : nullptr;
        case Type::S32:
            return pick_integer<std::int32_t>(key.atom);
        case Type::U32:
        case Type::B32:
            return pick_integer<U32>(key.atom);
        case Type::S64:
            return pick_integer<std::int64_t>(key.atom);
        case Type::U64:
        case Type::B64:
            return pick_integer<U64>(key.atom);
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
