// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.nn.functional.interpolate in float32: nearest of planes, linear in one to three dimensions
// (torch 2.15's UpSample*.cu). Tensors are batch, channels, then places.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

constexpr std::size_t kMostDims = 5;

/// GenericPackedTensorAccessor: an address, sizes and strides in elements.
struct Accessor {
    std::uint64_t va = 0;
    std::size_t dims = 0;
    std::array<std::int64_t, kMostDims> sizes{};
    std::array<std::int64_t, kMostDims> strides{};

    bool read(const NamedLaunch& launch, std::size_t parameter) {
        const std::size_t words = launch.parameter(parameter).size() / 8;
        if (words % 2 == 0 || words < 7 || words > 1 + 2 * kMostDims) return false;
        dims = (words - 1) / 2;
        va = launch.get<std::uint64_t>(parameter);
        for (std::size_t d = 0; d < dims; ++d) {
            sizes[d] = launch.get<std::int64_t>(parameter, 8 * (1 + d));
            strides[d] = launch.get<std::int64_t>(parameter, 8 * (1 + dims + d));
            if (sizes[d] <= 0 || strides[d] < 0) return false;
        }
        return true;
    }
    std::uint64_t extent() const {
        std::int64_t last = 0;
        for (std::size_t d = 0; d < dims; ++d) last += (sizes[d] - 1) * strides[d];
        return static_cast<std::uint64_t>(last) + 1;
    }
};

/// Between which two places of a dimension a place of the result lies, and the share of the second.
struct Between {
    std::int64_t first;
    std::int64_t second;
    double share;
};

std::vector<Between> between(std::int64_t from, std::int64_t to, float scale, bool corners) {
    std::vector<Between> all;
    for (std::int64_t i = 0; i < to; ++i) {
        const float place = corners ? scale * static_cast<float>(i)
                                    : std::max(scale * (static_cast<float>(i) + 0.5F) - 0.5F, 0.0F);
        const std::int64_t first = std::min(static_cast<std::int64_t>(place), from - 1);
        const double share = static_cast<double>(place - static_cast<float>(first));
        all.push_back({first, std::min(first + 1, from - 1), std::clamp(share, 0.0, 1.0)});
    }
    return all;
}

/// Calls body(small offset, large offset, weight) for each pair of places that have to do with each
/// other.
template <typename Body>
void for_each_pair(const Accessor& small, const Accessor& large, const std::vector<float>& scales,
                   bool corners, Body body) {
    const std::size_t spatial = small.dims - 2;
    std::vector<std::vector<Between>> ways;
    std::int64_t places = 1;
    for (std::size_t d = 0; d < spatial; ++d) {
        ways.push_back(between(small.sizes[d + 2], large.sizes[d + 2], scales[d], corners));
        places *= large.sizes[d + 2];
    }
    for (std::int64_t plane = 0; plane < small.sizes[0] * small.sizes[1]; ++plane) {
        const std::int64_t n = plane / small.sizes[1];
        const std::int64_t c = plane % small.sizes[1];
        for (std::int64_t place = 0; place < places; ++place) {
            std::array<const Between*, 3> way{};
            std::int64_t rest = place;
            std::int64_t to = n * large.strides[0] + c * large.strides[1];
            for (std::size_t d = spatial; d-- > 0;) {
                const std::int64_t i = rest % large.sizes[d + 2];
                rest /= large.sizes[d + 2];
                way[d] = &ways[d][static_cast<std::size_t>(i)];
                to += i * large.strides[d + 2];
            }
            for (std::size_t corner = 0; corner < std::size_t{1} << spatial; ++corner) {
                std::int64_t from = n * small.strides[0] + c * small.strides[1];
                double weight = 1;
                for (std::size_t d = 0; d < spatial; ++d) {
                    const bool second = (corner >> d & 1) != 0;
                    weight *= second ? way[d]->share : 1 - way[d]->share;
                    from += (second ? way[d]->second : way[d]->first) * small.strides[d + 2];
                }
                if (weight != 0) body(from, to, weight);
            }
        }
    }
}

/// (places, scales, corners aligned, in, out), or gradients the other way round.
bool linear(const NamedLaunch& launch, std::size_t spatial, bool backward) {
    Accessor small;
    Accessor large;
    constexpr std::size_t kFirst = 1;
    if (!small.read(launch, kFirst + spatial + 1) || !large.read(launch, kFirst + spatial + 2) ||
        small.dims != spatial + 2 || large.dims != spatial + 2)
        return false;
    std::vector<float> scales;
    for (std::size_t d = 0; d < spatial; ++d) scales.push_back(launch.get<float>(kFirst + d));
    const bool corners = launch.get<std::uint8_t>(kFirst + spatial) != 0;
    const auto* from = launch.read<float>(backward ? large.va : small.va,
                                          backward ? large.extent() : small.extent());
    auto* to = launch.write<float>(backward ? small.va : large.va,
                                   backward ? small.extent() : large.extent());
    if (from == nullptr || to == nullptr) return true;
    // What is written is zero before where gradients are added.
    std::vector<double> sums(backward ? small.extent() : large.extent());
    std::vector<bool> touched(sums.size());
    for_each_pair(small, large, scales, corners,
                  [&](std::int64_t s, std::int64_t l, double weight) {
                      const auto source = static_cast<std::size_t>(backward ? l : s);
                      const auto place = static_cast<std::size_t>(backward ? s : l);
                      sums[place] += weight * static_cast<double>(from[source]);
                      touched[place] = true;
                  });
    for (std::size_t i = 0; i < sums.size(); ++i)
        if (touched[i])
            to[i] = static_cast<float>(sums[i] + (backward ? static_cast<double>(to[i]) : 0));
    launch.cost(8.0 * static_cast<double>(large.extent()),
                4.0 * static_cast<double>(small.extent() + large.extent()));
    return true;
}

/// (planes, height and width of the small, of the large, scales, corners aligned, gradient out,
/// gradient): dense planes.
bool bilinear_gradient(const NamedLaunch& launch) {
    const auto planes = static_cast<std::int64_t>(launch.get<std::uint64_t>(0));
    const auto shape = [&](std::size_t parameter, std::uint64_t va) {
        Accessor a;
        const std::int64_t h = launch.get<std::int32_t>(parameter);
        const std::int64_t w = launch.get<std::int32_t>(parameter + 1);
        a.va = va;
        a.dims = 4;
        a.sizes = {1, planes, h, w, 1};
        a.strides = {0, h * w, w, 1, 1};
        return a;
    };
    const Accessor small = shape(1, launch.get<std::uint64_t>(8));
    const Accessor large = shape(3, launch.get<std::uint64_t>(9));
    if (planes <= 0 || small.sizes[2] <= 0 || small.sizes[3] <= 0) return planes == 0;
    auto* out = launch.write<float>(small.va, small.extent());
    const auto* grad = launch.read<float>(large.va, large.extent());
    if (out == nullptr || grad == nullptr) return true;
    std::vector<double> sums(small.extent());
    for_each_pair(small, large, {launch.get<float>(5), launch.get<float>(6)},
                  launch.get<std::uint8_t>(7) != 0,
                  [&](std::int64_t s, std::int64_t l, double weight) {
                      sums[static_cast<std::size_t>(s)] +=
                          weight * static_cast<double>(grad[static_cast<std::size_t>(l)]);
                  });
    for (std::size_t i = 0; i < sums.size(); ++i)
        out[i] = static_cast<float>(static_cast<double>(out[i]) + sums[i]);
    launch.cost(8.0 * static_cast<double>(large.extent()),
                4.0 * static_cast<double>(small.extent() + large.extent()));
    return true;
}

/// (in, out, planes, height and width before, after, scales)
bool nearest(const NamedLaunch& launch) {
    const auto planes = launch.get<std::uint64_t>(2);
    const auto h1 = launch.get<std::uint64_t>(3);
    const auto w1 = launch.get<std::uint64_t>(4);
    const auto h2 = launch.get<std::uint64_t>(5);
    const auto w2 = launch.get<std::uint64_t>(6);
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(0), planes * h1 * w1);
    auto* out = launch.write<float>(launch.get<std::uint64_t>(1), planes * h2 * w2);
    if (in == nullptr || out == nullptr) return true;
    const auto source = [](std::uint64_t i, float scale, std::uint64_t size) {
        return std::min(static_cast<std::uint64_t>(std::floor(static_cast<float>(i) * scale)),
                        size - 1);
    };
    for (std::uint64_t i = 0; i < planes * h2 * w2; ++i) {
        const std::uint64_t y = source(i / w2 % h2, launch.get<float>(7), h1);
        const std::uint64_t x = source(i % w2, launch.get<float>(8), w1);
        out[i] = in[(i / (h2 * w2) * h1 + y) * w1 + x];
    }
    launch.cost(0, 8.0 * static_cast<double>(planes * h2 * w2));
    return true;
}

/// (gradient, batch, channels, its height and width, those of the result, result, scales)
bool nearest_gradient(const NamedLaunch& launch) {
    const std::uint64_t planes = launch.get<std::uint64_t>(1) * launch.get<std::uint64_t>(2);
    const auto h2 = launch.get<std::uint64_t>(3);
    const auto w2 = launch.get<std::uint64_t>(4);
    const auto h1 = launch.get<std::uint64_t>(5);
    const auto w1 = launch.get<std::uint64_t>(6);
    const auto* grad = launch.read<float>(launch.get<std::uint64_t>(0), planes * h2 * w2);
    auto* out = launch.write<float>(launch.get<std::uint64_t>(7), planes * h1 * w1);
    if (grad == nullptr || out == nullptr) return true;
    const auto begin = [](std::uint64_t i, float scale, std::uint64_t size) {
        return std::min(static_cast<std::uint64_t>(std::ceil(static_cast<float>(i) * scale)), size);
    };
    for (std::uint64_t i = 0; i < planes * h1 * w1; ++i) {
        const std::uint64_t row = i / w1 % h1;
        double sum = 0;
        for (std::uint64_t y = begin(row, launch.get<float>(8), h2);
             y < begin(row + 1, launch.get<float>(8), h2); ++y) {
            for (std::uint64_t x = begin(i % w1, launch.get<float>(9), w2);
                 x < begin(i % w1 + 1, launch.get<float>(9), w2); ++x)
                sum += static_cast<double>(grad[(i / (h1 * w1) * h2 + y) * w2 + x]);
        }
        out[i] = static_cast<float>(sum);
    }
    launch.cost(static_cast<double>(planes * h2 * w2), 4.0 * static_cast<double>(planes * h2 * w2));
    return true;
}

}  // namespace

NamedKernel find_interpolate(const KernelName& name) {
    if (!name.base.starts_with("upsample_") || !name.mentions("_frame<float, ")) return {};
    const bool exact = name.mentions("nearest_neighbor_exact");
    if (name.base == "upsample_nearest2d_out_frame" && !exact) return nearest;
    if (name.base == "upsample_nearest2d_backward_out_frame" && !exact) return nearest_gradient;
    if (name.base == "upsample_bilinear2d_backward_out_frame") return bilinear_gradient;
    const auto bind = [](std::size_t spatial, bool backward) -> NamedKernel {
        return [=](const NamedLaunch& launch) { return linear(launch, spatial, backward); };
    };
    if (name.base == "upsample_bilinear2d_out_frame") return bind(2, false);
    if (name.base == "upsample_trilinear3d_out_frame") return bind(3, false);
    if (name.base == "upsample_trilinear3d_backward_out_frame") return bind(3, true);
    return {};
}

}  // namespace simgpu::torch
