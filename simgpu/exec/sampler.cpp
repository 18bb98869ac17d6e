// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "simgpu/exec/texel.hpp"

namespace simgpu::exec {

namespace {

/// Coordinates lie between these: far outside of any texture, and not beyond integers.
constexpr double kFarthest = 1 << 30;

/// Weights of a linear filter have 8 bits behind the point, and one before it.
constexpr double kWeightSteps = 256;

double rounded_weight(double fraction) {
    return std::floor(fraction * kWeightSteps + 0.5) / kWeightSteps;
}

double within(double x) { return x > -kFarthest ? std::min(x, kFarthest) : -kFarthest; }

int dimensions(TextureShape shape) {
    if (shape == TextureShape::Line || shape == TextureShape::Lines) return 1;
    return shape == TextureShape::Volume ? 3 : 2;
}

bool is_layered(TextureShape shape) {
    return shape == TextureShape::Lines || shape == TextureShape::Planes;
}

std::uint32_t extent(const TexturePlane& plane, int axis) {
    return axis == 0 ? plane.width : axis == 1 ? plane.height : plane.depth;
}

/// Wrapping and mirroring are for normalised coordinates; others are clamped.
AddressMode mode_of(const Texture& texture, int axis) {
    const AddressMode mode = texture.address[static_cast<std::size_t>(axis)];
    const bool repeats = mode == AddressMode::Wrap || mode == AddressMode::Mirror;
    return repeats && !texture.normalized_coordinates ? AddressMode::Clamp : mode;
}

/// Which texel of `count` is meant by `index`; none if the border is.
std::optional<std::uint32_t> resolve(std::int64_t index, std::uint32_t count, AddressMode mode) {
    const std::int64_t n = count;
    const bool inside = index >= 0 && index < n;
    if (inside) return static_cast<std::uint32_t>(index);
    std::int64_t period = 0;
    switch (mode) {
        case AddressMode::Border:
            return std::nullopt;
        case AddressMode::Clamp:
            return static_cast<std::uint32_t>(index < 0 ? 0 : n - 1);
        case AddressMode::Wrap:
            period = ((index % n) + n) % n;
            return static_cast<std::uint32_t>(period);
        case AddressMode::Mirror:
            period = ((index % (2 * n)) + 2 * n) % (2 * n);
            return static_cast<std::uint32_t>(period < n ? period : 2 * n - 1 - period);
    }
    return std::nullopt;
}

/// One axis of a sample: a texel, or two to be mixed.
struct AxisTexels {
    std::array<std::optional<std::uint32_t>, 2> index;
    std::array<double, 2> weight{1, 0};
};

/// A place in one level, axis by axis; axes beyond the shape's are at zero.
struct Footprint {
    const TexturePlane* plane = nullptr;
    std::uint32_t slice = 0;
    int axes = 1;
    std::array<AxisTexels, 3> axis;
};

AxisTexels nearest_texel(double x, std::uint32_t count, AddressMode mode) {
    AxisTexels texels;
    texels.index[0] = resolve(static_cast<std::int64_t>(std::floor(within(x))), count, mode);
    return texels;
}

AxisTexels mixed_texels(double x, std::uint32_t count, AddressMode mode) {
    const double from = within(x) - 0.5;
    const double first = std::floor(from);
    const double second_part = rounded_weight(from - first);
    const auto index = static_cast<std::int64_t>(first);
    AxisTexels texels;
    texels.index = {resolve(index, count, mode), resolve(index + 1, count, mode)};
    texels.weight = {1 - second_part, second_part};
    return texels;
}

/// A cube's face, and coordinates in it from 0 to 1.
struct FacePoint {
    std::uint32_t face = 0;
    std::array<float, 2> at{};
};

FacePoint face_point(const std::array<float, 3>& direction) {
    const auto [x, y, z] = direction;
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    std::uint32_t face = 0;
    float s = 0, t = 0, m = 1;
    if (ax >= ay && ax >= az) {
        face = x >= 0 ? 0 : 1;
        s = x >= 0 ? -z : z, t = -y, m = ax;
    } else if (ay >= az) {
        face = y >= 0 ? 2 : 3;
        s = x, t = y >= 0 ? z : -z, m = ay;
    } else {
        face = z >= 0 ? 4 : 5;
        s = z >= 0 ? x : -x, t = -y, m = az;
    }
    if (m == 0) m = 1;
    return {face, {(s / m + 1) / 2, (t / m + 1) / 2}};
}

Footprint footprint(const Texture& texture, TextureShape shape, const TexturePlane& plane,
                    TexturePoint point, bool linear) {
    Footprint found;
    found.plane = &plane;
    found.axes = dimensions(shape);
    const auto last_layer = static_cast<std::int32_t>(plane.depth - 1);
    if (is_layered(shape))
        found.slice = static_cast<std::uint32_t>(std::clamp(point.layer, 0, last_layer));
    const bool cube = shape == TextureShape::Cube || shape == TextureShape::Cubes;
    if (cube) {
        constexpr std::uint32_t kFaces = 6;
        const FacePoint face = face_point(point.at);
        const auto last = static_cast<std::int32_t>(std::max(plane.depth / kFaces, 1U) - 1);
        const std::int32_t layer =
            shape == TextureShape::Cubes ? std::clamp(point.layer, 0, last) : 0;
        found.slice =
            std::min(static_cast<std::uint32_t>(layer) * kFaces + face.face, plane.depth - 1);
        point.at = {face.at[0], face.at[1], 0};
    }
    for (int axis = 0; axis < found.axes; ++axis) {
        const auto k = static_cast<std::size_t>(axis);
        const std::uint32_t count = extent(plane, axis);
        // Faces end where they end, whatever lies beside them.
        const AddressMode mode = cube ? AddressMode::Clamp : mode_of(texture, axis);
        if (point.integers) {
            found.axis[k].index[0] = resolve(point.texel[k], count, mode);
            continue;
        }
        const bool scaled = texture.normalized_coordinates || cube;
        const double x = static_cast<double>(point.at[k]) * (scaled ? count : 1.0);
        found.axis[k] = linear ? mixed_texels(x, count, mode) : nearest_texel(x, count, mode);
    }
    return found;
}

/// A texel of a footprint: bit k of `corner` chooses along axis k. False as `sample`.
bool corner_bytes(const Texture& texture, const Footprint& place, unsigned corner,
                  TexelSource& source, const std::byte*& out) {
    std::array<std::uint32_t, 3> index{0, 0, place.slice};
    out = nullptr;
    for (int axis = 0; axis < place.axes; ++axis) {
        const auto k = static_cast<std::size_t>(axis);
        const auto& chosen = place.axis[k].index[(corner >> axis) & 1U];
        if (!chosen) return true;  // the border
        index[k] = *chosen;
    }
    const TexturePlane& plane = *place.plane;
    out = source.bytes(plane.va + index[2] * plane.slice_bytes + index[1] * plane.row_bytes +
                       std::uint64_t{index[0]} * texture.format.bytes());
    return out != nullptr;
}

bool nearest(const Texture& texture, const Footprint& place, TexelSource& source, Texel& out) {
    const std::byte* bytes = nullptr;
    if (!corner_bytes(texture, place, 0, source, bytes)) return false;
    out = bytes != nullptr ? read_texel(texture, bytes) : border_texel(texture);
    return true;
}

using Sums = std::array<double, 4>;

/// Adds a linear filter's mean in one level, times `part`, to `sums`.
bool add_mixed(const Texture& texture, const Footprint& place, double part, TexelSource& source,
               Sums& sums) {
    for (unsigned corner = 0; corner < 1U << place.axes; ++corner) {
        double weight = part;
        for (int axis = 0; axis < place.axes; ++axis)
            weight *= place.axis[static_cast<std::size_t>(axis)].weight[(corner >> axis) & 1U];
        if (weight == 0) continue;
        const std::byte* bytes = nullptr;
        if (!corner_bytes(texture, place, corner, source, bytes)) return false;
        const Texel texel = bytes != nullptr ? read_texel(texture, bytes) : border_texel(texture);
        for (std::size_t k = 0; k < sums.size(); ++k)
            sums[k] += weight * static_cast<double>(float_of(texel[k]));
    }
    return true;
}

/// The levels that a level of detail mixes, and how much of the second.
struct LevelPair {
    std::size_t first = 0;
    std::size_t second = 0;
    double second_part = 0;
};

LevelPair levels_at(const Texture& texture, float level) {
    const auto last = static_cast<float>(texture.levels.size() - 1);
    // None of these needs be a number, and the bounds may be in the wrong order.
    const float most = texture.most_level < last ? texture.most_level : last;
    const float biased = level + texture.level_bias;
    const float lod = std::max(0.0F, std::min(std::max(texture.least_level, biased), most));
    LevelPair pair;
    if (!texture.linear_between_levels) {
        pair.first = pair.second = static_cast<std::size_t>(std::floor(lod + 0.5F));
        return pair;
    }
    const float first = std::floor(lod);
    pair.first = static_cast<std::size_t>(first);
    pair.second = std::min(pair.first + 1, texture.levels.size() - 1);
    pair.second_part = rounded_weight(static_cast<double>(lod - first));
    return pair;
}

}  // namespace

bool sample(const Texture& texture, TextureShape shape, const TexturePoint& point, float level,
            TexelSource& source, Texel& out) {
    const LevelPair pair = levels_at(texture, level);
    const bool floats = gives_floats(texture);
    const bool linear = texture.linear_filter && floats && !point.integers;
    const auto place = [&](std::size_t which) {
        return footprint(texture, shape, texture.levels[which], point, linear);
    };
    if (!linear && (pair.second_part == 0 || !floats))
        return nearest(texture, place(pair.first), source, out);
    Sums sums{};
    if (!add_mixed(texture, place(pair.first), 1 - pair.second_part, source, sums)) return false;
    if (pair.second_part != 0 &&
        !add_mixed(texture, place(pair.second), pair.second_part, source, sums))
        return false;
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = bits_of(static_cast<float>(sums[k]));
    return true;
}

bool gather(const Texture& texture, const TexturePoint& point, unsigned channel,
            TexelSource& source, Texel& out) {
    // Corners by bits: 1 is to the right, 2 is below (greater y).
    constexpr std::array<unsigned, 4> kOrder{2, 3, 1, 0};
    const Footprint place =
        footprint(texture, TextureShape::Plane, texture.levels.front(), point, true);
    for (std::size_t k = 0; k < out.size(); ++k) {
        const std::byte* bytes = nullptr;
        if (!corner_bytes(texture, place, kOrder[k], source, bytes)) return false;
        const Texel texel = bytes != nullptr ? read_texel(texture, bytes) : border_texel(texture);
        out[k] = texel[channel % texel.size()];
    }
    return true;
}

float level_of_gradients(const Texture& texture, TextureShape shape, const std::array<float, 3>& dx,
                         const std::array<float, 3>& dy) {
    const TexturePlane& plane = texture.levels.front();
    double longest = 0;
    for (const auto* difference : {&dx, &dy}) {
        double squares = 0;
        for (int axis = 0; axis < dimensions(shape); ++axis) {
            const double scale = texture.normalized_coordinates ? extent(plane, axis) : 1.0;
            const double length =
                static_cast<double>((*difference)[static_cast<std::size_t>(axis)]) * scale;
            squares += length * length;
        }
        longest = std::max(longest, std::sqrt(squares));
    }
    constexpr float kFinest = -1000;
    return longest > 0 ? static_cast<float>(std::log2(longest)) : kFinest;
}

}  // namespace simgpu::exec
