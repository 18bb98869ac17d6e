// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>
#include <cfenv>
#include <limits>

#include "simgpu/exec/lanes.hpp"
#include "simgpu/exec/math.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;

template <class D, class S>
SIMGPU_INLINE D clamp_integer(S value) {
    using Limits = std::numeric_limits<D>;
    if constexpr (std::is_signed_v<S>) {
        const std::int64_t v = static_cast<std::int64_t>(value);
        if constexpr (std::is_signed_v<D>) {
            return static_cast<D>(v < static_cast<std::int64_t>(Limits::min())
                                      ? static_cast<std::int64_t>(Limits::min())
                                  : v > static_cast<std::int64_t>(Limits::max())
                                      ? static_cast<std::int64_t>(Limits::max())
                                      : v);
        } else {
            return v < 0                                           ? D{0}
                   : static_cast<std::uint64_t>(v) > Limits::max() ? Limits::max()
                                                                   : static_cast<D>(v);
        }
    } else {
        const std::uint64_t v = static_cast<std::uint64_t>(value);
        return v > static_cast<std::uint64_t>(Limits::max()) ? Limits::max() : static_cast<D>(v);
    }
}

template <class D, class S, bool kSat>
void integer_to_integer(Warp& w, const Inst& i) {
    map1<D, S>(w, i, [](S a) { return kSat ? clamp_integer<D>(a) : static_cast<D>(a); });
}

template <Round kRound, class T>
SIMGPU_INLINE T to_integral(T a) {
    if constexpr (sizeof(T) == 4) {
        if constexpr (kRound == Round::NearestInt) return __builtin_rintf(a);
        if constexpr (kRound == Round::DownInt) return __builtin_floorf(a);
        if constexpr (kRound == Round::UpInt) return __builtin_ceilf(a);
        return __builtin_truncf(a);
    } else {
        if constexpr (kRound == Round::NearestInt) return __builtin_rint(a);
        if constexpr (kRound == Round::DownInt) return __builtin_floor(a);
        if constexpr (kRound == Round::UpInt) return __builtin_ceil(a);
        return __builtin_trunc(a);
    }
}

/// Float to integer: out of range gives the nearest end, NaN gives 0 (for 64 bits: the lowest
/// value, as the hardware does).
template <class D, class S>
SIMGPU_INLINE D clamp_float(S value) {
    using Limits = std::numeric_limits<D>;
    constexpr S kLow = static_cast<S>(Limits::min());
    // The first value that is too large: a power of two, exact in any float.
    constexpr S kHigh = static_cast<S>(Limits::max() / 2 + 1) * S{2};
    const bool nan = value != value;
    const bool low = value < kLow;
    const bool high = value >= kHigh;
    const S inside = nan || low || high ? S{0} : value;
    const D converted = static_cast<D>(inside);
    return nan    ? (sizeof(D) == 8 ? static_cast<D>(std::uint64_t{1} << 63) : D{0})
           : high ? Limits::max()
           : low  ? Limits::min()
                  : converted;
}

template <class S>
SIMGPU_INLINE S flush_float(S a, bool ftz) {
    if constexpr (std::is_same_v<S, float>) {
        const U32 bits = std::bit_cast<U32>(a);
        return ftz && (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : a;
    } else {
        return a;
    }
}

template <class D, class S, Round kRound>
void float_to_integer(Warp& w, const Inst& i) {
    const bool ftz = i.mode2 != 0;
    map1<D, S>(w, i,
               [ftz](S a) { return clamp_float<D>(to_integral<kRound>(flush_float(a, ftz))); });
}

template <class D>
SIMGPU_INLINE D saturate_unit(D a) {
    return a > D{0} ? (a < D{1} ? a : D{1}) : D{0};
}

template <class D, class S>
void integer_to_float(Warp& w, const Inst& i) {
    if (i.mode3 != 0) return map1<D, S>(w, i, [](S a) { return saturate_unit(static_cast<D>(a)); });
    map1<D, S>(w, i, [](S a) { return static_cast<D>(a); });
}

void set_rounding(Round round) {
    const int modes[] = {FE_TONEAREST, FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(round) % 5]);
}

/// Conversions that round in a given direction, lane by lane.
template <class D, class S>
void directed(Warp& w, const Inst& i) {
    const int before = std::fegetround();
    set_rounding(static_cast<Round>(i.mode));
    const auto* a = source<S>(w, i.op[1]);
    auto* d = reinterpret_cast<D*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        volatile S v = static_cast<S>(a[l]);
        volatile D r = static_cast<D>(S{v});
        D out = flush_float(D{r}, i.mode2 != 0);
        d[l] = i.mode3 != 0 ? saturate_unit(out) : out;
    });
    std::fesetround(before);
}

template <class T>
SIMGPU_INLINE T quiet(T a) {
    if constexpr (sizeof(T) == 4) return a != a ? std::bit_cast<T>(0x7fffffffU) : a;
    return a;
}

/// f32 and f64 among each other, rounded to integral values where asked.
template <class D, class S, Round kRound>
void float_to_float(Warp& w, const Inst& i) {
    const bool ftz = i.mode2 != 0;
    const bool saturate = i.mode3 != 0;
    map1<D, S>(w, i, [ftz, saturate](S a) {
        S v = flush_float(a, ftz);
        if constexpr (kRound != Round::None) v = to_integral<kRound>(v);
        const D r = quiet(flush_float(static_cast<D>(v), ftz));
        return saturate ? saturate_unit(r) : r;
    });
}

struct Half {
    SIMGPU_INLINE static double widen(std::uint16_t h) {
        return static_cast<double>(half_to_float(h));
    }
    SIMGPU_INLINE static std::uint16_t narrow(double v) { return double_to_half(v); }
    static constexpr std::uint16_t kInfinity = 0x7c00;
    static constexpr std::uint16_t kOne = 0x3c00;
};
struct Brain {
    SIMGPU_INLINE static double widen(std::uint16_t h) {
        return static_cast<double>(bf16_to_float(h));
    }
    SIMGPU_INLINE static std::uint16_t narrow(double v) { return double_to_bf16(v); }
    static constexpr std::uint16_t kInfinity = 0x7f80;
    static constexpr std::uint16_t kOne = 0x3f80;
};

/// Rounds in a direction by correcting the nearest value.
template <class F>
SIMGPU_INLINE std::uint16_t narrow_directed(double v, Round round) {
    const std::uint16_t r = F::narrow(v);
    if (v != v || round == Round::None || round == Round::Nearest) return r;
    const double back = F::widen(r);
    const bool negative = (r & 0x8000U) != 0;
    const std::uint16_t toward_zero = static_cast<std::uint16_t>(r - 1);
    const std::uint16_t away = static_cast<std::uint16_t>(r + 1);
    const bool too_high = back > v;
    const bool too_low = back < v;
    if (round == Round::Zero && ((too_high && !negative) || (too_low && negative)))
        return toward_zero;
    if (round == Round::Down && too_high)
        return negative ? away : ((r & 0x7fffU) == 0 ? 0x8001U : toward_zero);
    if (round == Round::Up && too_low)
        return negative ? ((r & 0x7fffU) == 0 ? 0x0001U : toward_zero) : away;
    return r;
}

template <class F>
SIMGPU_INLINE std::uint16_t narrow_modified(double v, const Inst& i) {
    const std::uint16_t r = narrow_directed<F>(v, static_cast<Round>(i.mode));
    const bool negative = (r & 0x8000U) != 0 && r != 0x7fff;
    if (i.mode3 == 1) return r == 0x7fff || negative ? 0 : (r > F::kOne ? F::kOne : r);
    if (i.mode3 == 2) return negative ? 0 : r;
    return r;
}

template <class F, class S>
void to_small_float(Warp& w, const Inst& i) {
    const auto* a = source<S>(w, i.op[1]);
    auto* d = reinterpret_cast<U32*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        d[l] = narrow_modified<F>(
            static_cast<double>(flush_float(static_cast<S>(a[l]), i.mode2 != 0)), i);
    });
}

/// Two floats into one packed register: the first operand goes to the upper half.
template <class F>
void to_packed(Warp& w, const Inst& i) {
    const auto* a = source<float>(w, i.op[1]);
    const auto* b = source<float>(w, i.op[2]);
    auto* d = reinterpret_cast<U32*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        d[l] = static_cast<U32>(narrow_modified<F>(static_cast<double>(a[l]), i)) << 16 |
               narrow_modified<F>(static_cast<double>(b[l]), i);
    });
}

template <class F, class D>
void from_small_float(Warp& w, const Inst& i) {
    const auto* a = source<std::uint16_t>(w, i.op[1]);
    auto* d = reinterpret_cast<Stored<D>*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        double v = F::widen(static_cast<std::uint16_t>(a[l]));
        if constexpr (std::is_integral_v<D>) {
            switch (static_cast<Round>(i.mode)) {
                case Round::NearestInt:
                    v = __builtin_rint(v);
                    break;
                case Round::DownInt:
                    v = __builtin_floor(v);
                    break;
                case Round::UpInt:
                    v = __builtin_ceil(v);
                    break;
                default:
                    v = __builtin_trunc(v);
                    break;
            }
            d[l] = stored<D>(clamp_float<D>(v));
        } else {
            const D r = quiet(static_cast<D>(v));
            d[l] = i.mode3 != 0 ? saturate_unit(r) : r;
        }
    });
}

/// Between 16-bit floats, or to integral values.
template <class D, class S>
void small_to_small(Warp& w, const Inst& i) {
    const auto* a = source<std::uint16_t>(w, i.op[1]);
    auto* d = reinterpret_cast<U32*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        double v = S::widen(static_cast<std::uint16_t>(a[l]));
        switch (static_cast<Round>(i.mode)) {
            case Round::NearestInt:
                v = __builtin_rint(v);
                break;
            case Round::DownInt:
                v = __builtin_floor(v);
                break;
            case Round::UpInt:
                v = __builtin_ceil(v);
                break;
            case Round::ZeroInt:
                v = __builtin_trunc(v);
                break;
            default:
                d[l] = narrow_modified<D>(v, i);
                return;
        }
        d[l] = D::narrow(v);
    });
}

template <class F>
SIMGPU_INLINE Handler any_integer(Type type, F f) {
    switch (type) {
        case Type::S8:
            return f(std::int8_t{});
        case Type::U8:
        case Type::B8:
            return f(std::uint8_t{});
        default:
            return for_integers(type, f);
    }
}

bool is_directed(Round round) {
    return round == Round::Zero || round == Round::Down || round == Round::Up;
}

template <class D, class S>
Handler to_integer_rounded(Round round) {
    switch (round) {
        case Round::NearestInt:
            return &float_to_integer<D, S, Round::NearestInt>;
        case Round::DownInt:
            return &float_to_integer<D, S, Round::DownInt>;
        case Round::UpInt:
            return &float_to_integer<D, S, Round::UpInt>;
        default:
            return &float_to_integer<D, S, Round::ZeroInt>;
    }
}

template <class D, class S>
Handler between_floats(Round round) {
    switch (round) {
        case Round::NearestInt:
            return &float_to_float<D, S, Round::NearestInt>;
        case Round::DownInt:
            return &float_to_float<D, S, Round::DownInt>;
        case Round::UpInt:
            return &float_to_float<D, S, Round::UpInt>;
        case Round::ZeroInt:
            return &float_to_float<D, S, Round::ZeroInt>;
        case Round::Zero:
        case Round::Down:
        case Round::Up:
            if constexpr (sizeof(D) < sizeof(S)) return &directed<D, S>;
            return &float_to_float<D, S, Round::None>;
        default:
            return &float_to_float<D, S, Round::None>;
    }
}

template <class D>
Handler to_wide_float(const OpKey& key) {
    switch (key.from) {
        case Type::F32:
            return between_floats<D, float>(key.round);
        case Type::F64:
            return between_floats<D, double>(key.round);
        case Type::F16:
            return &from_small_float<Half, D>;
        case Type::BF16:
            return &from_small_float<Brain, D>;
        default:
            break;
    }
    return any_integer(key.from, [&](auto tag) -> Handler {
        using S = decltype(tag);
        return is_directed(key.round) ? &directed<D, S> : &integer_to_float<D, S>;
    });
}

template <class F>
Handler to_small(const OpKey& key) {
    switch (key.from) {
        case Type::F32:
            return &to_small_float<F, float>;
        case Type::F64:
            return &to_small_float<F, double>;
        case Type::F16:
            return &small_to_small<F, Half>;
        case Type::BF16:
            return &small_to_small<F, Brain>;
        default:
            return any_integer(
                key.from, [&](auto tag) -> Handler { return &to_small_float<F, decltype(tag)>; });
    }
}

template <class D>
Handler to_integer(const OpKey& key) {
    switch (key.from) {
        case Type::F32:
            return to_integer_rounded<D, float>(key.round);
        case Type::F64:
            return to_integer_rounded<D, double>(key.round);
        case Type::F16:
            return &from_small_float<Half, D>;
        case Type::BF16:
            return &from_small_float<Brain, D>;
        default:
            break;
    }
    return any_integer(key.from, [&](auto tag) -> Handler {
        using S = decltype(tag);
        return key.saturate ? &integer_to_integer<D, S, true> : &integer_to_integer<D, S, false>;
    });
}

}  // namespace

Handler find_convert(const OpKey& key) {
    if (key.op == Op::CvtPack2) {
        if (key.type == Type::F16x2) return &to_packed<Half>;
        return key.type == Type::BF16x2 ? &to_packed<Brain> : nullptr;
    }
    switch (key.type) {
        case Type::F32:
            return to_wide_float<float>(key);
        case Type::F64:
            return to_wide_float<double>(key);
        case Type::F16:
            return to_small<Half>(key);
        case Type::BF16:
            return to_small<Brain>(key);
        default:
            return any_integer(key.type, [&](auto tag) { return to_integer<decltype(tag)>(key); });
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
