// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/texel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simgpu/half_float.hpp"

namespace simgpu::exec {

namespace {

using Kind = TexelFormat::Kind;

/// sRGB's curve, from IEC 61966-2-1.
float linear_light(float encoded) {
    return encoded <= 0.04045F
               ? encoded / 12.92F
               : static_cast<float>(std::pow((static_cast<double>(encoded) + 0.055) / 1.055, 2.4));
}

/// An integer as a part of one: its type's greatest value is 1, and no signed one is below -1.
float part_of_one(std::int64_t value, const TexelFormat& format) {
    const int value_bits = format.kind == Kind::Signed ? format.bits - 1 : format.bits;
    const auto greatest = static_cast<double>((std::int64_t{1} << value_bits) - 1);
    return std::max(static_cast<float>(static_cast<double>(value) / greatest), -1.0F);
}

std::uint32_t channel_bits(const std::byte* bytes, unsigned bits, std::size_t channel) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes + channel * bits / 8, bits / 8);
    return value;
}

std::int64_t integer_of(std::uint32_t bits, const TexelFormat& format) {
    if (format.kind == Kind::Unsigned) return bits;
    const unsigned unused = 32U - format.bits;
    return static_cast<std::int32_t>(bits << unused) >> unused;
}

std::uint32_t word_of(std::uint32_t bits, const Texture& texture, std::size_t channel) {
    const TexelFormat& format = texture.format;
    if (format.kind == Kind::Float)
        return format.bits == 16 ? bits_of(half_to_float(static_cast<std::uint16_t>(bits))) : bits;
    const std::int64_t value = integer_of(bits, format);
    if (!gives_floats(texture)) return static_cast<std::uint32_t>(value);
    const float part = part_of_one(value, format);
    const bool curved =
        texture.srgb && format.kind == Kind::Unsigned && format.bits == 8 && channel < 3;
    return bits_of(curved ? linear_light(part) : part);
}

}  // namespace

bool gives_floats(const Texture& texture) {
    if (texture.format.kind == Kind::Float) return true;
    return !texture.read_as_integer && texture.format.bits != 32;
}

Texel read_texel(const Texture& texture, const std::byte* bytes) {
    const TexelFormat& format = texture.format;
    Texel texel{0, 0, 0, gives_floats(texture) ? bits_of(1.0F) : 1U};
    for (std::size_t channel = 0; channel < format.channels; ++channel)
        texel[channel] = word_of(channel_bits(bytes, format.bits, channel), texture, channel);
    return texel;
}

Texel border_texel(const Texture& texture) {
    Texel texel{};
    for (std::size_t k = 0; k < texel.size(); ++k) texel[k] = bits_of(texture.border[k]);
    return texel;
}

}  // namespace simgpu::exec
