// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lanes.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;
using U64 = std::uint64_t;

template <class T>
constexpr U32 kBits = sizeof(T) * 8;

template <class T>
struct Logic {
    static void and_(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return static_cast<T>(a & b); });
    }
    static void or_(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return static_cast<T>(a | b); });
    }
    static void xor_(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return static_cast<T>(a ^ b); });
    }
    static void not_(Warp& w, const Inst& i) {
        map1<T, T>(w, i, [](T a) { return static_cast<T>(~a); });
    }
    static void cnot(Warp& w, const Inst& i) {
        map1<T, T>(w, i, [](T a) { return static_cast<T>(a == 0 ? 1 : 0); });
    }
    static void shl(Warp& w, const Inst& i) {
        map2<T, T, U32>(w, i, [](T a, U32 n) {
            return static_cast<T>(n >= kBits<T> ? T{0} : static_cast<T>(a << (n & (kBits<T> - 1))));
        });
    }
};

template <class T>
void shift_right(Warp& w, const Inst& i) {
    map2<T, T, U32>(w, i, [](T a, U32 n) {
        if constexpr (std::is_signed_v<T>) {
            return static_cast<T>(a >> (n >= kBits<T> ? kBits<T> - 1 : n));
        } else {
            return static_cast<T>(n >= kBits<T> ? T{0} : static_cast<T>(a >> (n & (kBits<T> - 1))));
        }
    });
}

template <bool kLeft, bool kWrap>
void funnel(Warp& w, const Inst& i) {
    map3<U32, U32, U32, U32>(w, i, [](U32 lo, U32 hi, U32 n) {
        const U32 shift = kWrap ? n & 31U : (n > 32U ? 32U : n);
        const U64 both = (static_cast<U64>(hi) << 32) | lo;
        return kLeft ? static_cast<U32>((both << shift) >> 32) : static_cast<U32>(both >> shift);
    });
}

/// lop3 through the sums of products its table asks for: the table is the same for all lanes.
void lop3(Warp& w, const Inst& i) {
    const U32 table = static_cast<U32>(i.imm);
    const auto* a = source<U32>(w, i.op[1]);
    const auto* b = source<U32>(w, i.op[2]);
    const auto* c = source<U32>(w, i.op[3]);
    alignas(64) U32 sum[kLanes] = {};
    for (U32 row = 0; row < 8; ++row) {
        if (((table >> row) & 1U) == 0) continue;
        const U32 na = (row & 4U) != 0 ? 0 : ~0U;
        const U32 nb = (row & 2U) != 0 ? 0 : ~0U;
        const U32 nc = (row & 1U) != 0 ? 0 : ~0U;
        for (int l = 0; l < kLanes; ++l) sum[l] |= (a[l] ^ na) & (b[l] ^ nb) & (c[l] ^ nc);
    }
    blend<U32>(w, i.op[0], sum);
}

template <class T>
SIMGPU_INLINE U32 leading_zeros(T a) {
    if (a == 0) return kBits<T>;
    if constexpr (sizeof(T) == 8) return static_cast<U32>(__builtin_clzll(a));
    return static_cast<U32>(__builtin_clz(static_cast<U32>(a)));
}

/// Position of the highest bit that differs from the sign.
template <class T, bool kShift>
SIMGPU_INLINE U32 find_bit(T value) {
    using U = std::make_unsigned_t<T>;
    U a = static_cast<U>(value);
    if constexpr (std::is_signed_v<T>) {
        if (value < 0) a = static_cast<U>(~a);
    }
    if (a == 0) return ~0U;
    const U32 zeros = leading_zeros<U>(a);
    return kShift ? zeros : kBits<T> - 1 - zeros;
}

template <class T>
SIMGPU_INLINE T reverse(T a) {
    T out = 0;
    for (U32 k = 0; k < kBits<T>; ++k) out = static_cast<T>((out << 1) | ((a >> k) & 1U));
    return out;
}

template <class T>
SIMGPU_INLINE T extract_field(T value, U32 from, U32 length) {
    using U = std::make_unsigned_t<T>;
    const U32 pos = from & 0xffU;
    const U32 len = length & 0xffU;
    const U a = static_cast<U>(value);
    const U32 last = pos + len - 1 < kBits<T> - 1 ? pos + len - 1 : kBits<T> - 1;
    const bool sign = std::is_signed_v<T> && len != 0 && ((a >> last) & 1U) != 0;
    const U shifted = pos >= kBits<T> ? U{0} : static_cast<U>(a >> pos);
    const U32 real = pos >= kBits<T> ? 0 : (kBits<T> - pos < len ? kBits<T> - pos : len);
    const U mask = real == kBits<T> ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << real) - 1);
    return static_cast<T>((shifted & mask) | (sign ? static_cast<U>(~mask) : U{0}));
}

template <class T>
SIMGPU_INLINE T insert_field(T a, T b, U32 from, U32 length) {
    const U32 pos = from & 0xffU;
    const U32 len = length & 0xffU;
    if (pos >= kBits<T> || len == 0) return b;
    const T ones = len >= kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << len) - 1);
    const T mask = static_cast<T>(ones << pos);
    return static_cast<T>((b & ~mask) | ((a << pos) & mask));
}

template <class T>
void bfe(Warp& w, const Inst& i) {
    map3<T, T, U32, U32>(w, i, [](T a, U32 b, U32 c) { return extract_field<T>(a, b, c); });
}

template <class T>
void bfi(Warp& w, const Inst& i) {
    const auto* a = source<T>(w, i.op[1]);
    const auto* b = source<T>(w, i.op[2]);
    const auto* c = source<U32>(w, i.op[3]);
    const auto* e = source<U32>(w, i.op[4]);
    auto* d = result<T>(w, i.op[0]);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) d[l] = insert_field<T>(a[l], b[l], c[l], e[l]);
    finish<T>(w, i.op[0]);
}

/// bmsk: `wrap` modes take position and width modulo 32, clamp ones limit them.
template <bool kWrap>
void bmsk(Warp& w, const Inst& i) {
    map2<U32, U32, U32>(w, i, [](U32 a, U32 b) {
        const U32 pos = kWrap ? a & 31U : a;
        const U32 len = kWrap ? b & 31U : (b > 32U ? 32U : b);
        if (pos >= 32U || len == 0) return U32{0};
        const U32 ones = len >= 32U ? ~0U : (1U << len) - 1;
        return ones << pos;
    });
}

template <bool kSigned, bool kWrap>
void szext(Warp& w, const Inst& i) {
    map2<U32, U32, U32>(w, i, [](U32 a, U32 b) {
        const U32 len = kWrap ? b & 31U : b;
        if (len >= 32U) return a;
        if (len == 0) return U32{0};
        const U32 up = a << (32U - len);
        return kSigned ? static_cast<U32>(static_cast<S32>(up) >> (32U - len)) : up >> (32U - len);
    });
}

/// fns: the n-th set bit from `base`, upwards or downwards.
SIMGPU_INLINE U32 nth_set(U32 mask, U32 base, S32 offset) {
    base &= 31U;
    if (offset == 0) return ((mask >> base) & 1U) != 0 ? base : ~0U;
    const S32 step = offset > 0 ? 1 : -1;
    S32 left = offset > 0 ? offset : -offset;
    for (S32 at = static_cast<S32>(base); at >= 0 && at < 32; at += step) {
        if (((mask >> at) & 1U) != 0 && --left == 0) return static_cast<U32>(at);
    }
    return ~0U;
}

void fns(Warp& w, const Inst& i) {
    map3<U32, U32, U32, S32>(w, i, [](U32 a, U32 b, S32 c) { return nth_set(a, b, c); });
}

/// The eight bytes of {b, a} that a selector's four nibbles name; bit 3 repeats a byte's sign.
SIMGPU_INLINE U32 permute(U32 a, U32 b, U32 selector) {
    const U64 both = (static_cast<U64>(b) << 32) | a;
    U32 out = 0;
    for (U32 k = 0; k < 4; ++k) {
        const U32 nibble = (selector >> (4 * k)) & 0xfU;
        U32 byte = static_cast<U32>(both >> (8 * (nibble & 7U))) & 0xffU;
        if ((nibble & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xffU : 0;
        out |= byte << (8 * k);
    }
    return out;
}

/// Selectors of the named modes, by the low two bits of the third operand.
constexpr U32 kPermuteModes[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
};

void prmt(Warp& w, const Inst& i) {
    map3<U32, U32, U32, U32>(w, i, [](U32 a, U32 b, U32 c) { return permute(a, b, c); });
}
void prmt_mode(Warp& w, const Inst& i) {
    const U32* modes = kPermuteModes[i.mode - 1];
    map3<U32, U32, U32, U32>(w, i,
                             [modes](U32 a, U32 b, U32 c) { return permute(a, b, modes[c & 3U]); });
}

template <class T>
void popc(Warp& w, const Inst& i) {
    map1<U32, T>(w, i, [](T a) { return static_cast<U32>(__builtin_popcountll(a)); });
}
template <class T>
void clz(Warp& w, const Inst& i) {
    map1<U32, T>(w, i, [](T a) { return leading_zeros<T>(a); });
}
template <class T, bool kShift>
void bfind(Warp& w, const Inst& i) {
    map1<U32, T>(w, i, [](T a) { return find_bit<T, kShift>(a); });
}
template <class T>
void brev(Warp& w, const Inst& i) {
    map1<T, T>(w, i, [](T a) { return reverse<T>(a); });
}

template <class T>
Handler find_logical(Op op) {
    switch (op) {
        case Op::And:
            return &Logic<T>::and_;
        case Op::Or:
            return &Logic<T>::or_;
        case Op::Xor:
            return &Logic<T>::xor_;
        case Op::Not:
            return &Logic<T>::not_;
        case Op::Cnot:
            return &Logic<T>::cnot;
        case Op::Shl:
            return &Logic<T>::shl;
        default:
            return nullptr;
    }
}

template <bool kLeft>
Handler find_funnel(bool wrap) {
    return wrap ? &funnel<kLeft, true> : &funnel<kLeft, false>;
}

Handler find_szext(const OpKey& key) {
    if (is_signed(key.type)) return key.wrap ? &szext<true, true> : &szext<true, false>;
    return key.wrap ? &szext<false, true> : &szext<false, false>;
}

Handler find_bfind(const OpKey& key) {
    const bool shift = key.op == Op::BfindShift;
    switch (key.type) {
        case Type::S32:
            return shift ? &bfind<S32, true> : &bfind<S32, false>;
        case Type::U32:
            return shift ? &bfind<U32, true> : &bfind<U32, false>;
        case Type::S64:
            return shift ? &bfind<std::int64_t, true> : &bfind<std::int64_t, false>;
        case Type::U64:
            return shift ? &bfind<U64, true> : &bfind<U64, false>;
        default:
            return nullptr;
    }
}

}  // namespace

Handler find_logic(const OpKey& key) {
    const bool wide = type_bytes(key.type) == 8;
    switch (key.op) {
        case Op::Shr:
            return for_integers(key.type,
                                [](auto tag) -> Handler { return &shift_right<decltype(tag)>; });
        case Op::ShfL:
            return find_funnel<true>(key.wrap);
        case Op::ShfR:
            return find_funnel<false>(key.wrap);
        case Op::Lop3:
            return &lop3;
        case Op::Popc:
            return wide ? &popc<U64> : &popc<U32>;
        case Op::Clz:
            return wide ? &clz<U64> : &clz<U32>;
        case Op::Bfind:
        case Op::BfindShift:
            return find_bfind(key);
        case Op::Brev:
            return wide ? &brev<U64> : &brev<U32>;
        case Op::Bfe:
            return for_integers(key.type, [](auto tag) -> Handler { return &bfe<decltype(tag)>; });
        case Op::Bfi:
            return wide ? &bfi<U64> : &bfi<U32>;
        case Op::Bmsk:
            return key.wrap ? &bmsk<true> : &bmsk<false>;
        case Op::Szext:
            return find_szext(key);
        case Op::Fns:
            return &fns;
        case Op::Prmt:
            return key.wrap ? &prmt_mode : &prmt;
        default:
            return for_bits(key.type,
                            [&](auto tag) { return find_logical<decltype(tag)>(key.op); });
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
