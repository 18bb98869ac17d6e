// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <bit>
#include <cstdint>

namespace libswap::simgpu::cudnn {

/// binary16 to float: exact.
inline float float_of_half(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t rest = half & 0x7fffU;
    if (rest >= 0x7c00U) {
        return std::bit_cast<float>(sign | 0x7f800000U | (rest << 13));
    }
    // Scaling by 2^112 moves the exponent, subnormals included.
    const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

/// To binary16, rounded to the nearest, ties to even.
inline std::uint16_t half_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t rest = bits & 0x7fffffffU;
    if (rest > 0x7f800000U) {
        return static_cast<std::uint16_t>(sign | 0x7e00U);
    }
    if (rest >= 0x477ff000U) {  // rounds beyond the largest
        return static_cast<std::uint16_t>(sign | 0x7c00U);
    }
    if (rest < 0x38800000U) {  // subnormal: an addition that leaves the right bits
        const float shifted = std::bit_cast<float>(rest) + 0.5F;
        return static_cast<std::uint16_t>(
            sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    const std::uint32_t rounded = rest + 0xfffU + ((rest >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

inline float float_of_bfloat(std::uint16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// To bfloat16, rounded to the nearest, ties to even.
inline std::uint16_t bfloat_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace libswap::simgpu::cudnn
