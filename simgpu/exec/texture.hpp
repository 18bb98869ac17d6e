// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstdint>
#include <vector>

/// Textures and surfaces as kernels see them: descriptors, by the number that a program has of
/// them. Texels are looked for in memory at each use, so what is not mapped any more faults.
namespace simgpu::exec {

/// How a texel lies in memory: `channels` (1, 2 or 4) of `bits` (8, 16 or 32) each.
struct TexelFormat {
    enum class Kind : std::uint8_t { Unsigned, Signed, Float };
    Kind kind = Kind::Unsigned;
    std::uint8_t bits = 8;
    std::uint8_t channels = 1;

    std::uint32_t bytes() const { return bits / 8U * channels; }
    bool operator==(const TexelFormat&) const = default;
};

/// One level: rows of `width` texels, `row_bytes` apart, slices (or layers) `slice_bytes` apart.
/// No extent is zero.
struct TexturePlane {
    std::uint64_t va = 0;
    std::uint32_t width = 1;
    std::uint32_t height = 1;
    std::uint32_t depth = 1;
    std::uint64_t row_bytes = 0;
    std::uint64_t slice_bytes = 0;
};

enum class AddressMode : std::uint8_t { Wrap, Clamp, Mirror, Border };

/// A texture object: texels and how they are sampled.
struct Texture {
    /// The whole texture, then each level half of the one before. At least one.
    std::vector<TexturePlane> levels;
    TexelFormat format;
    std::array<AddressMode, 3> address{};
    bool linear_filter = false;
    bool linear_between_levels = false;
    bool normalized_coordinates = false;
    /// Integers of 8 and 16 bits stay integers instead of becoming parts of one.
    bool read_as_integer = false;
    bool srgb = false;
    float level_bias = 0;
    float least_level = 0;
    float most_level = 0;
    /// What lies outside with AddressMode::Border; where integers are read, their bits.
    std::array<float, 4> border{};
};

/// A surface object: bytes of an array.
struct Surface {
    TexturePlane plane;
    TexelFormat format;
};

/// Where a launch finds them. Called from the thread that called `run`.
class Textures {
  public:
    virtual ~Textures() = default;

    /// Null if there is no such object. The answer may be kept until `run` returns.
    virtual const Texture* texture(std::uint64_t handle) = 0;
    virtual const Surface* surface(std::uint64_t handle) = 0;
};

}  // namespace simgpu::exec
