// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lanes.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

__extension__ using Int128 = __int128;
__extension__ using UnsignedInt128 = unsigned __int128;

template <class T>
struct Wider;
template <>
struct Wider<std::int16_t> {
    using type = std::int32_t;
};
template <>
struct Wider<std::uint16_t> {
    using type = std::uint32_t;
};
template <>
struct Wider<std::int32_t> {
    using type = std::int64_t;
};
template <>
struct Wider<std::uint32_t> {
    using type = std::uint64_t;
};
template <>
struct Wider<std::int64_t> {
    using type = Int128;
};
template <>
struct Wider<std::uint64_t> {
    using type = UnsignedInt128;
};
template <class T>
using Wide = typename Wider<T>::type;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;

template <class T>
SIMGPU_INLINE T wrap_add(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <class T>
SIMGPU_INLINE T wrap_sub(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <class T>
SIMGPU_INLINE T mul_lo(T a, T b) {
    using U = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned<T>>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <class T>
SIMGPU_INLINE Wide<T> mul_wide(T a, T b) {
    return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
}
template <class T>
SIMGPU_INLINE T mul_hi(T a, T b) {
    return static_cast<T>(mul_wide(a, b) >> kBits<T>);
}

template <class T>
SIMGPU_INLINE T saturate_add(T a, T b) {
    const Wide<T> sum = static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b);
    constexpr Wide<T> kMax = static_cast<Wide<T>>(static_cast<Unsigned<T>>(~Unsigned<T>{0}) >> 1);
    return static_cast<T>(sum > kMax ? kMax : sum < -kMax - 1 ? -kMax - 1 : sum);
}
template <class T>
SIMGPU_INLINE T saturate_sub(T a, T b) {
    const Wide<T> sum = static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b);
    constexpr Wide<T> kMax = static_cast<Wide<T>>(static_cast<Unsigned<T>>(~Unsigned<T>{0}) >> 1);
    return static_cast<T>(sum > kMax ? kMax : sum < -kMax - 1 ? -kMax - 1 : sum);
}

/// Division as the hardware does it: all ones by zero, no trap on overflow.
template <class T>
SIMGPU_INLINE T divide(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return wrap_sub(T{0}, a);
    }
    return static_cast<T>(a / b);
}
template <class T>
SIMGPU_INLINE T remainder(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return 0;
    }
    return static_cast<T>(a % b);
}

SIMGPU_INLINE std::int32_t low24(std::int32_t v) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << 8) >> 8;
}
SIMGPU_INLINE std::uint32_t low24(std::uint32_t v) { return v & 0xffffffU; }

template <class T>
SIMGPU_INLINE T mul24_lo(T a, T b) {
    return static_cast<T>(mul_wide(low24(a), low24(b)));
}
template <class T>
SIMGPU_INLINE T mul24_hi(T a, T b) {
    return static_cast<T>(mul_wide(low24(a), low24(b)) >> 16);
}

template <class T>
SIMGPU_INLINE T magnitude(T a) {
    return a < 0 ? wrap_sub(T{0}, a) : a;
}

/// 8-bit parts of a dot product.
template <class A, class B>
SIMGPU_INLINE std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int k = 0; k < 4; ++k) {
        c += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<A>(a >> (8 * k))) *
                                        static_cast<std::int32_t>(static_cast<B>(b >> (8 * k))));
    }
    return c;
}
template <class A, class B>
SIMGPU_INLINE std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t c, int half) {
    for (int k = 0; k < 2; ++k) {
        c += static_cast<std::uint32_t>(
            static_cast<std::int32_t>(static_cast<A>(a >> (16 * k))) *
            static_cast<std::int32_t>(static_cast<B>(b >> (8 * (k + 2 * half)))));
    }
    return c;
}

template <class T>
struct Integer {
    using W = Wide<T>;
    static void add(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return wrap_add(a, b); });
    }
    static void sub(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return wrap_sub(a, b); });
    }
    static void mul_lo_(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return mul_lo(a, b); });
    }
    static void mul_hi_(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return mul_hi(a, b); });
    }
    static void mad_lo(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) { return wrap_add(mul_lo(a, b), c); });
    }
    static void mad_hi(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) { return wrap_add(mul_hi(a, b), c); });
    }
    static void div(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return divide(a, b); });
    }
    static void rem(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return remainder(a, b); });
    }
    static void min(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return a < b ? a : b; });
    }
    static void max(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return a > b ? a : b; });
    }
    static void abs(Warp& w, const Inst& i) {
        map1<T, T>(w, i, [](T a) { return magnitude(a); });
    }
    static void neg(Warp& w, const Inst& i) {
        map1<T, T>(w, i, [](T a) { return wrap_sub(T{0}, a); });
    }
    static void sad(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) {
            return wrap_add(c, a < b ? wrap_sub(b, a) : wrap_sub(a, b));
        });
    }
};

template <class T>
struct Widening {
    using W = Wide<T>;
    static void mul(Warp& w, const Inst& i) {
        map2<W, T, T>(w, i, [](T a, T b) { return mul_wide(a, b); });
    }
    static void mad(Warp& w, const Inst& i) {
        map3<W, T, T, W>(w, i, [](T a, T b, W c) { return wrap_add<W>(mul_wide(a, b), c); });
    }
};

template <class T>
struct Narrow24 {
    static void mul_lo(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return mul24_lo(a, b); });
    }
    static void mul_hi(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return mul24_hi(a, b); });
    }
    static void mad_lo(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) { return wrap_add(mul24_lo(a, b), c); });
    }
    static void mad_hi(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) { return wrap_add(mul24_hi(a, b), c); });
    }
};

struct Saturating {
    using T = std::int32_t;
    static void add(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return saturate_add(a, b); });
    }
    static void sub(Warp& w, const Inst& i) {
        map2<T, T, T>(w, i, [](T a, T b) { return saturate_sub(a, b); });
    }
    static void mad_hi(Warp& w, const Inst& i) {
        map3<T, T, T, T>(w, i, [](T a, T b, T c) { return saturate_add(mul_hi(a, b), c); });
    }
};

/// Sums with carry. `subtract` adds the complement; its borrow is the carry's complement.
template <class T, bool kSubtract, bool kIn, bool kOut>
void add_with_carry(Warp& w, const Inst& i) {
    const auto* a = source<T>(w, i.op[1]);
    const auto* b = source<T>(w, i.op[2]);
    auto* d = result<T>(w, i.op[0]);
    std::uint32_t carries = 0;
    for (int l = 0; l < kLanes; ++l) {
        const T x = static_cast<T>(a[l]);
        const T y = static_cast<T>(b[l]);
        const T flag = kIn ? static_cast<T>((w.carry >> l) & 1U) : T{0};
        T sum = 0;
        bool out = false;
        if constexpr (kSubtract) {
            sum = static_cast<T>(x - y - flag);
            out = x < y || (flag != 0 && x == y);
        } else {
            sum = static_cast<T>(x + y + flag);
            out = sum < x || (flag != 0 && sum == x);
        }
        d[l] = sum;
        carries |= static_cast<std::uint32_t>(out) << l;
    }
    finish<T>(w, i.op[0]);
    if constexpr (kOut) w.carry = (w.carry & ~w.exec) | (carries & w.exec);
}

template <class T, bool kHigh, bool kIn, bool kOut>
void mad_with_carry(Warp& w, const Inst& i) {
    using U = Unsigned<T>;
    const auto* a = source<T>(w, i.op[1]);
    const auto* b = source<T>(w, i.op[2]);
    const auto* c = source<T>(w, i.op[3]);
    auto* d = result<T>(w, i.op[0]);
    std::uint32_t carries = 0;
    for (int l = 0; l < kLanes; ++l) {
        const U x = static_cast<U>(kHigh ? mul_hi<T>(static_cast<T>(a[l]), static_cast<T>(b[l]))
                                         : mul_lo<T>(static_cast<T>(a[l]), static_cast<T>(b[l])));
        const U y = static_cast<U>(c[l]);
        const U flag = kIn ? static_cast<U>((w.carry >> l) & 1U) : U{0};
        const U sum = static_cast<U>(x + y + flag);
        d[l] = static_cast<Stored<T>>(sum);
        carries |= static_cast<std::uint32_t>(sum < x || (flag != 0 && sum == x)) << l;
    }
    finish<T>(w, i.op[0]);
    if constexpr (kOut) w.carry = (w.carry & ~w.exec) | (carries & w.exec);
}

template <class T, bool kSubtract>
Handler carry_handler(const OpKey& key) {
    if (key.carry_in)
        return key.carry_out ? &add_with_carry<T, kSubtract, true, true>
                             : &add_with_carry<T, kSubtract, true, false>;
    return &add_with_carry<T, kSubtract, false, true>;
}

template <class T, bool kHigh>
Handler mad_carry_handler(const OpKey& key) {
    if (key.carry_in)
        return key.carry_out ? &mad_with_carry<T, kHigh, true, true>
                             : &mad_with_carry<T, kHigh, true, false>;
    return &mad_with_carry<T, kHigh, false, true>;
}

template <class A, class B>
void dp4a(Warp& w, const Inst& i) {
    using U = std::uint32_t;
    map3<U, U, U, U>(w, i, [](U a, U b, U c) { return dot4<A, B>(a, b, c); });
}
template <class A, class B, int kHalf>
void dp2a(Warp& w, const Inst& i) {
    using U = std::uint32_t;
    map3<U, U, U, U>(w, i, [](U a, U b, U c) { return dot2<A, B>(a, b, c, kHalf); });
}

Handler find_dot(const OpKey& key) {
    using S8 = std::int8_t;
    using U8 = std::uint8_t;
    using S16 = std::int16_t;
    using U16 = std::uint16_t;
    const bool sa = is_signed(key.type);
    const bool sb = is_signed(key.from);
    if (key.op == Op::Dp4a)
        return sa ? (sb ? &dp4a<S8, S8> : &dp4a<S8, U8>) : (sb ? &dp4a<U8, S8> : &dp4a<U8, U8>);
    if (key.op == Op::Dp2aLo)
        return sa ? (sb ? &dp2a<S16, S8, 0> : &dp2a<S16, U8, 0>)
                  : (sb ? &dp2a<U16, S8, 0> : &dp2a<U16, U8, 0>);
    return sa ? (sb ? &dp2a<S16, S8, 1> : &dp2a<S16, U8, 1>)
              : (sb ? &dp2a<U16, S8, 1> : &dp2a<U16, U8, 1>);
}

Handler find_saturating(const OpKey& key) {
    if (key.type != Type::S32) return nullptr;
    if (key.op == Op::Add) return &Saturating::add;
    if (key.op == Op::Sub) return &Saturating::sub;
    if (key.op == Op::MadHi) return &Saturating::mad_hi;
    return nullptr;
}

Handler find_carry(const OpKey& key) {
    const bool wide = type_bytes(key.type) == 8;
    switch (key.op) {
        case Op::AddCc:
            return wide ? carry_handler<std::uint64_t, false>(key)
                        : carry_handler<std::uint32_t, false>(key);
        case Op::SubCc:
            return wide ? carry_handler<std::uint64_t, true>(key)
                        : carry_handler<std::uint32_t, true>(key);
        case Op::MadLoCc:
            return wide ? mad_carry_handler<std::uint64_t, false>(key)
                        : mad_carry_handler<std::uint32_t, false>(key);
        case Op::MadHiCc:
            if (is_signed(key.type))
                return wide ? mad_carry_handler<std::int64_t, true>(key)
                            : mad_carry_handler<std::int32_t, true>(key);
            return wide ? mad_carry_handler<std::uint64_t, true>(key)
                        : mad_carry_handler<std::uint32_t, true>(key);
        default:
            return nullptr;
    }
}

Handler find_wide(const OpKey& key) {
    const bool mad = key.op == Op::MadWide;
    switch (key.type) {
        case Type::S16:
            return mad ? &Widening<std::int16_t>::mad : &Widening<std::int16_t>::mul;
        case Type::U16:
            return mad ? &Widening<std::uint16_t>::mad : &Widening<std::uint16_t>::mul;
        case Type::S32:
            return mad ? &Widening<std::int32_t>::mad : &Widening<std::int32_t>::mul;
        case Type::U32:
            return mad ? &Widening<std::uint32_t>::mad : &Widening<std::uint32_t>::mul;
        default:
            return nullptr;
    }
}

template <class T>
Handler find_24(Op op) {
    if (op == Op::Mul24Lo) return &Narrow24<T>::mul_lo;
    if (op == Op::Mul24Hi) return &Narrow24<T>::mul_hi;
    if (op == Op::Mad24Lo) return &Narrow24<T>::mad_lo;
    return &Narrow24<T>::mad_hi;
}

template <class T>
Handler find_plain(Op op) {
    switch (op) {
        case Op::Add:
            return &Integer<T>::add;
        case Op::Sub:
            return &Integer<T>::sub;
        case Op::MulLo:
            return &Integer<T>::mul_lo_;
        case Op::MulHi:
            return &Integer<T>::mul_hi_;
        case Op::MadLo:
            return &Integer<T>::mad_lo;
        case Op::MadHi:
            return &Integer<T>::mad_hi;
        case Op::Div:
            return &Integer<T>::div;
        case Op::Rem:
            return &Integer<T>::rem;
        case Op::Min:
            return &Integer<T>::min;
        case Op::Max:
            return &Integer<T>::max;
        case Op::Abs:
            return &Integer<T>::abs;
        case Op::Neg:
            return &Integer<T>::neg;
        case Op::Sad:
            return &Integer<T>::sad;
        default:
            return nullptr;
    }
}

}  // namespace

Handler find_integer(const OpKey& key) {
    if (is_float(key.type)) return nullptr;
    switch (key.op) {
        case Op::Dp4a:
        case Op::Dp2aLo:
        case Op::Dp2aHi:
            return find_dot(key);
        case Op::AddCc:
        case Op::SubCc:
        case Op::MadLoCc:
        case Op::MadHiCc:
            return find_carry(key);
        case Op::MulWide:
        case Op::MadWide:
            return find_wide(key);
        case Op::Mul24Lo:
        case Op::Mul24Hi:
        case Op::Mad24Lo:
        case Op::Mad24Hi:
            return is_signed(key.type) ? find_24<std::int32_t>(key.op)
                                       : find_24<std::uint32_t>(key.op);
        default:
            break;
    }
    if (key.saturate) return find_saturating(key);
    return for_integers(key.type, [&](auto tag) { return find_plain<decltype(tag)>(key.op); });
}

}  // namespace simgpu::exec::SIMGPU_ISA
