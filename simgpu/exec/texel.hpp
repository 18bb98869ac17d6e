// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "simgpu/exec/sampler.hpp"
#include "simgpu/exec/texture.hpp"

namespace simgpu::exec {

inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Whether its texels are floats when read: by format, or as parts of one.
bool gives_floats(const Texture& texture);

/// The texel at `bytes`, as the texture is read.
Texel read_texel(const Texture& texture, const std::byte* bytes);

/// What lies outside.
Texel border_texel(const Texture& texture);

}  // namespace simgpu::exec
