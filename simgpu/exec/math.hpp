// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <bit>
#include <cstdint>

/// The device's approximate functions. Each is a fixed series of IEEE operations in double
/// precision, so that every CPU gives the same bits, and far more exact than the hardware's
/// promise. No branches: the lanes' loops over them become vector code.
namespace simgpu::exec::SIMGPU_ISA {

/// Adding it rounds a double to an integer, which is then in the low bits.
inline constexpr double kRoundMagic = 6755399441055744.0;

[[gnu::always_inline]] inline std::int64_t bits_of(double value) {
    return std::bit_cast<std::int64_t>(value);
}
[[gnu::always_inline]] inline double double_of(std::int64_t bits) {
    return std::bit_cast<double>(bits);
}

/// 2^x for x in [-1000, 1000].
[[gnu::always_inline]] inline double exp2_double(double x) {
    const double rounded = x + kRoundMagic;
    const double f = (x - (rounded - kRoundMagic)) * 0.69314718055994530942;
    double p = 1.0 / 39916800;
    p = p * f + 1.0 / 3628800;
    p = p * f + 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    return p * double_of((bits_of(rounded) + 1023) << 52);
}

[[gnu::always_inline]] inline float approximate_exp2(float a) {
    double x = static_cast<double>(a);
    x = x > 200.0 ? 200.0 : x;
    x = x < -200.0 ? -200.0 : x;
    const float y = static_cast<float>(exp2_double(x));
    return a != a ? a : y;
}

[[gnu::always_inline]] inline float approximate_log2(float a) {
    const double x = static_cast<double>(a);
    // Without a sign: the bits of zeros and negative numbers, whose results are set at the end,
    // wrap.
    const auto bits = static_cast<std::uint64_t>(bits_of(x));
    // Exponent such that the fraction lies in [sqrt(1/2), sqrt(2)).
    const std::uint64_t shifted = bits - 0x3fe6a09e00000000;
    const std::uint64_t exponent_bits = shifted & 0xfff0000000000000U;
    const double m = double_of(static_cast<std::int64_t>(bits - exponent_bits));
    const std::int64_t exponent = static_cast<std::int64_t>(exponent_bits) >> 52;
    const double e = double_of(bits_of(kRoundMagic) + exponent) - kRoundMagic;
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    float y = static_cast<float>(p * s * 2.88539008177792681472 + e);
    y = a == 0.0F ? -__builtin_inff() : y;
    y = a == __builtin_inff() ? a : y;
    return a < 0.0F || a != a ? __builtin_nanf("") : y;
}

/// sin(x + quarters * pi / 2).
[[gnu::always_inline]] inline float sine(float a, std::int64_t quarters) {
    const double x = static_cast<double>(a);
    const double rounded = x * 0.63661977236758134308 + kRoundMagic;
    const double k = rounded - kRoundMagic;
    const double r = (x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11;
    const std::int64_t quadrant = bits_of(rounded) + quarters;
    const double z = r * r;
    double s = -1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * r + r;
    double c = 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1.0;
    const double picked = (quadrant & 1) != 0 ? c : s;
    return static_cast<float>((quadrant & 2) != 0 ? -picked : picked);
}

[[gnu::always_inline]] inline float approximate_tanh(float a) {
    double x = static_cast<double>(a);
    x = x > 20.0 ? 20.0 : x;
    x = x < -20.0 ? -20.0 : x;
    const double t = exp2_double(x * 2.88539008177792681472);
    const double large = 1.0 - 2.0 / (t + 1.0);
    const double small = x - x * x * x * (1.0 / 3);
    const float y = static_cast<float>(x < 0.01 && x > -0.01 ? small : large);
    return a != a ? a : y;
}

/// binary16 to float: exact.
[[gnu::always_inline]] inline float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = (static_cast<std::uint32_t>(h) & 0x8000U) << 16;
    const std::uint32_t rest = h & 0x7fffU;
    // Scaling by 2^112 moves the exponent, subnormals included.
    const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112F;
    const std::uint32_t bits =
        rest >= 0x7c00U ? (0x7f800000U | (rest << 13)) : std::bit_cast<std::uint32_t>(scaled);
    return std::bit_cast<float>(sign | bits);
}

/// A double to a float-like format of `kMantissa` stored bits and 2^`kBias` range, rounded once to
/// nearest even; NaN becomes 0x7fff as on the device.
template <int kMantissa, int kBias>
[[gnu::always_inline]] inline std::uint16_t narrow_double(double value) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
    const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000U);
    const std::uint64_t magnitude = bits & 0x7fffffffffffffffU;
    constexpr std::uint16_t kInfinity = static_cast<std::uint16_t>(((2 * kBias + 1) << kMantissa));
    if (magnitude > 0x7ff0000000000000U) return 0x7fff;
    const int exponent = static_cast<int>(magnitude >> 52) - 1023 + kBias;
    if (exponent > 2 * kBias) return static_cast<std::uint16_t>(sign | kInfinity);
    const std::uint64_t fraction = (magnitude & 0xfffffffffffffU) | 0x10000000000000U;
    int drop = 52 - kMantissa;
    std::uint64_t base = 0;
    if (exponent >= 1) {
        base = static_cast<std::uint64_t>(exponent - 1) << kMantissa;
    } else {
        drop += 1 - exponent;
    }
    if (drop > 63) return sign;
    const std::uint64_t kept = fraction >> drop;
    const std::uint64_t lost = fraction & ((std::uint64_t{1} << drop) - 1);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const std::uint64_t up = lost > half || (lost == half && (kept & 1U) != 0) ? 1 : 0;
    return static_cast<std::uint16_t>(sign | (base + kept + up));
}

[[gnu::always_inline]] inline std::uint16_t double_to_half(double value) {
    return narrow_double<10, 15>(value);
}
[[gnu::always_inline]] inline std::uint16_t double_to_bf16(double value) {
    return narrow_double<7, 127>(value);
}
[[gnu::always_inline]] inline float bf16_to_float(std::uint16_t b) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

}  // namespace simgpu::exec::SIMGPU_ISA
