// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cfenv>
#include <cmath>
#include <tuple>

#include "tests/simgpu/exec/instruction_fixture.hpp"

namespace simgpu::exec {

namespace {

using S16 = std::int16_t;
using S32 = std::int32_t;
using S64 = std::int64_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
__extension__ using S128 = __int128;
__extension__ using U128 = unsigned __int128;

class IntegerInstructions : public InstructionTest {};
class FloatInstructions : public InstructionTest {};
class ConvertInstructions : public InstructionTest {};
class OtherInstructions : public InstructionTest {};

TEST_F(IntegerInstructions, AddSubMulWrap) {
    check2<U32>("add.u32", [](U32 a, U32 b) { return a + b; });
    check2<S32>("sub.s32", [](S32 a, S32 b) {
        return static_cast<S32>(static_cast<U32>(a) - static_cast<U32>(b));
    });
    check2<U64>("add.s64", [](U64 a, U64 b) { return a + b; });
    check2<U16>("add.u16", [](U16 a, U16 b) { return static_cast<U16>(a + b); });
    check2<S16>("sub.s16", [](S16 a, S16 b) { return static_cast<S16>(a - b); });
    check2<U32>("mul.lo.s32", [](U32 a, U32 b) { return a * b; });
    check2<U64>("mul.lo.u64", [](U64 a, U64 b) { return a * b; });
    check2<S32>("mul.hi.s32",
                [](S32 a, S32 b) { return static_cast<S32>((static_cast<S64>(a) * b) >> 32); });
    check2<U32>("mul.hi.u32",
                [](U32 a, U32 b) { return static_cast<U32>((static_cast<U64>(a) * b) >> 32); });
    check2<S64>("mul.hi.s64",
                [](S64 a, S64 b) { return static_cast<S64>((static_cast<S128>(a) * b) >> 64); });
    check2<U64>("mul.hi.u64",
                [](U64 a, U64 b) { return static_cast<U64>((static_cast<U128>(a) * b) >> 64); });
    check2<S32>("mul.wide.s32", [](S32 a, S32 b) { return static_cast<S64>(a) * b; });
    check2<U16>("mul.wide.u16", [](U16 a, U16 b) { return static_cast<U32>(a) * b; });
    check3<U32>("mad.lo.u32", [](U32 a, U32 b, U32 c) { return a * b + c; });
    check3<S32, S32, S64>("mad.wide.s32", [](S32 a, S32 b, S64 c) {
        return static_cast<S64>(static_cast<U64>(static_cast<S64>(a) * b) + static_cast<U64>(c));
    });
    check3<U32>("mad.hi.u32", [](U32 a, U32 b, U32 c) {
        return static_cast<U32>((static_cast<U64>(a) * b) >> 32) + c;
    });
}

TEST_F(IntegerInstructions, SaturatingAndOddMultiplies) {
    const auto clamp = [](S64 v) {
        return static_cast<S32>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
    };
    check2<S32>("add.sat.s32", [&](S32 a, S32 b) { return clamp(static_cast<S64>(a) + b); });
    check2<S32>("sub.sat.s32", [&](S32 a, S32 b) { return clamp(static_cast<S64>(a) - b); });
    const auto low = [](S32 a) {
        return static_cast<S64>(static_cast<S32>(static_cast<U32>(a) << 8) >> 8);
    };
    check2<S32>("mul24.lo.s32", [&](S32 a, S32 b) { return static_cast<S32>(low(a) * low(b)); });
    check2<U32>("mul24.hi.u32", [](U32 a, U32 b) {
        return static_cast<U32>((static_cast<U64>(a & 0xffffffU) * (b & 0xffffffU)) >> 16);
    });
    check3<U32>("sad.u32", [](U32 a, U32 b, U32 c) { return c + (a < b ? b - a : a - b); });
    check3<S32>("sad.s32", [](S32 a, S32 b, S32 c) {
        return static_cast<S32>(static_cast<U32>(c) +
                                (a < b ? static_cast<U32>(b) - static_cast<U32>(a)
                                       : static_cast<U32>(a) - static_cast<U32>(b)));
    });
}

TEST_F(IntegerInstructions, DivisionNeverTraps) {
    check2<S32>("div.s32", [](S32 a, S32 b) {
        return b == 0 ? -1 : b == -1 ? static_cast<S32>(0U - static_cast<U32>(a)) : a / b;
    });
    check2<U32>("div.u32", [](U32 a, U32 b) { return b == 0 ? ~0U : a / b; });
    check2<S64>("div.s64", [](S64 a, S64 b) {
        return b == 0 ? S64{-1} : b == -1 ? static_cast<S64>(U64{0} - static_cast<U64>(a)) : a / b;
    });
    check2<S32>("rem.s32", [](S32 a, S32 b) { return b == 0 ? a : b == -1 ? 0 : a % b; });
    check2<U64>("rem.u64", [](U64 a, U64 b) { return b == 0 ? a : a % b; });
    check2<S16>("div.s16", [](S16 a, S16 b) { return static_cast<S16>(b == 0 ? -1 : a / b); });
}

TEST_F(IntegerInstructions, ShiftsBeyondTheWidthGiveZeroOrSign) {
    check2<U32, U32>("shl.b32", [](U32 a, U32 b) { return b > 31 ? 0U : a << b; });
    check2<U32, U32>("shr.u32", [](U32 a, U32 b) { return b > 31 ? 0U : a >> b; });
    check2<S32, U32>("shr.s32", [](S32 a, U32 b) { return a >> (b > 31 ? 31 : b); });
    check2<U64, U32>("shl.b64", [](U64 a, U32 b) { return b > 63 ? U64{0} : a << b; });
    check2<S64, U32>("shr.s64", [](S64 a, U32 b) { return a >> (b > 63 ? 63 : b); });
    check2<U16, U32>("shl.b16", [](U16 a, U32 b) { return static_cast<U16>(b > 15 ? 0 : a << b); });
    check2<S16, U32>("shr.s16",
                     [](S16 a, U32 b) { return static_cast<S16>(a >> (b > 15 ? 15 : b)); });
    const auto both = [](U32 lo, U32 hi) { return (static_cast<U64>(hi) << 32) | lo; };
    check3<U32>("shf.l.wrap.b32", [&](U32 a, U32 b, U32 c) {
        return static_cast<U32>((both(a, b) << (c & 31)) >> 32);
    });
    check3<U32>("shf.r.wrap.b32",
                [&](U32 a, U32 b, U32 c) { return static_cast<U32>(both(a, b) >> (c & 31)); });
    check3<U32>("shf.l.clamp.b32", [&](U32 a, U32 b, U32 c) {
        return static_cast<U32>((both(a, b) << (c > 32 ? 32 : c)) >> 32);
    });
    check3<U32>("shf.r.clamp.b32", [&](U32 a, U32 b, U32 c) {
        return static_cast<U32>(both(a, b) >> (c > 32 ? 32 : c));
    });
}

TEST_F(IntegerInstructions, LogicAndBitCounts) {
    check2<U32>("and.b32", [](U32 a, U32 b) { return a & b; });
    check2<U64>("or.b64", [](U64 a, U64 b) { return a | b; });
    check2<U16>("xor.b16", [](U16 a, U16 b) { return static_cast<U16>(a ^ b); });
    check1<U32>("not.b32", [](U32 a) { return ~a; });
    check1<U32>("cnot.b32", [](U32 a) { return a == 0 ? 1U : 0U; });
    check1<U32>("popc.b32", [](U32 a) { return static_cast<U32>(std::popcount(a)); });
    check1<U64>("popc.b64", [](U64 a) { return static_cast<U32>(std::popcount(a)); });
    check1<U32>("clz.b32", [](U32 a) { return static_cast<U32>(std::countl_zero(a)); });
    check1<U64>("clz.b64", [](U64 a) { return static_cast<U32>(std::countl_zero(a)); });
    check1<U32>("bfind.u32",
                [](U32 a) { return a == 0 ? ~0U : 31U - static_cast<U32>(std::countl_zero(a)); });
    check1<S32>("bfind.s32", [](S32 a) {
        const U32 v = static_cast<U32>(a < 0 ? ~a : a);
        return v == 0 ? ~0U : 31U - static_cast<U32>(std::countl_zero(v));
    });
    check1<U64>("bfind.shiftamt.u64",
                [](U64 a) { return a == 0 ? ~0U : static_cast<U32>(std::countl_zero(a)); });
    check1<U32>("brev.b32", [](U32 a) {
        U32 r = 0;
        for (int k = 0; k < 32; ++k) r |= ((a >> k) & 1U) << (31 - k);
        return r;
    });
    check1<S32>("abs.s32",
                [](S32 a) { return a < 0 ? static_cast<S32>(0U - static_cast<U32>(a)) : a; });
    check1<S64>("neg.s64", [](S64 a) { return static_cast<S64>(U64{0} - static_cast<U64>(a)); });
    check2<S32>("min.s32", [](S32 a, S32 b) { return std::min(a, b); });
    check2<U32>("max.u32", [](U32 a, U32 b) { return std::max(a, b); });
    check2<U64>("min.u64", [](U64 a, U64 b) { return std::min(a, b); });
    check2<S16>("max.s16", [](S16 a, S16 b) { return std::max(a, b); });
}

TEST_F(IntegerInstructions, Lop3FollowsItsTable) {
    for (const U32 table : {0x00U, 0xffU, 0x96U, 0xe8U, 0xcaU, 0x01U, 0x80U, 0x3cU}) {
        const auto a = operand_values<U32>(0), b = operand_values<U32>(1),
                   c = operand_values<U32>(2);
        const auto got =
            execute<U32>("lop3.b32 y, x0, x1, x2, " + std::to_string(table) + ";", a, b, c);
        for (std::size_t k = 0; k < got.size(); ++k) {
            U32 expected = 0;
            for (int bit = 0; bit < 32; ++bit) {
                const U32 row = (((a[k] >> bit) & 1U) << 2) | (((b[k] >> bit) & 1U) << 1) |
                                ((c[k] >> bit) & 1U);
                expected |= ((table >> row) & 1U) << bit;
            }
            ASSERT_EQ(got[k], expected);
        }
    }
}

TEST_F(IntegerInstructions, BitFieldsAreCutAndFilled) {
    for (const U32 pos : {0U, 1U, 5U, 31U, 32U, 40U}) {
        for (const U32 len : {0U, 1U, 8U, 31U, 32U, 60U}) {
            const auto a = operand_values<U32>(0), b = operand_values<U32>(1);
            const std::string field = std::to_string(pos) + ", " + std::to_string(len) + ";";
            const auto u = execute<U32>("bfe.u32 y, x0, " + field, a);
            const auto s = execute<S32>("bfe.s32 y, x0, " + field, a);
            const auto f = execute<U32>("bfi.b32 y, x0, x1, " + field, a, b);
            for (std::size_t k = 0; k < u.size(); ++k) {
                // The manual's loops, bit by bit.
                U32 eu = 0, es = 0, ef = b[k];
                const U32 sign = len == 0 ? 0 : (a[k] >> std::min(pos + len - 1, 31U)) & 1U;
                for (U32 i = 0; i < 32; ++i) {
                    const bool in = i < len && pos + i <= 31;
                    eu |= (in ? (a[k] >> (pos + i)) & 1U : 0U) << i;
                    es |= (in ? (a[k] >> (pos + i)) & 1U : sign) << i;
                    if (in) ef = (ef & ~(1U << (pos + i))) | (((a[k] >> i) & 1U) << (pos + i));
                }
                ASSERT_EQ(u[k], eu) << pos << " " << len;
                ASSERT_EQ(static_cast<U32>(s[k]), es) << pos << " " << len << " " << a[k];
                ASSERT_EQ(f[k], ef) << pos << " " << len;
            }
        }
    }
}

TEST_F(IntegerInstructions, CarriesChain) {
    const auto a = operand_values<U64>(0), b = operand_values<U64>(1);
    const std::string split =
        ".reg .b32 al, ah, bl, bh, rl, rh; mov.b64 {al, ah}, x0; mov.b64 {bl, bh}, x1;";
    const auto sum = execute<U64>(
        split + "add.cc.u32 rl, al, bl; addc.u32 rh, ah, bh; mov.b64 y, {rl, rh};", a, b);
    const auto difference = execute<U64>(
        split + "sub.cc.u32 rl, al, bl; subc.u32 rh, ah, bh; mov.b64 y, {rl, rh};", a, b);
    const auto product =
        execute<U64>(split +
                         "mul.lo.u32 rl, al, bl; mul.hi.u32 rh, al, bl; mad.lo.cc.u32 rl, al, 3, "
                         "rl; madc.hi.u32 rh, al, 3, rh; mov.b64 y, {rl, rh};",
                     a, b);
    for (std::size_t k = 0; k < a.size(); ++k) {
        ASSERT_EQ(sum[k], a[k] + b[k]);
        ASSERT_EQ(difference[k], a[k] - b[k]);
        ASSERT_EQ(product[k], U64{U32(a[k])} * U32(b[k]) + U64{U32(a[k])} * 3);
    }
}

TEST_F(IntegerInstructions, BytesArePermutedAndMultiplied) {
    check3<U32>("prmt.b32", [](U32 a, U32 b, U32 c) {
        const U64 both = (static_cast<U64>(b) << 32) | a;
        U32 out = 0;
        for (int k = 0; k < 4; ++k) {
            const U32 n = (c >> (4 * k)) & 15U;
            U32 byte = (both >> (8 * (n & 7U))) & 0xffU;
            if ((n & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xff : 0;
            out |= byte << (8 * k);
        }
        return out;
    });
    check3<U32>("dp4a.u32.s32", [](U32 a, U32 b, U32 c) {
        for (int k = 0; k < 4; ++k)
            c += static_cast<U32>(static_cast<S32>((a >> (8 * k)) & 0xff) *
                                  static_cast<std::int8_t>(b >> (8 * k)));
        return c;
    });
    check3<U32>("dp2a.lo.s32.u32", [](U32 a, U32 b, U32 c) {
        for (int k = 0; k < 2; ++k)
            c += static_cast<U32>(static_cast<S16>(a >> (16 * k)) *
                                  static_cast<S32>((b >> (8 * k)) & 0xff));
        return c;
    });
    check2<U32>("bmsk.clamp.b32", [](U32 a, U32 b) {
        const U64 len = std::min(b, 32U);
        return a > 31 ? 0U : static_cast<U32>(((U64{1} << len) - 1) << a);
    });
    check2<S32, U32>("szext.clamp.s32", [](S32 a, U32 b) {
        return b > 31   ? a
               : b == 0 ? 0
                        : static_cast<S32>(static_cast<U32>(a) << (32 - b)) >> (32 - b);
    });
}

template <class T>
T flush(T v) {
    return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(T{0}, v) : v;
}

TEST_F(FloatInstructions, ArithmeticIsIeee) {
    check2<float>("add.f32", [](float a, float b) { return a + b; });
    check2<float>("sub.rn.f32", [](float a, float b) { return a - b; });
    check2<float>("mul.f32", [](float a, float b) { return a * b; });
    check2<float>("div.rn.f32", [](float a, float b) { return a / b; });
    check2<double>("add.f64", [](double a, double b) { return a + b; });
    check2<double>("mul.rn.f64", [](double a, double b) { return a * b; });
    check2<double>("div.rn.f64", [](double a, double b) { return a / b; });
    check3<float>("fma.rn.f32", [](float a, float b, float c) { return std::fma(a, b, c); });
    check3<double>("fma.rn.f64", [](double a, double b, double c) { return std::fma(a, b, c); });
    check1<float>("sqrt.rn.f32", [](float a) { return std::sqrt(a); });
    check1<double>("sqrt.rn.f64", [](double a) { return std::sqrt(a); });
    check1<float>("rcp.rn.f32", [](float a) { return 1.0F / a; });
    check2<float>("add.ftz.f32", [](float a, float b) { return flush(flush(a) + flush(b)); });
    check2<float>("mul.ftz.f32", [](float a, float b) { return flush(flush(a) * flush(b)); });
    const auto unit = [](float v) { return v > 0 ? std::min(v, 1.0F) : 0.0F; };
    check2<float>("add.sat.f32", [&](float a, float b) { return unit(a + b); });
    check3<float>("fma.rn.ftz.sat.f32", [&](float a, float b, float c) {
        return unit(flush(std::fma(flush(a), flush(b), flush(c))));
    });
}

/// `f` with operands and result kept from the optimiser, which knows no rounding modes.
template <class R, class F, class... A>
R rounded(int mode, F f, A... operands) {
    const int before = std::fegetround();
    std::fesetround(mode);
    std::tuple<volatile A...> kept(operands...);
    volatile R result = std::apply(f, kept);
    std::fesetround(before);
    return result;
}

TEST_F(FloatInstructions, DirectedRoundingIsHonoured) {
    struct Mode {
        const char* name;
        int mode;
    };
    const auto sum = [](const volatile auto& a, const volatile auto& b) { return a + b; };
    const auto product = [](const volatile auto& a, const volatile auto& b) { return a * b; };
    const auto quotient = [](const volatile auto& a, const volatile auto& b) { return a / b; };
    const auto narrowed = [](const volatile auto& a) { return static_cast<float>(a); };
    for (const Mode& m :
         {Mode{"rz", FE_TOWARDZERO}, Mode{"rm", FE_DOWNWARD}, Mode{"rp", FE_UPWARD}}) {
        const std::string mode = std::string(".") + m.name;
        check2<float>("add" + mode + ".f32",
                      [&](float a, float b) { return rounded<float>(m.mode, sum, a, b); });
        check2<float>("mul" + mode + ".f32",
                      [&](float a, float b) { return rounded<float>(m.mode, product, a, b); });
        check2<double>("div" + mode + ".f64",
                       [&](double a, double b) { return rounded<double>(m.mode, quotient, a, b); });
        check1<S32>("cvt" + mode + ".f32.s32",
                    [&](S32 a) { return rounded<float>(m.mode, narrowed, a); });
        check1<double>("cvt" + mode + ".f32.f64",
                       [&](double a) { return rounded<float>(m.mode, narrowed, a); });
    }
}

template <class T>
T lesser(T a, T b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
template <class T>
T greater(T a, T b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}

TEST_F(FloatInstructions, MinMaxPreferNumbers) {
    check2<float>("min.f32", [](float a, float b) { return lesser(a, b); });
    check2<double>("max.f64", [](double a, double b) { return greater(a, b); });
    check2<float>("min.NaN.f32",
                  [](float a, float b) { return a != a || b != b ? NAN : lesser(a, b); });
    check1<float>("abs.f32", [](float a) { return std::fabs(a); });
    check1<double>("neg.f64", [](double a) { return -a; });
    check2<float>("copysign.f32", [](float a, float b) { return std::copysign(b, a); });
}

TEST_F(FloatInstructions, ApproximationsAreClose) {
    const auto a = operand_values<float>(0);
    const auto check = [&](const char* opcode, double (*exact)(double), double relative, double low,
                           double high) {
        const auto got = execute<float>(std::string(opcode) + " y, x0;", a);
        for (std::size_t k = 0; k < a.size(); ++k) {
            if (!(a[k] >= low && a[k] <= high)) continue;
            const double e = exact(static_cast<double>(a[k]));
            ASSERT_NEAR(got[k], e, std::fabs(e) * relative + 1e-7) << opcode << " " << a[k];
        }
    };
    check(
        "ex2.approx.f32", [](double x) { return std::exp2(x); }, 1e-6, -120, 120);
    check(
        "lg2.approx.f32", [](double x) { return std::log2(x); }, 1e-6, 1e-30, 1e30);
    check(
        "sin.approx.f32", [](double x) { return std::sin(x); }, 1e-6, -1000, 1000);
    check(
        "cos.approx.f32", [](double x) { return std::cos(x); }, 1e-6, -1000, 1000);
    check(
        "tanh.approx.f32", [](double x) { return std::tanh(x); }, 1e-6, -1000, 1000);
    check(
        "rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 1e-6, 1e-30, 1e30);
    check(
        "rcp.approx.ftz.f32", [](double x) { return 1 / x; }, 1e-6, 1e-30, 1e30);
    check(
        "sqrt.approx.f32", [](double x) { return std::sqrt(x); }, 1e-6, 0, 1e30);
}

TEST_F(FloatInstructions, ApproximationsHaveTheirLimits) {
    const std::vector<float> a{INFINITY, -INFINITY, NAN,     0.0F,    -0.0F,
                               -1.0F,    200.0F,    -200.0F, -140.0F, 0x1p-140F};
    const auto e = execute<float>("ex2.approx.f32 y, x0;", a);
    EXPECT_EQ(e[0], INFINITY);
    EXPECT_EQ(e[1], 0.0F);
    EXPECT_NE(e[2], e[2]);
    EXPECT_EQ(e[3], 1.0F);
    EXPECT_EQ(e[6], INFINITY);
    EXPECT_EQ(e[7], 0.0F);
    EXPECT_EQ(e[8], 0x1p-140F);
    EXPECT_EQ(execute<float>("ex2.approx.ftz.f32 y, x0;", a)[8], 0.0F);
    const auto l = execute<float>("lg2.approx.f32 y, x0;", a);
    EXPECT_EQ(l[0], INFINITY);
    EXPECT_NE(l[2], l[2]);
    EXPECT_EQ(l[3], -INFINITY);
    EXPECT_EQ(l[4], -INFINITY);
    EXPECT_NE(l[5], l[5]);
    EXPECT_EQ(l[9], -140.0F);
    EXPECT_EQ(execute<float>("lg2.approx.ftz.f32 y, x0;", a)[9], -INFINITY);
    const auto t = execute<float>("tanh.approx.f32 y, x0;", a);
    EXPECT_EQ(t[0], 1.0F);
    EXPECT_EQ(t[1], -1.0F);
    EXPECT_NE(t[2], t[2]);
    const auto r = execute<float>("rsqrt.approx.f32 y, x0;", a);
    EXPECT_EQ(r[0], 0.0F);
    EXPECT_EQ(r[3], INFINITY);
    EXPECT_EQ(r[4], -INFINITY);
    EXPECT_NE(r[5], r[5]);
}

template <class D, class S>
D to_integer(S v) {
    if (v != v) return sizeof(D) == 8 ? static_cast<D>(U64{1} << 63) : D{0};
    if (v >= std::ldexp(S{1}, std::numeric_limits<D>::digits)) return std::numeric_limits<D>::max();
    if (v < static_cast<S>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
    return static_cast<D>(v);
}

TEST_F(ConvertInstructions, FloatsToIntegersClamp) {
    check1<float>("cvt.rzi.s32.f32", [](float a) { return to_integer<S32>(std::trunc(a)); });
    check1<float>("cvt.rni.s32.f32", [](float a) { return to_integer<S32>(std::nearbyint(a)); });
    check1<float>("cvt.rmi.u32.f32", [](float a) { return to_integer<U32>(std::floor(a)); });
    check1<float>("cvt.rpi.s64.f32", [](float a) { return to_integer<S64>(std::ceil(a)); });
    check1<double>("cvt.rzi.u64.f64", [](double a) { return to_integer<U64>(std::trunc(a)); });
    check1<double>("cvt.rzi.s32.f64", [](double a) { return to_integer<S32>(std::trunc(a)); });
    check1<float>("cvt.rzi.s16.f32", [](float a) { return to_integer<S16>(std::trunc(a)); });
}

TEST_F(ConvertInstructions, IntegersToFloatsRoundToNearest) {
    check1<S32>("cvt.rn.f32.s32", [](S32 a) { return static_cast<float>(a); });
    check1<U32>("cvt.rn.f32.u32", [](U32 a) { return static_cast<float>(a); });
    check1<U64>("cvt.rn.f32.u64", [](U64 a) { return static_cast<float>(a); });
    check1<S64>("cvt.rn.f64.s64", [](S64 a) { return static_cast<double>(a); });
    check1<S16>("cvt.rn.f32.s16", [](S16 a) { return static_cast<float>(a); });
}

TEST_F(ConvertInstructions, FloatsAmongEachOther) {
    check1<float>("cvt.f64.f32", [](float a) { return static_cast<double>(a); });
    check1<double>("cvt.rn.f32.f64", [](double a) { return static_cast<float>(a); });
    check1<float>("cvt.rni.f32.f32", [](float a) { return std::nearbyint(a); });
    check1<float>("cvt.rzi.f32.f32", [](float a) { return std::trunc(a); });
    check1<double>("cvt.rmi.f64.f64", [](double a) { return std::floor(a); });
    check1<float>("cvt.sat.f32.f32", [](float a) { return a > 0 ? std::min(a, 1.0F) : 0.0F; });
    check1<float>("cvt.ftz.f32.f32", [](float a) { return flush(a); });
}

TEST_F(ConvertInstructions, IntegersAmongEachOther) {
    check1<S32>("cvt.s64.s32", [](S32 a) { return static_cast<S64>(a); });
    check1<U32>("cvt.u64.u32", [](U32 a) { return static_cast<U64>(a); });
    check1<U64>("cvt.u32.u64", [](U64 a) { return static_cast<U32>(a); });
    check1<S32>("cvt.s32.s8", [](S32 a) { return static_cast<S32>(static_cast<std::int8_t>(a)); });
    check1<U64>("cvt.s32.s16", [](U64 a) { return static_cast<S32>(static_cast<S16>(a)); });
    check1<S32>("cvt.sat.u8.s32", [](S32 a) { return static_cast<U32>(std::clamp(a, 0, 255)); });
    check1<S64>("cvt.sat.s32.s64",
                [](S64 a) { return static_cast<S32>(std::clamp<S64>(a, INT32_MIN, INT32_MAX)); });
    check1<U32>("cvt.sat.s32.u32",
                [](U32 a) { return static_cast<S32>(std::min(a, 0x7fffffffU)); });
    check1<S32>("cvt.sat.u32.s32", [](S32 a) { return static_cast<U32>(std::max(a, 0)); });
    check1<S32>("cvt.s64.s8", [](S32 a) { return static_cast<S64>(static_cast<std::int8_t>(a)); });
}

TEST_F(ConvertInstructions, HalvesSurviveARoundTrip) {
    std::vector<U32> all(65536);
    for (U32 k = 0; k < all.size(); ++k) all[k] = k;
    const auto back = execute<U32>(
        ".reg .b16 h; .reg .b32 f; cvt.u16.u32 h, x0; cvt.f32.f16 f, h; cvt.rn.f16.f32 h, f; "
        "cvt.u32.u16 y, h;",
        all);
    const auto brain = execute<U32>(
        ".reg .b16 h; .reg .b32 f; cvt.u16.u32 h, x0; cvt.f32.bf16 f, h; cvt.rn.bf16.f32 h, f; "
        "cvt.u32.u16 y, h;",
        all);
    for (U32 k = 0; k < all.size(); ++k) {
        ASSERT_EQ(back[k], (k & 0x7fffU) > 0x7c00U ? 0x7fffU : k);
        ASSERT_EQ(brain[k], (k & 0x7fffU) > 0x7f80U ? 0x7fffU : k);
    }
}

TEST_F(OtherInstructions, ComparisonsOfNumbersAndNans) {
    const auto check = [&](const char* name, auto f) {
        const auto a = operand_values<float>(0), b = operand_values<float>(1);
        const auto got = execute<U32>(
            std::string("setp.") + name + ".f32 p, x0, x1; selp.b32 y, 1, 0, p;", a, b);
        for (std::size_t k = 0; k < a.size(); ++k)
            ASSERT_EQ(got[k] != 0, f(a[k], b[k])) << name << " " << a[k] << " " << b[k];
    };
    const auto nan = [](float a, float b) { return a != a || b != b; };
    check("eq", [](float a, float b) { return a == b; });
    check("ne", [&](float a, float b) { return !nan(a, b) && a != b; });
    check("lt", [](float a, float b) { return a < b; });
    check("ge", [](float a, float b) { return a >= b; });
    check("equ", [&](float a, float b) { return nan(a, b) || a == b; });
    check("neu", [](float a, float b) { return a != b; });
    check("gtu", [&](float a, float b) { return nan(a, b) || a > b; });
    check("num", [&](float a, float b) { return !nan(a, b); });
    check("nan", [&](float a, float b) { return nan(a, b); });
}

TEST_F(OtherInstructions, PredicatesCombine) {
    const auto a = operand_values<S32>(0), b = operand_values<S32>(1);
    const auto got = execute<U32>(
        ".reg .b32 u, v; setp.gt.s32 p, x0, 5; setp.lt.and.s32 p|q, x0, x1, !p; selp.b32 u, 1, 0, "
        "p; selp.b32 v, 2, 0, q; or.b32 y, u, v;",
        a, b);
    const auto sets = execute<U32>("set.hi.u32.u32 y, x0, x1;", a, b);
    const auto floats = execute<float>("set.eq.f32.s32 y, x0, x1;", a, b);
    const auto logic = execute<U32>(
        ".reg .pred r; setp.gt.s32 p, x0, 5; setp.ne.s32 q, x1, 0; xor.pred r, p, q; not.pred r, "
        "r; and.pred r, r, p; @r mov.u32 y, 9; @!r mov.u32 y, 4;",
        a, b);
    for (std::size_t k = 0; k < a.size(); ++k) {
        const bool p = !(a[k] > 5);
        ASSERT_EQ(got[k], (a[k] < b[k] && p ? 1U : 0U) | (!(a[k] < b[k]) && p ? 2U : 0U));
        ASSERT_EQ(sets[k], static_cast<U32>(a[k]) > static_cast<U32>(b[k]) ? ~0U : 0U);
        ASSERT_EQ(floats[k], a[k] == b[k] ? 1.0F : 0.0F);
        const bool r = (a[k] > 5) == (b[k] != 0) && a[k] > 5;
        ASSERT_EQ(logic[k], r ? 9U : 4U);
    }
    check3<U32, U32, S32>("slct.u32.s32", [](U32 x, U32 y, S32 c) { return c >= 0 ? x : y; });
    check3<U64, U64, float>("slct.b64.f32", [](U64 x, U64 y, float c) { return c >= 0 ? x : y; });
}

TEST_F(OtherInstructions, VectorsOfRegistersPackAndUnpack) {
    const auto a = operand_values<U64>(0);
    const auto swapped = execute<U64>(".reg .b32 l, h; mov.b64 {l, h}, x0; mov.b64 y, {h, l};", a);
    const auto quarters =
        execute<U64>(".reg .b16 e, f, g, i; mov.b64 {e, f, g, i}, x0; mov.b64 y, {i, g, f, e};", a);
    for (std::size_t k = 0; k < a.size(); ++k) {
        ASSERT_EQ(swapped[k], (a[k] << 32) | (a[k] >> 32));
        U64 expected = 0;
        for (int part = 0; part < 4; ++part)
            expected |= ((a[k] >> (16 * part)) & 0xffffU) << (16 * (3 - part));
        ASSERT_EQ(quarters[k], expected);
    }
}

TEST_F(OtherInstructions, PropertiesOfFloats) {
    const auto a = operand_values<float>(0);
    const auto check = [&](const char* name, auto f) {
        const auto got =
            execute<U32>(std::string("testp.") + name + ".f32 p, x0; selp.b32 y, 1, 0, p;", a);
        for (std::size_t k = 0; k < a.size(); ++k)
            ASSERT_EQ(got[k] != 0, f(a[k])) << name << " " << a[k];
    };
    check("finite", [](float v) { return std::isfinite(v); });
    check("infinite", [](float v) { return std::isinf(v); });
    check("number", [](float v) { return !std::isnan(v); });
    check("notanumber", [](float v) { return std::isnan(v); });
    check("normal", [](float v) { return std::isnormal(v); });
    check("subnormal", [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; });
}

TEST_F(OtherInstructions, BranchTablesSendEachLaneItsWay) {
    std::vector<U32> a(200);
    for (U32 k = 0; k < a.size(); ++k) a[k] = (k * 7) % 4;
    const auto got = execute<U32>(
        "ts: .branchtargets L0, L1, L2, L1;\nbrx.idx x0, ts;\nL0: mov.u32 y, 10; bra.uni "
        "done;\nL1: mov.u32 y, 20; bra.uni done;\nL2: mov.u32 y, 30;\ndone: add.u32 y, y, x0;",
        a);
    const U32 expected[] = {10, 21, 32, 23};
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_EQ(got[k], expected[a[k]]);
}

TEST_F(OtherInstructions, KernelsMayWaitForTimeToPass) {
    const std::vector<U64> delays{0, 1000, 50000};
    for (const std::string clock : {"%clock64", "%globaltimer"}) {
        const auto waited =
            execute<U64>(".reg .b64 s, e; mov.u64 s, " + clock + ";\nagain: mov.u64 e, " + clock +
                             "; sub.u64 y, e, s; setp.lt.u64 p, y, x0; @p bra again;",
                         delays);
        for (std::size_t k = 0; k < delays.size(); ++k) ASSERT_GE(waited.at(k), delays[k]);
    }
}

TEST_F(OtherInstructions, WarpFunctionsSeeTheirLanes) {
    std::vector<U32> a(96);
    for (U32 k = 0; k < a.size(); ++k) a[k] = (k * 37) % 11;
    const auto any = execute<U32>("match.any.sync.b32 y, x0, 0xffffffff;", a);
    const auto all =
        execute<U32>(".reg .b32 g; and.b32 g, x0, 0; match.all.sync.b32 y|p, g, 0xffffffff;", a);
    const auto sum = execute<U32>("redux.sync.add.u32 y, x0, 0xffffffff;", a);
    const auto top = execute<S32>("redux.sync.max.s32 y, x0, 0xffffffff;", a);
    const auto found = execute<U32>("fns.b32 y, x0, 0, 2;", a);
    for (U32 k = 0; k < a.size(); ++k) {
        U32 same = 0, total = 0, most = 0;
        for (U32 l = 0; l < 32; ++l) {
            same |= static_cast<U32>(a[k / 32 * 32 + l] == a[k]) << l;
            total += a[k / 32 * 32 + l];
            most = std::max(most, a[k / 32 * 32 + l]);
        }
        ASSERT_EQ(any[k], same);
        ASSERT_EQ(all[k], ~0U);
        ASSERT_EQ(sum[k], total);
        ASSERT_EQ(top[k], static_cast<S32>(most));
        int left = 2;
        U32 position = ~0U;
        for (U32 bit = 0; bit < 32 && left > 0; ++bit)
            if (((a[k] >> bit) & 1U) != 0 && --left == 0) position = bit;
        ASSERT_EQ(found[k], position);
    }
}

}  // namespace

}  // namespace simgpu::exec
