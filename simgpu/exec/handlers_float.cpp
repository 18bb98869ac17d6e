// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>
#include <cfenv>

#include "simgpu/exec/lanes.hpp"
#include "simgpu/exec/math.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

/// Subnormals to zero, sign kept.
template <bool kFlush, class T>
SIMGPU_INLINE T flushed(T a) {
    if constexpr (kFlush && sizeof(T) == 4) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(a);
        return std::bit_cast<T>((bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits);
    } else {
        return a;
    }
}

template <class T>
SIMGPU_INLINE T saturated(T a) {
    return a > T{0} ? (a < T{1} ? a : T{1}) : T{0};
}

/// The device's NaN.
template <class T>
SIMGPU_INLINE T canonical(T a) {
    if constexpr (sizeof(T) == 4) {
        return a != a ? std::bit_cast<T>(0x7fffffffU) : a;
    } else {
        return a != a ? std::bit_cast<T>(std::uint64_t{0x7ff8000000000000U}) : a;
    }
}

template <class T>
SIMGPU_INLINE T fused(T a, T b, T c) {
    if constexpr (sizeof(T) == 4) {
        return __builtin_fmaf(a, b, c);
    } else {
        return __builtin_fma(a, b, c);
    }
}

template <class T>
SIMGPU_INLINE T root(T a) {
    if constexpr (sizeof(T) == 4) {
        return __builtin_sqrtf(a);
    } else {
        return __builtin_sqrt(a);
    }
}

/// The lesser; a number before a NaN unless `kNan`; -0 before +0.
template <bool kNan, class T>
SIMGPU_INLINE T lesser(T a, T b) {
    const bool a_nan = a != a;
    const bool b_nan = b != b;
    T m = a < b || (a == b && __builtin_signbit(a)) ? a : b;
    m = b_nan ? a : m;
    m = a_nan ? b : m;
    if (kNan ? a_nan || b_nan : a_nan && b_nan) m = canonical(a_nan ? a : b);
    return m;
}
template <bool kNan, class T>
SIMGPU_INLINE T greater(T a, T b) {
    const bool a_nan = a != a;
    const bool b_nan = b != b;
    T m = a > b || (a == b && !__builtin_signbit(a)) ? a : b;
    m = b_nan ? a : m;
    m = a_nan ? b : m;
    if (kNan ? a_nan || b_nan : a_nan && b_nan) m = canonical(a_nan ? a : b);
    return m;
}

struct AddOf {
    template <class T>
    SIMGPU_INLINE static T of(T a, T b) {
        return a + b;
    }
};
struct SubOf {
    template <class T>
    SIMGPU_INLINE static T of(T a, T b) {
        return a - b;
    }
};
struct MulOf {
    template <class T>
    SIMGPU_INLINE static T of(T a, T b) {
        return a * b;
    }
};
struct DivOf {
    template <class T>
    SIMGPU_INLINE static T of(T a, T b) {
        return a / b;
    }
};
struct FmaOf {
    template <class T>
    SIMGPU_INLINE static T of(T a, T b, T c) {
        return fused(a, b, c);
    }
};
struct SqrtOf {
    template <class T>
    SIMGPU_INLINE static T of(T a) {
        return root(a);
    }
};
struct RcpOf {
    template <class T>
    SIMGPU_INLINE static T of(T a) {
        return T{1} / a;
    }
};

template <class F, class T, bool kFtz, bool kSat>
void one(Warp& w, const Inst& i) {
    map1<T, T>(w, i, [](T a) {
        const T r = canonical(flushed<kFtz>(F::of(flushed<kFtz>(a))));
        return kSat ? saturated(r) : r;
    });
}
template <class F, class T, bool kFtz, bool kSat>
void two(Warp& w, const Inst& i) {
    map2<T, T, T>(w, i, [](T a, T b) {
        const T r = canonical(flushed<kFtz>(F::of(flushed<kFtz>(a), flushed<kFtz>(b))));
        return kSat ? saturated(r) : r;
    });
}
template <class F, class T, bool kFtz, bool kSat>
void three(Warp& w, const Inst& i) {
    map3<T, T, T, T>(w, i, [](T a, T b, T c) {
        const T r =
            canonical(flushed<kFtz>(F::of(flushed<kFtz>(a), flushed<kFtz>(b), flushed<kFtz>(c))));
        return kSat ? saturated(r) : r;
    });
}

/// Sets the CPU's rounding for a scope.
class Rounding {
  public:
    explicit Rounding(Round round) : before_(std::fegetround()) {
        const int modes[] = {FE_TONEAREST, FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        std::fesetround(modes[static_cast<int>(round) % 5]);
    }
    ~Rounding() { std::fesetround(before_); }
    Rounding(const Rounding&) = delete;
    Rounding& operator=(const Rounding&) = delete;

  private:
    int before_;
};

/// Directed rounding is rare: lane by lane, with the values kept from the optimiser, which does
/// not know of rounding modes.
template <class F, class T, int kOperands>
void directed(Warp& w, const Inst& i) {
    const Rounding scope(static_cast<Round>(i.mode));
    const bool ftz = i.mode2 != 0;
    const auto flush = [ftz](T v) { return ftz ? flushed<true>(v) : v; };
    auto* d = reinterpret_cast<T*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        volatile T v[3] = {};
        for (int k = 0; k < kOperands; ++k) v[k] = flush(source<T>(w, i.op[k + 1])[l]);
        volatile T r{};
        if constexpr (kOperands == 1) r = F::template of<T>(T{v[0]});
        if constexpr (kOperands == 2) r = F::template of<T>(T{v[0]}, T{v[1]});
        if constexpr (kOperands == 3) r = F::template of<T>(T{v[0]}, T{v[1]}, T{v[2]});
        const T out = canonical(flush(r));
        d[l] = i.mode3 != 0 ? saturated(out) : out;
    });
}

template <template <class, class, bool, bool> class Make, class F, class T>
Handler pick(const OpKey& key) {
    if constexpr (sizeof(T) == 8) return Make<F, T, false, false>::handler();
    if (key.ftz)
        return key.saturate ? Make<F, T, true, true>::handler()
                            : Make<F, T, true, false>::handler();
    return key.saturate ? Make<F, T, false, true>::handler() : Make<F, T, false, false>::handler();
}
template <class F, class T, bool kFtz, bool kSat>
struct MakeOne {
    static Handler handler() { return &one<F, T, kFtz, kSat>; }
};
template <class F, class T, bool kFtz, bool kSat>
struct MakeTwo {
    static Handler handler() { return &two<F, T, kFtz, kSat>; }
};
template <class F, class T, bool kFtz, bool kSat>
struct MakeThree {
    static Handler handler() { return &three<F, T, kFtz, kSat>; }
};

bool is_directed(const OpKey& key) {
    return key.round == Round::Zero || key.round == Round::Down || key.round == Round::Up;
}

template <class F, class T>
Handler pick_one(const OpKey& key) {
    return is_directed(key) ? &directed<F, T, 1> : pick<MakeOne, F, T>(key);
}
template <class F, class T>
Handler pick_two(const OpKey& key) {
    return is_directed(key) ? &directed<F, T, 2> : pick<MakeTwo, F, T>(key);
}
template <class F, class T>
Handler pick_three(const OpKey& key) {
    return is_directed(key) ? &directed<F, T, 3> : pick<MakeThree, F, T>(key);
}

template <class T, bool kFtz, bool kNan>
void min_(Warp& w, const Inst& i) {
    map2<T, T, T>(w, i, [](T a, T b) { return lesser<kNan>(flushed<kFtz>(a), flushed<kFtz>(b)); });
}
template <class T, bool kFtz, bool kNan>
void max_(Warp& w, const Inst& i) {
    map2<T, T, T>(w, i, [](T a, T b) { return greater<kNan>(flushed<kFtz>(a), flushed<kFtz>(b)); });
}

template <class T>
Handler find_min_max(const OpKey& key) {
    if (key.op == Op::Min) {
        if (key.ftz) return key.nan ? &min_<T, true, true> : &min_<T, true, false>;
        return key.nan ? &min_<T, false, true> : &min_<T, false, false>;
    }
    if (key.ftz) return key.nan ? &max_<T, true, true> : &max_<T, true, false>;
    return key.nan ? &max_<T, false, true> : &max_<T, false, false>;
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr Bits<T> kSign = Bits<T>{1} << (sizeof(T) * 8 - 1);

template <class T, bool kFtz>
void abs_(Warp& w, const Inst& i) {
    map1<T, T>(w, i, [](T a) {
        return flushed<kFtz>(std::bit_cast<T>(std::bit_cast<Bits<T>>(a) & ~kSign<T>));
    });
}
template <class T, bool kFtz>
void neg_(Warp& w, const Inst& i) {
    map1<T, T>(w, i, [](T a) {
        return flushed<kFtz>(std::bit_cast<T>(std::bit_cast<Bits<T>>(a) ^ kSign<T>));
    });
}
/// copysign d, a, b: the sign of a on b.
template <class T>
void copysign_(Warp& w, const Inst& i) {
    using B = Bits<T>;
    map2<B, B, B>(w, i, [](B a, B b) { return static_cast<B>((a & kSign<T>) | (b & ~kSign<T>)); });
}

struct Rsqrt {
    SIMGPU_INLINE static float of(float a) {
        return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)));
    }
};
struct Sine {
    SIMGPU_INLINE static float of(float a) { return sine(a, 0); }
};
struct Cosine {
    SIMGPU_INLINE static float of(float a) { return sine(a, 1); }
};
struct Log2 {
    SIMGPU_INLINE static float of(float a) { return approximate_log2(a); }
};
struct Exp2 {
    SIMGPU_INLINE static float of(float a) { return approximate_exp2(a); }
};
struct Tanh {
    SIMGPU_INLINE static float of(float a) { return approximate_tanh(a); }
};
struct RsqrtDouble {
    template <class T>
    SIMGPU_INLINE static T of(T a) {
        return T{1} / root(a);
    }
};

template <class F>
Handler approximate(const OpKey& key) {
    if (key.type != Type::F32) return nullptr;
    return key.ftz ? &one<F, float, true, false> : &one<F, float, false, false>;
}

template <class T>
void testp(Warp& w, const Inst& i) {
    using B = Bits<T>;
    const auto* a = source<B>(w, i.op[1]);
    constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
    constexpr B kExponent = (sizeof(T) == 4 ? B{0xff} : B{0x7ff}) << kMantissa;
    std::uint32_t out = 0;
    for (int l = 0; l < kLanes; ++l) {
        const B magnitude = a[l] & ~kSign<T>;
        const B exponent = magnitude & kExponent;
        bool yes = false;
        switch (static_cast<TestProperty>(i.mode)) {
            case TestProperty::Finite:
                yes = exponent != kExponent;
                break;
            case TestProperty::Infinite:
                yes = magnitude == kExponent;
                break;
            case TestProperty::Number:
                yes = magnitude <= kExponent;
                break;
            case TestProperty::NotANumber:
                yes = magnitude > kExponent;
                break;
            case TestProperty::Normal:
                yes = exponent != 0 && exponent != kExponent;
                break;
            case TestProperty::Subnormal:
                yes = exponent == 0 && magnitude != 0;
                break;
        }
        out |= static_cast<std::uint32_t>(yes) << l;
    }
    set_predicate(w, i.op[0], out);
}

template <class T>
Handler find(const OpKey& key) {
    switch (key.op) {
        case Op::Add:
            return pick_two<AddOf, T>(key);
        case Op::Sub:
            return pick_two<SubOf, T>(key);
        case Op::MulLo:
            return pick_two<MulOf, T>(key);
        case Op::Div:
            return pick_two<DivOf, T>(key);
        case Op::Fma:
            return pick_three<FmaOf, T>(key);
        case Op::Sqrt:
            return pick_one<SqrtOf, T>(key);
        case Op::Rcp:
            return pick_one<RcpOf, T>(key);
        case Op::Min:
        case Op::Max:
            return find_min_max<T>(key);
        case Op::Abs:
            return key.ftz ? &abs_<T, true> : &abs_<T, false>;
        case Op::Neg:
            return key.ftz ? &neg_<T, true> : &neg_<T, false>;
        case Op::Copysign:
            return &copysign_<T>;
        case Op::Testp:
            return &testp<T>;
        default:
            return nullptr;
    }
}

}  // namespace

Handler find_float(const OpKey& key) {
    switch (key.op) {
        case Op::Rsqrt:
            return key.type == Type::F64 ? &one<RsqrtDouble, double, false, false>
                                         : approximate<Rsqrt>(key);
        case Op::Sin:
            return approximate<Sine>(key);
        case Op::Cos:
            return approximate<Cosine>(key);
        case Op::Lg2:
            return approximate<Log2>(key);
        case Op::Ex2:
            return approximate<Exp2>(key);
        case Op::Tanh:
            return approximate<Tanh>(key);
        default:
            break;
    }
    if (key.type == Type::F32) return find<float>(key);
    if (key.type == Type::F64) return find<double>(key);
    return nullptr;
}

}  // namespace simgpu::exec::SIMGPU_ISA
