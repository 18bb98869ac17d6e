// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simgpu/exec/texture.hpp"

/// What a texture unit computes, by the formulas of the CUDA programming guide.
namespace simgpu::exec {

/// What an instruction gets: a word per channel, a float's bits or an integer. Channels that the
/// format lacks are zero, the last one of them one.
using Texel = std::array<std::uint32_t, 4>;

/// Which coordinates an instruction names.
enum class TextureShape : std::uint8_t { Line, Plane, Volume, Lines, Planes, Cube, Cubes };

/// Coordinates of one lane. Those that the shape does not have are not looked at.
struct TexturePoint {
    std::array<float, 3> at{};
    /// Where the coordinates are integers, which name texels.
    std::array<std::int32_t, 3> texel{};
    bool integers = false;
    /// Of Lines, Planes and Cubes.
    std::int32_t layer = 0;
};

/// Finds bytes of texels.
class TexelSource {
  public:
    virtual ~TexelSource() = default;
    /// Null if they may not be read, which the source notes for itself.
    virtual const std::byte* bytes(std::uint64_t va) = 0;
};

/// Samples at a level of detail (0: the whole texture). False if a texel could not be read.
bool sample(const Texture& texture, TextureShape shape, const TexturePoint& point, float level,
            TexelSource& source, Texel& out);

/// One channel of the four texels that a linear filter would mix, against the clock from the one
/// at the lower left. False likewise.
bool gather(const Texture& texture, const TexturePoint& point, unsigned channel,
            TexelSource& source, Texel& out);

/// The level whose texels are as far apart as the samples of which these are the differences in x
/// and in y.
float level_of_gradients(const Texture& texture, TextureShape shape, const std::array<float, 3>& dx,
                         const std::array<float, 3>& dy);

}  // namespace simgpu::exec
