// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cmath>
#include <map>

#include "tests/simgpu/exec/kernel_fixture.hpp"

namespace simgpu::exec {

struct Vec4 {
    float x, y, z, w;
};

/// Objects by number, as a driver would have them.
class ObjectMap final : public Textures {
  public:
    std::map<std::uint64_t, Texture> textures;
    std::map<std::uint64_t, Surface> surfaces;

    const Texture* texture(std::uint64_t handle) override {
        const auto found = textures.find(handle);
        return found != textures.end() ? &found->second : nullptr;
    }
    const Surface* surface(std::uint64_t handle) override {
        const auto found = surfaces.find(handle);
        return found != surfaces.end() ? &found->second : nullptr;
    }
};

/// Texels of four floats, as the host has them.
struct Image {
    std::uint32_t width = 1, height = 1, depth = 1;
    std::vector<Vec4> texels;

    const Vec4& at(long x, long y, long z) const {
        return texels[static_cast<std::size_t>((z * height + y) * static_cast<long>(width) + x)];
    }
};

/// Launches of the kernels in textures.cu, with textures of random texels.
class TextureTest : public KernelTest {
  protected:
    void SetUp() override {
        load("textures");
        options.textures = &objects;
    }

    Image random_image(std::uint32_t width, std::uint32_t height, std::uint32_t depth) {
        Image image{width, height, depth, {}};
        for (std::uint32_t k = 0; k < width * height * depth; ++k) {
            const auto v = random_floats(4, -10, 10);
            image.texels.push_back({v[0], v[1], v[2], v[3]});
        }
        return image;
    }

    /// Places texels of `bytes` each, row by row.
    TexturePlane place(const void* texels, std::uint32_t width, std::uint32_t height,
                       std::uint32_t depth, std::uint32_t bytes) {
        const std::uint64_t all = std::uint64_t{width} * height * depth * bytes;
        TexturePlane plane{memory.allocate(all),
                           width,
                           height,
                           depth,
                           std::uint64_t{width} * bytes,
                           std::uint64_t{width} * height * bytes};
        memory.write(plane.va, texels, all);
        return plane;
    }
    TexturePlane place(const Image& image) {
        return place(image.texels.data(), image.width, image.height, image.depth, sizeof(Vec4));
    }

    Texture texture_of(const Image& image) {
        Texture texture;
        texture.levels = {place(image)};
        texture.format = {TexelFormat::Kind::Float, 32, 4};
        return texture;
    }

    std::vector<Vec4> random_points(std::size_t count, float low, float high) {
        const auto v = random_floats(count * 4, low, high);
        std::vector<Vec4> points;
        for (std::size_t i = 0; i < count; ++i)
            points.push_back({v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]});
        return points;
    }

    /// What a kernel gets at each point.
    template <class T>
    std::vector<T> sampled(const char* kernel, const Texture& texture,
                           const std::vector<Vec4>& points) {
        constexpr std::uint64_t kHandle = 17;
        objects.textures[kHandle] = texture;
        const std::uint64_t at = memory.upload(points);
        const std::uint64_t out = memory.allocate(points.size() * sizeof(T));
        const auto count = static_cast<std::uint32_t>(points.size());
        launch_ok(kernel, {{(count + 63) / 64, 1, 1}, {64, 1, 1}, 0},
                  params(kHandle, at, out, static_cast<int>(count)));
        return memory.download<T>(out, points.size());
    }

    ObjectMap objects;
};

}  // namespace simgpu::exec
