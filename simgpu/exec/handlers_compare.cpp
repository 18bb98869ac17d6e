// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>

#include "simgpu/exec/lanes.hpp"
#include "simgpu/exec/math.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;

template <bool kFlush, class T>
SIMGPU_INLINE T flushed(T a) {
    if constexpr (kFlush && std::is_same_v<T, float>) {
        const U32 bits = std::bit_cast<U32>(a);
        return std::bit_cast<float>((bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits);
    } else {
        return a;
    }
}

template <Compare kCompare, class T>
SIMGPU_INLINE bool compare(T a, T b) {
    const bool unordered = a != a || b != b;
    switch (kCompare) {
        case Compare::Eq:
            return a == b;
        case Compare::Ne:
            return std::is_floating_point_v<T> ? !unordered && a != b : a != b;
        case Compare::Lt:
            return a < b;
        case Compare::Le:
            return a <= b;
        case Compare::Gt:
            return a > b;
        case Compare::Ge:
            return a >= b;
        case Compare::Equ:
            return unordered || a == b;
        case Compare::Neu:
            return a != b;
        case Compare::Ltu:
            return unordered || a < b;
        case Compare::Leu:
            return unordered || a <= b;
        case Compare::Gtu:
            return unordered || a > b;
        case Compare::Geu:
            return unordered || a >= b;
        case Compare::Num:
            return !unordered;
        case Compare::Nan:
            return unordered;
    }
    return false;
}

/// 16-bit floats compare as floats.
struct HalfBits {
    std::uint16_t bits;
};
struct BrainBits {
    std::uint16_t bits;
};

template <class T>
struct Read {
    using Register = T;
    SIMGPU_INLINE static T value(Stored<T> v) { return static_cast<T>(v); }
};
template <>
struct Read<HalfBits> {
    using Register = std::uint16_t;
    SIMGPU_INLINE static float value(U32 v) { return half_to_float(static_cast<std::uint16_t>(v)); }
};
template <>
struct Read<BrainBits> {
    using Register = std::uint16_t;
    SIMGPU_INLINE static float value(U32 v) { return bf16_to_float(static_cast<std::uint16_t>(v)); }
};

template <Compare kCompare, class T, bool kFtz>
SIMGPU_INLINE U32 compare_lanes(const Warp& w, const Inst& i) {
    using R = typename Read<T>::Register;
    const auto* a = source<R>(w, i.op[2]);
    const auto* b = source<R>(w, i.op[3]);
    U32 mask = 0;
    for (int l = 0; l < kLanes; ++l) {
        mask |= static_cast<U32>(compare<kCompare>(flushed<kFtz>(Read<T>::value(a[l])),
                                                   flushed<kFtz>(Read<T>::value(b[l]))))
                << l;
    }
    return mask;
}

SIMGPU_INLINE U32 combine(Combine how, U32 a, U32 b) {
    switch (how) {
        case Combine::None:
            return a;
        case Combine::And:
            return a & b;
        case Combine::Or:
            return a | b;
        case Combine::Xor:
            return a ^ b;
    }
    return a;
}

SIMGPU_INLINE U32 third_predicate(const Warp& w, const Inst& i) {
    if (i.op[4] == kNoSlot) return 0;
    const U32 p = predicate(w, i.op[4]);
    return i.mode2 != 0 ? ~p : p;
}

/// op: result, its complement's, a, b, predicate to combine with.
template <Compare kCompare, class T, bool kFtz>
void setp(Warp& w, const Inst& i) {
    const U32 mask = compare_lanes<kCompare, T, kFtz>(w, i);
    const Combine how = static_cast<Combine>(i.mode);
    if (how == Combine::None && i.op[1] == kNoSlot) return set_predicate(w, i.op[0], mask);
    const U32 other = third_predicate(w, i);
    set_predicate(w, i.op[0], combine(how, mask, other));
    set_predicate(w, i.op[1], combine(how, ~mask, other));
}

/// set: all ones or 1.0 where true.
template <Compare kCompare, class T, bool kFtz>
void set(Warp& w, const Inst& i) {
    const U32 mask = combine(static_cast<Combine>(i.mode), compare_lanes<kCompare, T, kFtz>(w, i),
                             third_predicate(w, i));
    const U32 yes = i.mode3 == 0   ? ~0U
                    : i.mode3 == 1 ? 0x3f800000U
                    : i.mode3 == 2 ? 0x3c00U
                                   : 0x3f80U;
    auto* d = result<U32>(w, i.op[0]);
    for (int l = 0; l < kLanes; ++l) d[l] = ((mask >> l) & 1U) != 0 ? yes : 0U;
    finish<U32>(w, i.op[0]);
}

template <Compare kCompare, class T>
Handler pick(const OpKey& key) {
    const bool is_set = key.op == Op::Set;
    if constexpr (std::is_same_v<T, float>) {
        if (key.ftz) return is_set ? &set<kCompare, T, true> : &setp<kCompare, T, true>;
    }
    return is_set ? &set<kCompare, T, false> : &setp<kCompare, T, false>;
}

template <class T>
Handler by_order(const OpKey& key) {
    switch (key.compare) {
        case Compare::Eq:
            return pick<Compare::Eq, T>(key);
        case Compare::Ne:
            return pick<Compare::Ne, T>(key);
        case Compare::Lt:
            return pick<Compare::Lt, T>(key);
        case Compare::Le:
            return pick<Compare::Le, T>(key);
        case Compare::Gt:
            return pick<Compare::Gt, T>(key);
        case Compare::Ge:
            return pick<Compare::Ge, T>(key);
        default:
            return nullptr;
    }
}

template <class T>
Handler by_float_order(const OpKey& key) {
    switch (key.compare) {
        case Compare::Equ:
            return pick<Compare::Equ, T>(key);
        case Compare::Neu:
            return pick<Compare::Neu, T>(key);
        case Compare::Ltu:
            return pick<Compare::Ltu, T>(key);
        case Compare::Leu:
            return pick<Compare::Leu, T>(key);
        case Compare::Gtu:
            return pick<Compare::Gtu, T>(key);
        case Compare::Geu:
            return pick<Compare::Geu, T>(key);
        case Compare::Num:
            return pick<Compare::Num, T>(key);
        case Compare::Nan:
            return pick<Compare::Nan, T>(key);
        default:
            return by_order<T>(key);
    }
}

Handler find_setp(const OpKey& key) {
    const Type type = key.op == Op::Set ? key.from : key.type;
    switch (type) {
        case Type::F32:
            return by_float_order<float>(key);
        case Type::F64:
            return by_float_order<double>(key);
        case Type::F16:
            return by_float_order<HalfBits>(key);
        case Type::BF16:
            return by_float_order<BrainBits>(key);
        default:
            return for_integers(type, [&](auto tag) { return by_order<decltype(tag)>(key); });
    }
}

template <class T>
void selp(Warp& w, const Inst& i) {
    const auto* a = source<T>(w, i.op[1]);
    const auto* b = source<T>(w, i.op[2]);
    const U32 p = i.mode2 != 0 ? ~predicate(w, i.op[3]) : predicate(w, i.op[3]);
    auto* d = result<T>(w, i.op[0]);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) d[l] = ((p >> l) & 1U) != 0 ? a[l] : b[l];
    finish<T>(w, i.op[0]);
}

template <class T, bool kFloat, bool kFtz>
void slct(Warp& w, const Inst& i) {
    using C = std::conditional_t<kFloat, float, std::int32_t>;
    map3<T, T, T, C>(w, i, [](T a, T b, C c) { return flushed<kFtz>(c) >= 0 ? a : b; });
}

Handler find_slct(const OpKey& key) {
    const bool is_float = key.from == Type::F32;
    return for_bits(key.type, [&](auto tag) -> Handler {
        using T = decltype(tag);
        if (!is_float) return &slct<T, false, false>;
        return key.ftz ? &slct<T, true, true> : &slct<T, true, false>;
    });
}

void mov_predicate(Warp& w, const Inst& i) { set_predicate(w, i.op[0], predicate(w, i.op[1])); }
void not_predicate(Warp& w, const Inst& i) { set_predicate(w, i.op[0], ~predicate(w, i.op[1])); }
void and_predicate(Warp& w, const Inst& i) {
    set_predicate(w, i.op[0], predicate(w, i.op[1]) & predicate(w, i.op[2]));
}
void or_predicate(Warp& w, const Inst& i) {
    set_predicate(w, i.op[0], predicate(w, i.op[1]) | predicate(w, i.op[2]));
}
void xor_predicate(Warp& w, const Inst& i) {
    set_predicate(w, i.op[0], predicate(w, i.op[1]) ^ predicate(w, i.op[2]));
}
void select_predicate(Warp& w, const Inst& i) {
    const U32 p = i.mode2 != 0 ? ~predicate(w, i.op[3]) : predicate(w, i.op[3]);
    set_predicate(w, i.op[0], (predicate(w, i.op[1]) & p) | (predicate(w, i.op[2]) & ~p));
}

}  // namespace

Handler find_compare(const OpKey& key) {
    switch (key.op) {
        case Op::Setp:
        case Op::Set:
            return find_setp(key);
        case Op::Selp:
            return for_bits(key.type, [](auto tag) -> Handler { return &selp<decltype(tag)>; });
        case Op::Slct:
            return find_slct(key);
        case Op::MovPred:
            return &mov_predicate;
        case Op::NotPred:
            return &not_predicate;
        case Op::AndPred:
            return &and_predicate;
        case Op::OrPred:
            return &or_predicate;
        case Op::XorPred:
            return &xor_predicate;
        case Op::SelpPred:
            return &select_predicate;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
