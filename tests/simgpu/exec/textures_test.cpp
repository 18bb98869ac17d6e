// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture reads against the formulas of the CUDA programming guide ("Texture Fetching"), which are
// written out here as they stand there.

#include <array>

#include "tests/simgpu/exec/texture_fixture.hpp"

namespace simgpu::exec {

namespace {

using Sum = std::array<double, 4>;

Sum as_sum(const Vec4& v) { return {v.x, v.y, v.z, v.w}; }

/// One coordinate, in texels, after addressing; no value for the border.
std::optional<double> addressed(double x, std::uint32_t n, AddressMode mode, bool normalized) {
    const double extent = n;
    if (!normalized && (mode == AddressMode::Wrap || mode == AddressMode::Mirror))
        mode = AddressMode::Clamp;
    switch (mode) {
        case AddressMode::Wrap:
            return extent * (x - std::floor(x));
        case AddressMode::Mirror: {
            const double part = x - std::floor(x);
            const bool even = std::fmod(std::floor(x), 2.0) == 0;
            return extent * (even ? part : 1 - part);
        }
        case AddressMode::Clamp:
            return std::min(std::max(normalized ? extent * x : x, 0.0), extent - 0.5);
        case AddressMode::Border:
            break;
    }
    const double texels = normalized ? extent * x : x;
    if (texels < 0 || texels >= extent) return std::nullopt;
    return texels;
}

struct Reference {
    const Image& image;
    const Texture& how;
    int axes;

    std::uint32_t extent(int axis) const {
        return axis == 0 ? image.width : axis == 1 ? image.height : image.depth;
    }

    Sum border() const { return {how.border[0], how.border[1], how.border[2], how.border[3]}; }

    Sum nearest(const std::array<float, 3>& at, long slice) const {
        std::array<long, 3> index{0, 0, slice};
        for (int axis = 0; axis < axes; ++axis) {
            const auto k = static_cast<std::size_t>(axis);
            const auto x = addressed(static_cast<double>(at[k]), extent(axis), how.address[k],
                                     how.normalized_coordinates);
            if (!x) return border();
            index[k] =
                std::min(static_cast<long>(std::floor(*x)), static_cast<long>(extent(axis)) - 1);
        }
        return as_sum(image.at(index[0], index[1], index[2]));
    }

    /// T[i] of the formulas, where i may lie outside.
    std::optional<long> neighbour(long i, int axis) const {
        const long n = extent(axis);
        AddressMode mode = how.address[static_cast<std::size_t>(axis)];
        const bool repeats = mode == AddressMode::Wrap || mode == AddressMode::Mirror;
        if (repeats && !how.normalized_coordinates) mode = AddressMode::Clamp;
        if (mode == AddressMode::Border && (i < 0 || i >= n)) return std::nullopt;
        if (mode == AddressMode::Clamp) return std::min(std::max(i, 0L), n - 1);
        // Step by step, into the texture.
        while (mode == AddressMode::Wrap && i < 0) i += n;
        while (mode == AddressMode::Wrap && i >= n) i -= n;
        while (i < 0 || i >= n) i = i < 0 ? -1 - i : 2 * n - 1 - i;
        return i;
    }

    Sum linear(const std::array<float, 3>& at, long slice) const {
        std::array<long, 3> first{0, 0, 0};
        std::array<double, 3> part{};
        for (int axis = 0; axis < axes; ++axis) {
            const auto k = static_cast<std::size_t>(axis);
            const double scale = how.normalized_coordinates ? extent(axis) : 1;
            const double from = static_cast<double>(at[k]) * scale - 0.5;
            first[k] = static_cast<long>(std::floor(from));
            // 9 bits, 8 of them behind the point.
            part[k] = std::round((from - std::floor(from)) * 256) / 256;
        }
        Sum sum{};
        for (int corner = 0; corner < 1 << axes; ++corner) {
            double weight = 1;
            bool outside = false;
            std::array<long, 3> index{0, 0, slice};
            for (int axis = 0; axis < axes; ++axis) {
                const auto k = static_cast<std::size_t>(axis);
                const int step = (corner >> axis) & 1;
                weight *= step == 1 ? part[k] : 1 - part[k];
                const auto i = neighbour(first[k] + step, axis);
                outside = outside || !i;
                index[k] = i.value_or(0);
            }
            const Sum texel = outside ? border() : as_sum(image.at(index[0], index[1], index[2]));
            for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weight * texel[k];
        }
        return sum;
    }

    Sum at(const std::array<float, 3>& point, long slice = 0) const {
        return how.linear_filter ? linear(point, slice) : nearest(point, slice);
    }
};

void expect_near(const Sum& expected, const Vec4& seen, const std::string& where) {
    const Sum got = as_sum(seen);
    for (std::size_t k = 0; k < got.size(); ++k)
        ASSERT_NEAR(expected[k], got[k], 2e-5) << where << ", channel " << k;
}

std::string shown(const Texture& how, const Vec4& point) {
    std::string text = how.linear_filter ? "linear" : "point";
    text += how.normalized_coordinates ? ", normalized, modes" : ", modes";
    for (const AddressMode mode : how.address) text += " " + std::to_string(static_cast<int>(mode));
    for (const float x : {point.x, point.y, point.z, point.w}) text += ", " + std::to_string(x);
    return text;
}

constexpr AddressMode kModes[] = {AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror,
                                  AddressMode::Border};

class TextureReads : public TextureTest {
  protected:
    /// Calls `f` for every way to sample that does not depend on the shape.
    template <class F>
    void each_way(Texture texture, F f) {
        texture.border = {1.5F, -2, 3, 0.25F};
        for (int way = 0; way < 16; ++way) {
            texture.linear_filter = (way & 1) != 0;
            texture.normalized_coordinates = (way & 2) != 0;
            // Another mode for each axis, so that axes are not mixed up.
            for (std::size_t axis = 0; axis < 3; ++axis)
                texture.address[axis] = kModes[(static_cast<std::size_t>(way) / 4 + axis) % 4];
            ASSERT_NO_FATAL_FAILURE(f(texture));
        }
    }

    std::vector<Vec4> points_for(const Texture& texture, const Image& image, std::size_t count) {
        auto points = random_points(count, -1.5F, 2.5F);
        if (texture.normalized_coordinates) return points;
        for (Vec4& p : points) {
            p.x *= static_cast<float>(image.width);
            p.y *= static_cast<float>(image.height);
            p.z *= static_cast<float>(image.depth);
        }
        return points;
    }

    void compare(const char* kernel, const Image& image, int axes) {
        each_way(texture_of(image), [&](const Texture& texture) {
            const auto points = points_for(texture, image, 200);
            const auto seen = sampled<Vec4>(kernel, texture, points);
            const Reference reference{image, texture, axes};
            for (std::size_t i = 0; i < points.size(); ++i) {
                const Vec4& p = points[i];
                ASSERT_NO_FATAL_FAILURE(
                    expect_near(reference.at({p.x, p.y, p.z}), seen[i], shown(texture, p)));
            }
        });
    }
};

}  // namespace

TEST_P(TextureReads, OfLinesFollowTheFormulas) { compare("line", random_image(37, 1, 1), 1); }
TEST_P(TextureReads, OfPlanesFollowTheFormulas) { compare("plane", random_image(19, 23, 1), 2); }
TEST_P(TextureReads, OfVolumesFollowTheFormulas) { compare("volume", random_image(7, 5, 11), 3); }

TEST_P(TextureReads, OfLayersStayInTheirLayerWhichIsClamped) {
    const Image image = random_image(13, 6, 5);
    each_way(texture_of(image), [&](const Texture& texture) {
        auto points = points_for(texture, image, 100);
        for (std::size_t i = 0; i < points.size(); ++i) points[i].w = static_cast<float>(i % 9) - 2;
        const auto seen = sampled<Vec4>("planes", texture, points);
        const Reference reference{image, texture, 2};
        for (std::size_t i = 0; i < points.size(); ++i) {
            const Vec4& p = points[i];
            const long layer = std::min(std::max(static_cast<long>(p.w), 0L), 4L);
            ASSERT_NO_FATAL_FAILURE(
                expect_near(reference.at({p.x, p.y, 0}, layer), seen[i], shown(texture, p)));
        }
    });
    // Layers of lines lie one row apart.
    Texture lines = texture_of(image);
    lines.levels[0].height = 1;
    lines.levels[0].depth = 5;
    lines.levels[0].slice_bytes = lines.levels[0].row_bytes;
    const auto seen = sampled<Vec4>("lines", lines, {{3.5F, 0, 0, 2}, {3.5F, 0, 0, 9}});
    EXPECT_EQ(image.at(3, 2, 0).x, seen[0].x);
    EXPECT_EQ(image.at(3, 4, 0).x, seen[1].x);
}

TEST_P(TextureReads, WeightsHaveEightBits) {
    Texture texture;
    const std::vector<float> texels{0, 256};
    texture.levels = {place(texels.data(), 2, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Float, 32, 1};
    texture.address.fill(AddressMode::Clamp);
    texture.linear_filter = true;
    std::vector<Vec4> points;
    for (int k = 0; k < 64; ++k)
        points.push_back({0.5F + static_cast<float>(k) / 1024, 0.5F, 0, 0});
    const auto seen = sampled<float>("plane_scalar", texture, points);
    for (int k = 0; k < 64; ++k)
        EXPECT_EQ(static_cast<float>((k + 2) / 4), seen[static_cast<std::size_t>(k)]) << k;
}

TEST_P(TextureReads, OfCubesChooseTheFace) {
    const Image image = random_image(4, 4, 12);
    Texture texture = texture_of(image);
    texture.normalized_coordinates = true;
    // The middle of a texel on each face, by the guide's table: face, direction, texel.
    struct Case {
        long face;
        Vec4 direction;
        long x, y;
    };
    const Case cases[] = {
        {0, {1, 0.25F, -0.75F, 0}, 3, 1}, {1, {-1, 0.25F, -0.75F, 0}, 0, 1},
        {2, {0.25F, 1, -0.75F, 0}, 2, 0}, {3, {0.25F, -1, -0.75F, 0}, 2, 3},
        {4, {0.25F, -0.75F, 1, 0}, 2, 3}, {5, {0.25F, -0.75F, -1, 0}, 1, 3},
        {0, {4, 1, -3, 0}, 3, 1},
    };
    std::vector<Vec4> points;
    for (const Case& one : cases) points.push_back(one.direction);
    const auto seen = sampled<Vec4>("cube", texture, points);
    for (Vec4& point : points) point.w = 1;
    const auto second = sampled<Vec4>("cubes", texture, points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Case& one = cases[i];
        EXPECT_EQ(image.at(one.x, one.y, one.face).x, seen[i].x) << i;
        EXPECT_EQ(image.at(one.x, one.y, one.face + 6).x, second[i].x) << i;
    }
}

TEST_P(TextureReads, OfLevelsMixOrChooseThem) {
    const Image fine = random_image(16, 8, 1), half = random_image(8, 4, 1),
                quarter = random_image(4, 2, 1);
    Texture texture = texture_of(fine);
    texture.levels = {place(fine), place(half), place(quarter)};
    texture.normalized_coordinates = true;
    texture.address.fill(AddressMode::Mirror);
    const Image* images[] = {&fine, &half, &quarter};
    for (int way = 0; way < 8; ++way) {
        texture.linear_filter = (way & 1) != 0;
        texture.linear_between_levels = (way & 2) != 0;
        texture.level_bias = (way & 4) != 0 ? 0.25F : 0;
        texture.least_level = (way & 4) != 0 ? 0.5F : 0;
        texture.most_level = (way & 4) != 0 ? 1.75F : 9;
        const auto points = random_points(200, -1, 3);
        const auto seen = sampled<Vec4>("plane_level", texture, points);
        for (std::size_t i = 0; i < points.size(); ++i) {
            const Vec4& p = points[i];
            const double lod = std::min(
                std::max({static_cast<double>(p.w) + static_cast<double>(texture.level_bias),
                          static_cast<double>(texture.least_level), 0.0}),
                std::min(static_cast<double>(texture.most_level), 2.0));
            const auto level = [&](double which) {
                const auto k = static_cast<std::size_t>(std::min(which, 2.0));
                return Reference{*images[k], texture, 2}.at({p.x, p.y, 0});
            };
            Sum expected = level(std::floor(lod + 0.5));
            if (texture.linear_between_levels) {
                const double part = std::round((lod - std::floor(lod)) * 256) / 256;
                const Sum a = level(std::floor(lod)), b = level(std::floor(lod) + 1);
                for (std::size_t k = 0; k < 4; ++k) expected[k] = (1 - part) * a[k] + part * b[k];
            }
            ASSERT_NO_FATAL_FAILURE(expect_near(expected, seen[i], shown(texture, p)));
        }
    }
}

TEST_P(TextureReads, OfLevelsThatAreNoNumbersStayInside) {
    const Image fine = random_image(4, 4, 1), half = random_image(2, 2, 1);
    Texture texture = texture_of(fine);
    texture.levels = {place(fine), place(half)};
    texture.normalized_coordinates = true;
    const float none = std::nanf("");
    const std::vector<Vec4> points{{0, 0, 0, 9}, {0, 0, 0, none}, {0, 0, 0, -1}};
    for (int way = 0; way < 4; ++way) {
        texture.linear_between_levels = (way & 1) != 0;
        texture.least_level = (way & 2) != 0 ? none : 0;
        texture.most_level = none;
        const auto seen = sampled<Vec4>("plane_level", texture, points);
        if ((way & 2) == 0) {
            EXPECT_EQ(half.at(0, 0, 0).x, seen[0].x);
        }
        EXPECT_EQ(fine.at(0, 0, 0).x, seen[1].x);
        EXPECT_EQ(fine.at(0, 0, 0).x, seen[2].x);
    }
}

TEST_P(TextureReads, GradientsChooseTheLevel) {
    std::vector<Image> images = {random_image(16, 16, 1), random_image(8, 8, 1),
                                 random_image(4, 4, 1)};
    Texture texture = texture_of(images[0]);
    texture.levels = {place(images[0]), place(images[1]), place(images[2])};
    texture.normalized_coordinates = true;
    texture.most_level = 9;
    // Steps of one texel, of two and of four in x, then of a quarter and of two in y.
    const std::vector<Vec4> points = {
        {0.3F, 0.3F, 1.0F / 16, 0},  {0.3F, 0.3F, 2.0F / 16, 1.0F / 16}, {0.3F, 0.3F, 4.0F / 16, 0},
        {0.3F, 0.3F, 0, 0.25F / 16}, {0.3F, 0.3F, 0, 2.0F / 16},         {0.3F, 0.3F, 0, 0}};
    const std::size_t levels[] = {0, 1, 2, 0, 1, 0};
    const auto seen = sampled<Vec4>("plane_gradient", texture, points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Image& image = images[levels[i]];
        const long at = static_cast<long>(0.3 * image.width);
        EXPECT_EQ(image.at(at, at, 0).y, seen[i].y) << i;
    }
}

TEST_P(TextureReads, IntegersStayOrBecomePartsOfOne) {
    const std::vector<std::int8_t> texels{-128, -127, 127, 0, 64, 1, 2, -1};
    Texture texture;
    texture.levels = {place(texels.data(), 2, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Signed, 8, 4};
    const std::vector<Vec4> points{{0.5F, 0.5F, 0, 0}, {1.5F, 0.5F, 0, 0}};
    const auto parts = sampled<Vec4>("plane", texture, points);
    EXPECT_EQ(-1.0F, parts[0].x);
    EXPECT_EQ(-1.0F, parts[0].y);
    EXPECT_EQ(1.0F, parts[0].z);
    EXPECT_EQ(0.0F, parts[0].w);
    EXPECT_EQ(64.0F / 127, parts[1].x);
    texture.read_as_integer = true;
    const auto integers = sampled<std::array<int, 4>>("plane_integers", texture, points);
    EXPECT_EQ((std::array<int, 4>{-128, -127, 127, 0}), integers[0]);
    EXPECT_EQ((std::array<int, 4>{64, 1, 2, -1}), integers[1]);
}

TEST_P(TextureReads, FormatsAreReadAsTheyAre) {
    const std::vector<std::uint8_t> bytes{0, 255, 51, 7};
    Texture texture;
    texture.levels = {place(bytes.data(), 1, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Unsigned, 8, 4};
    const std::vector<Vec4> middle{{0.5F, 0.5F, 0, 0}};
    Vec4 seen = sampled<Vec4>("plane", texture, middle)[0];
    EXPECT_EQ(0.0F, seen.x);
    EXPECT_EQ(1.0F, seen.y);
    EXPECT_EQ(0.2F, seen.z);
    texture.srgb = true;
    seen = sampled<Vec4>("plane", texture, middle)[0];
    EXPECT_NEAR(0.0331F, seen.z, 1e-4);  // (0.2 + 0.055 over 1.055) to 2.4
    EXPECT_EQ(7.0F / 255, seen.w);       // not a colour
    texture.srgb = false;
    texture.format = {TexelFormat::Kind::Unsigned, 16, 2};
    seen = sampled<Vec4>("plane", texture, middle)[0];
    EXPECT_EQ(65280.0F / 65535, seen.x);
    EXPECT_EQ(0.0F, seen.z);
    EXPECT_EQ(1.0F, seen.w);
    const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x3555, 0x0001};
    texture.levels = {place(halves.data(), 1, 1, 1, 8)};
    texture.format = {TexelFormat::Kind::Float, 16, 4};
    seen = sampled<Vec4>("plane", texture, middle)[0];
    EXPECT_EQ(1.0F, seen.x);
    EXPECT_EQ(-2.0F, seen.y);
    EXPECT_NEAR(1.0F / 3, seen.z, 1e-4);
    EXPECT_EQ(std::ldexp(1.0F, -24), seen.w);
    const std::vector<int> words{-5};
    texture.levels = {place(words.data(), 1, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Signed, 32, 1};
    EXPECT_EQ((std::array<int, 4>{-5, 0, 0, 1}),
              (sampled<std::array<int, 4>>("plane_integers", texture, middle)[0]));
}

TEST_P(TextureReads, OfPitchedRowsSkipWhatIsBetween) {
    std::vector<float> rows(16 * 3, -1);
    for (std::size_t y = 0; y < 3; ++y)
        for (std::size_t x = 0; x < 5; ++x) rows[16 * y + x] = static_cast<float>(10 * y + x);
    Texture texture;
    texture.levels = {{memory.upload(rows), 5, 3, 1, 64, 0}};
    texture.format = {TexelFormat::Kind::Float, 32, 1};
    texture.address.fill(AddressMode::Clamp);
    const auto seen = sampled<float>("plane_scalar", texture,
                                     {{4.5F, 2.5F, 0, 0}, {9, 9, 0, 0}, {-3, 1.5F, 0, 0}});
    EXPECT_EQ((std::vector<float>{24, 24, 10}), seen);
}

TEST_P(TextureReads, FetchedByNumberAreZeroOutside) {
    const auto texels = random_floats(100);
    Texture texture;
    texture.levels = {place(texels.data(), 100, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Float, 32, 1};
    texture.address.fill(AddressMode::Border);
    const auto seen = sampled<float>("fetch_scalar", texture,
                                     {{0, 0, 0, 0}, {99, 0, 0, 0}, {100, 0, 0, 0}, {-1, 0, 0, 0}});
    EXPECT_EQ((std::vector<float>{texels[0], texels[99], 0, 0}), seen);
    const std::vector<std::int16_t> pairs{1, -2, 3, -4};
    texture.levels = {place(pairs.data(), 2, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Signed, 16, 2};
    texture.read_as_integer = true;
    using Pair = std::array<std::int16_t, 2>;
    const auto fetched = sampled<Pair>("fetch_short", texture, {{1, 0, 0, 0}, {0, 0, 0, 0}});
    EXPECT_EQ((Pair{3, -4}), fetched[0]);
    EXPECT_EQ((Pair{1, -2}), fetched[1]);
}

TEST_P(TextureReads, GatherTheFourThatAFilterMixes) {
    const Image image = random_image(8, 8, 1);
    Texture texture = texture_of(image);
    texture.address.fill(AddressMode::Clamp);
    const std::vector<Vec4> points{{3.2F, 5.9F, 0, 0}, {0, 0, 0, 0}};
    const auto red = sampled<Vec4>("gather_red", texture, points);
    // Between texels 2 and 3 in x, 5 and 6 in y.
    EXPECT_EQ(image.at(2, 6, 0).x, red[0].x);
    EXPECT_EQ(image.at(3, 6, 0).x, red[0].y);
    EXPECT_EQ(image.at(3, 5, 0).x, red[0].z);
    EXPECT_EQ(image.at(2, 5, 0).x, red[0].w);
    EXPECT_EQ(image.at(0, 0, 0).x, red[1].x);
    const auto blue = sampled<Vec4>("gather_blue", texture, points);
    EXPECT_EQ(image.at(3, 5, 0).z, blue[0].z);
}

TEST_P(TextureReads, LanesMayLookThroughDifferentTextures) {
    const auto even = random_floats(32), odd = random_floats(32);
    for (const std::uint64_t handle : {5U, 6U}) {
        Texture& texture = objects.textures[handle];
        texture.levels = {place((handle == 5 ? even : odd).data(), 32, 1, 1, 4)};
        texture.format = {TexelFormat::Kind::Float, 32, 1};
    }
    const std::uint64_t out = memory.allocate(128);
    launch_ok("choose", {{1, 1, 1}, {32, 1, 1}, 0},
              params(std::uint64_t{5}, std::uint64_t{6}, out));
    const auto seen = memory.download<float>(out, 32);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ((i % 2 != 0 ? odd : even)[i], seen[i]) << i;
}

TEST_P(TextureReads, TellThatTexelsAreResident) {
    const std::vector<float> texels{7};
    Texture& texture = objects.textures[1];
    texture.levels = {place(texels.data(), 1, 1, 1, 4)};
    texture.format = {TexelFormat::Kind::Float, 32, 1};
    const std::uint64_t out = memory.allocate(128);
    launch_ok("resident", {{1, 1, 1}, {20, 1, 1}, 0}, params(std::uint64_t{1}, out));
    EXPECT_EQ(std::vector<int>(20, 1007), memory.download<int>(out, 20));
}

TEST_P(TextureReads, OfWhatIsNotMappedFault) {
    Texture& texture = objects.textures[1];
    // One page is there, and the next is not.
    texture.levels = {{memory.allocate(8), kPageBytes / 4 + 10, 1, 1, 0, 0}};
    texture.format = {TexelFormat::Kind::Float, 32, 1};
    texture.address.fill(AddressMode::Border);
    const std::vector<Vec4> last{{kPageBytes / 4 - 1, 0, 0, 0}};
    const std::vector<Vec4> beyond{{kPageBytes / 4, 0, 0, 0}};
    const std::uint64_t out = memory.allocate(8);
    const auto fetch = [&](const std::vector<Vec4>& points) {
        return launch("fetch_scalar", {{1, 1, 1}, {1, 1, 1}, 0},
                      params(std::uint64_t{1}, memory.upload(points), out, 1));
    };
    EXPECT_EQ(RunStatus::Ok, fetch(last).status);
    const RunResult result = fetch(beyond);
    EXPECT_EQ(RunStatus::IllegalAddress, result.status);
    EXPECT_EQ(texture.levels[0].va + kPageBytes, result.address);
}

TEST_P(TextureReads, ThroughNoTextureFail) {
    const std::uint64_t out = memory.allocate(8);
    const std::uint64_t points = memory.upload(std::vector<Vec4>{{0, 0, 0, 0}});
    const RunResult result = launch("plane_scalar", {{1, 1, 1}, {1, 1, 1}, 0},
                                    params(std::uint64_t{99}, points, out, 1));
    EXPECT_EQ(RunStatus::UnknownTexture, result.status);
    EXPECT_EQ("texture 99", result.detail);
}

TEST_P(TextureReads, MarkTheKernelsThatDoThem) {
    EXPECT_TRUE(module->find_kernel("plane")->uses_textures);
    EXPECT_TRUE(module->find_kernel("read_line")->uses_textures);
    load_text(read_ptx("kernels", GetParam()));
    for (const ptx::Kernel& kernel : module->kernels) EXPECT_FALSE(kernel.uses_textures);
}

namespace {

/// A kernel in PTX: a texture's number in %t, a place for four words at %out.
std::string ptx_kernel(const std::string& body) {
    return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 out) {
    .reg .b64 %t, %out;
    .reg .b32 %r<9>;
    .reg .f32 %f<5>;
    ld.param.u64 %t, [t];
    ld.param.u64 %out, [out];
)" + body + R"(
    ret;
}
)";
}

}  // namespace

TEST_P(TextureReads, TellTheirShape) {
    load_text(ptx_kernel(R"(
    txq.width.b32 %r1, [%t];
    txq.height.b32 %r2, [%t];
    txq.num_mipmap_levels.b32 %r3, [%t];
    suq.array_size.b32 %r4, [%t];
    st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};
)"));
    Texture& texture = objects.textures[1];
    texture.levels = {{1, 70, 30, 1, 0, 0}, {1, 35, 15, 1, 0, 0}};
    objects.surfaces[1].plane.depth = 9;
    const std::uint64_t out = memory.allocate(16);
    launch_ok("k", {{1, 1, 1}, {1, 1, 1}, 0}, params(std::uint64_t{1}, out));
    EXPECT_EQ((std::vector<int>{70, 30, 2, 9}), memory.download<int>(out, 4));
}

TEST_P(TextureReads, ByTexelsNumbersAreNotFiltered) {
    load_text(ptx_kernel(R"(
    mov.u32 %r5, 2;
    mov.u32 %r6, 9;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%t, {%r5, %r6}];
    st.global.v4.f32 [%out], {%f1, %f2, %f3, %f4};
)"));
    const Image image = random_image(4, 4, 1);
    Texture& texture = objects.textures[1] = texture_of(image);
    texture.linear_filter = true;
    texture.address.fill(AddressMode::Clamp);
    const std::uint64_t out = memory.allocate(16);
    launch_ok("k", {{1, 1, 1}, {1, 1, 1}, 0}, params(std::uint64_t{1}, out));
    EXPECT_EQ(image.at(2, 3, 0).z, memory.download<Vec4>(out, 1)[0].z);
}

TEST_P(TextureReads, ThatAreNotKnownAreNamed) {
    for (const char* instruction :
         {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%t, {%f1, %f2}], {%r1, %r2};",
          "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%t, {%r1, %r1, %r2, %r2}];",
          "tex.2d.v4.f16.f32 {%r1, %r2, %r3, %r4}, [%t, {%f1, %f2}];",
          "suld.p.1d.v4.b32.trap {%r1, %r2, %r3, %r4}, [%t, {%r1}];",
          "sured.b.add.1d.u32.trap [%t, {%r1}], %r2;", "txq.filter_mode.b32 %r1, [%t];"}) {
        load_text(ptx_kernel(instruction));
        const std::string start(instruction, std::strcspn(instruction, " "));
        EXPECT_EQ(0U, module->find_kernel("k")->unknown.find(start)) << instruction;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, TextureReads,
                         testing::Values("compute_75", "compute_80", "compute_90", "compute_120"));

}  // namespace simgpu::exec
