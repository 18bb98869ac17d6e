// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lanes.hpp"
#include "simgpu/exec/math.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

struct Half {
    SIMGPU_INLINE static double widen(std::uint16_t h) {
        return static_cast<double>(half_to_float(h));
    }
    SIMGPU_INLINE static std::uint16_t narrow(double v) { return double_to_half(v); }
    static constexpr std::uint16_t kOne = 0x3c00;
};
struct Brain {
    SIMGPU_INLINE static double widen(std::uint16_t h) {
        return static_cast<double>(bf16_to_float(h));
    }
    SIMGPU_INLINE static std::uint16_t narrow(double v) { return double_to_bf16(v); }
    static constexpr std::uint16_t kOne = 0x3f80;
};

/// Arithmetic in double, rounded once: sums and products of two 16-bit floats are exact there.
SIMGPU_INLINE double compute(Op op, double a, double b, double c, bool nan) {
    switch (op) {
        case Op::Add:
            return a + b;
        case Op::Sub:
            return a - b;
        case Op::MulLo:
            return a * b;
        case Op::Fma:
            return a * b + c;
        case Op::Min:
            if (a != a || b != b)
                return nan || (a != a && b != b) ? __builtin_nan("") : (a != a ? b : a);
            return a < b || (a == b && __builtin_signbit(a)) ? a : b;
        case Op::Max:
            if (a != a || b != b)
                return nan || (a != a && b != b) ? __builtin_nan("") : (a != a ? b : a);
            return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
        case Op::Ex2:
            return static_cast<double>(approximate_exp2(static_cast<float>(a)));
        case Op::Tanh:
            return static_cast<double>(approximate_tanh(static_cast<float>(a)));
        default:
            return a;
    }
}

template <class F>
SIMGPU_INLINE std::uint16_t element(const Inst& i, std::uint16_t a, std::uint16_t b,
                                    std::uint16_t c) {
    const Op op = static_cast<Op>(i.mode);
    if (op == Op::Neg) return a ^ 0x8000U;
    if (op == Op::Abs) return a & 0x7fffU;
    const bool saturate = (i.mode2 & 1U) != 0;
    const bool relu = (i.mode2 & 2U) != 0;
    const std::uint16_t r =
        F::narrow(compute(op, F::widen(a), F::widen(b), F::widen(c), (i.mode2 & 4U) != 0));
    const bool is_nan = r == 0x7fff;
    if (saturate) return is_nan || (r & 0x8000U) != 0 ? 0 : (r > F::kOne ? F::kOne : r);
    if (relu && !is_nan && (r & 0x8000U) != 0) return 0;
    return r;
}

/// 16-bit floats, one or two in a register; the operation is chosen per instruction, as speed
/// matters less here than the number of handlers.
template <class F, bool kPacked>
void half(Warp& w, const Inst& i) {
    using U = std::uint32_t;
    const auto* a = source<U>(w, i.op[1]);
    const auto* b = i.op[2] == kNoSlot ? a : source<U>(w, i.op[2]);
    const auto* c = i.op[3] == kNoSlot ? a : source<U>(w, i.op[3]);
    auto* d = reinterpret_cast<U*>(w.regs + i.op[0]);
    each_lane(w.exec, [&](int l) {
        const auto low = [](U v) { return static_cast<std::uint16_t>(v); };
        const auto high = [](U v) { return static_cast<std::uint16_t>(v >> 16); };
        U r = element<F>(i, low(a[l]), low(b[l]), low(c[l]));
        if (kPacked) r |= static_cast<U>(element<F>(i, high(a[l]), high(b[l]), high(c[l]))) << 16;
        d[l] = r;
    });
}

}  // namespace

Handler find_half(const OpKey& key) {
    switch (key.op) {
        case Op::Add:
        case Op::Sub:
        case Op::MulLo:
        case Op::Fma:
        case Op::Min:
        case Op::Max:
        case Op::Ex2:
        case Op::Tanh:
        case Op::Neg:
        case Op::Abs:
            break;
        default:
            return nullptr;
    }
    switch (key.type) {
        case Type::F16:
            return &half<Half, false>;
        case Type::F16x2:
            return &half<Half, true>;
        case Type::BF16:
            return &half<Brain, false>;
        case Type::BF16x2:
            return &half<Brain, true>;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
