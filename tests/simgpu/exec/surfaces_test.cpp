// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Reads and writes through surfaces: x counts bytes, and what lies outside is decided by the
// access.

#include <array>

#include "tests/simgpu/exec/texture_fixture.hpp"

namespace simgpu::exec {

namespace {

struct At {
    int x, y, z, layer;
};

class Surfaces : public TextureTest {
  protected:
    static constexpr std::uint64_t kHandle = 3;

    /// A surface of bytes 0, 1, 2, ... mod 251, of texels of `texel_bytes`.
    void make(std::uint32_t width, std::uint32_t height, std::uint32_t depth,
              std::uint32_t texel_bytes) {
        bytes.resize(std::size_t{width} * height * depth * texel_bytes);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::uint8_t>(i % 251);
        Surface& surface = objects.surfaces[kHandle];
        surface.plane = place(bytes.data(), width, height, depth, texel_bytes);
        surface.format = {TexelFormat::Kind::Unsigned, 8, 1};
        if (texel_bytes == 4) surface.format = {TexelFormat::Kind::Unsigned, 32, 1};
        if (texel_bytes == 16) surface.format = {TexelFormat::Kind::Unsigned, 32, 4};
    }

    template <class T>
    T expected(std::size_t offset) const {
        T value;
        std::memcpy(&value, bytes.data() + offset, sizeof(T));
        return value;
    }

    template <class T>
    std::vector<T> read(const char* kernel, const std::vector<At>& at) {
        const std::uint64_t out = memory.allocate(at.size() * sizeof(T));
        result = launch(kernel, {{1, 1, 1}, {static_cast<std::uint32_t>(at.size()), 1, 1}, 0},
                        params(kHandle, memory.upload(at), out));
        return memory.download<T>(out, at.size());
    }

    template <class T>
    std::vector<std::uint8_t> write(const char* kernel, const std::vector<At>& at,
                                    const std::vector<T>& values) {
        result = launch(kernel, {{1, 1, 1}, {static_cast<std::uint32_t>(at.size()), 1, 1}, 0},
                        params(kHandle, memory.upload(at), memory.upload(values)));
        return memory.download<std::uint8_t>(objects.surfaces[kHandle].plane.va, bytes.size());
    }

    std::vector<std::uint8_t> bytes;
    RunResult result;
};

}  // namespace

TEST_P(Surfaces, AreReadByTheByte) {
    make(13, 5, 1, 1);
    const auto seen = read<std::uint8_t>(
        "read_byte_zero",
        {{0, 0, 0, 0}, {12, 4, 0, 0}, {13, 0, 0, 0}, {-1, 2, 0, 0}, {3, 5, 0, 0}});
    EXPECT_EQ(RunStatus::Ok, result.status) << result.detail;
    EXPECT_EQ((std::vector<std::uint8_t>{0, 64, 0, 0, 0}), seen);
    make(8, 4, 1, 1);
    const auto clamped =
        read<std::uint16_t>("read_short_clamped", {{2, 1, 0, 0}, {80, 1, 0, 0}, {-2, 99, 0, 0}});
    EXPECT_EQ(expected<std::uint16_t>(10), clamped[0]);
    EXPECT_EQ(expected<std::uint16_t>(14), clamped[1]);
    EXPECT_EQ(expected<std::uint16_t>(24), clamped[2]);
}

TEST_P(Surfaces, AreReadInVectors) {
    make(6, 4, 1, 16);
    using Four = std::array<std::uint32_t, 4>;
    EXPECT_EQ(expected<Four>(96 + 32), (read<Four>("read_four_trap", {{32, 1, 0, 0}})[0]));
    using Longs = std::array<std::int64_t, 2>;
    const auto longs = read<Longs>("read_two_longs", {{80, 3, 0, 0}, {96, 3, 0, 0}});
    EXPECT_EQ(expected<Longs>(3 * 96 + 80), longs[0]);
    EXPECT_EQ((Longs{0, 0}), longs[1]);
}

TEST_P(Surfaces, OfEveryShapeAreReadAtTheirPlace) {
    make(10, 6, 5, 4);
    const auto at = [&](std::size_t x, std::size_t y, std::size_t z) {
        return expected<int>(4 * (x + 10 * (y + 6 * z)));
    };
    EXPECT_EQ(at(7, 0, 0), read<int>("read_line", {{28, 0, 0, 0}})[0]);
    const auto volume = read<int>("read_volume", {{28, 3, 4, 0}, {28, 3, 5, 0}, {28, 3, -1, 0}});
    EXPECT_EQ((std::vector<int>{at(7, 3, 4), 0, 0}), volume);
    const auto planes = read<int>("read_planes", {{28, 3, 0, 2}, {28, 3, 0, 5}});
    EXPECT_EQ((std::vector<int>{at(7, 3, 2), 0}), planes);
    TexturePlane& plane = objects.surfaces[kHandle].plane;
    plane.height = 1;
    plane.depth = 30;
    plane.slice_bytes = 40;
    EXPECT_EQ(at(7, 2, 1), read<int>("read_lines", {{28, 0, 0, 8}})[0]);
}

TEST_P(Surfaces, AreWritten) {
    make(10, 6, 5, 4);
    auto wanted = bytes;
    const int values[] = {0x11223344, -7};
    std::memcpy(wanted.data() + 4 * (7 + 10 * (3 + 6 * 4)), values, 4);
    EXPECT_EQ(wanted, (write<int>("write_volume", {{28, 3, 4, 0}, {28, 6, 4, 0}}, {values[0], 1})));
    std::memcpy(wanted.data() + 4 * (1 + 10 * (0 + 6 * 2)), values + 1, 4);
    EXPECT_EQ(wanted, (write<int>("write_planes", {{4, 0, 0, 2}, {4, 0, 0, 7}}, {values[1], 1})));
    make(13, 5, 1, 1);
    wanted = bytes;
    wanted[12] = 200;
    wanted[4 * 13] = 201;
    EXPECT_EQ(wanted, (write<std::uint8_t>("write_byte_clamped", {{40, -3, 0, 0}, {-9, 70, 0, 0}},
                                           {200, 201})));
    EXPECT_EQ(RunStatus::Ok, result.status) << result.detail;
}

TEST_P(Surfaces, StopTheKernelOutsideWhereThatIsAsked) {
    make(6, 4, 1, 16);
    using Four = std::array<std::uint32_t, 4>;
    for (const At at : {At{96, 0, 0, 0}, At{-16, 0, 0, 0}, At{0, 4, 0, 0}, At{0, -1, 0, 0}}) {
        read<Four>("read_four_trap", {at});
        EXPECT_EQ(RunStatus::OutsideSurface, result.status) << at.x << " " << at.y;
        EXPECT_EQ(bytes, (write<Four>("write_four_trap", {at}, {Four{1, 2, 3, 4}})));
        EXPECT_EQ(RunStatus::OutsideSurface, result.status);
    }
    read<Four>("read_four_trap", {{8, 0, 0, 0}});
    EXPECT_EQ(RunStatus::MisalignedAddress, result.status);
}

TEST_P(Surfaces, CopyAPlaneShifted) {
    make(12, 4, 1, 4);
    objects.surfaces[4].plane = place(bytes.data(), 12, 4, 1, 4);
    objects.surfaces[4].format = objects.surfaces[kHandle].format;
    std::vector<float> values(6 * 4 * 2);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    memory.write(objects.surfaces[kHandle].plane.va, values.data(), values.size() * 4);
    launch_ok("shift_plane", {{4, 1, 1}, {6, 1, 1}, 0}, params(kHandle, std::uint64_t{4}));
    const auto seen = memory.download<float>(objects.surfaces[4].plane.va, values.size());
    for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 2; x < 12; ++x)
            EXPECT_EQ(2 * values[12 * y + x - 2], seen[12 * y + x]) << x << " " << y;
}

// Rows of 4 bytes times an odd width: an aligned place in a row may cross a page.
TEST_P(Surfaces, MayCrossPagesInsideOfARow) {
    constexpr std::uint32_t kWidth = 1021, kHeight = 520;
    make(kWidth, kHeight, 1, 4);
    using Longs = std::array<std::int64_t, 2>;
    // The row in which the page ends, and the access in it that has the end inside.
    constexpr std::uint64_t kRow = kPageBytes / (kWidth * 4);
    const std::uint64_t end = kPageBytes - kRow * kWidth * 4;
    ASSERT_NE(0U, end % 16);
    const std::uint64_t x = end / 16 * 16;
    const std::vector<At> before{{static_cast<int>(x) - 16, static_cast<int>(kRow), 0, 0},
                                 {static_cast<int>(x), static_cast<int>(kRow), 0, 0}};
    const auto seen = read<Longs>("read_two_longs", before);
    EXPECT_EQ(RunStatus::Ok, result.status) << result.detail;
    EXPECT_EQ(expected<Longs>(kRow * kWidth * 4 + x - 16), seen[0]);
    EXPECT_EQ(expected<Longs>(kRow * kWidth * 4 + x), seen[1]);
}

TEST_P(Surfaces, ThatAreNoneFail) {
    objects.surfaces.clear();
    read<int>("read_line", {{0, 0, 0, 0}});
    EXPECT_EQ(RunStatus::UnknownTexture, result.status);
    EXPECT_EQ("surface 3", result.detail);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Surfaces,
                         testing::Values("compute_75", "compute_80", "compute_90", "compute_120"));

}  // namespace simgpu::exec
