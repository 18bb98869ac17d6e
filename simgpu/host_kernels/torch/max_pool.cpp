// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Maximum pooling of planes, forward and backward (torch 2.15's DilatedMaxPool2d.cu).

#include <algorithm>
#include <limits>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

/// Integers are 32 or 64 bits wide, by the size of the tensors.
std::int64_t integer(const NamedLaunch& launch, std::size_t index) {
    return launch.parameter(index).size() == 8 ? launch.get<std::int64_t>(index)
                                               : launch.get<std::int32_t>(index);
}

/// One direction of a window's way over a plane.
struct Axis {
    std::int64_t size, pooled, kernel, stride, padding, dilation;

    std::int64_t begin(std::int64_t place) const {
        const std::int64_t first = place * stride - padding;
        return first >= 0 ? first : first + (-first + dilation - 1) / dilation * dilation;
    }
    std::int64_t end(std::int64_t place) const {
        return std::min(place * stride - padding + (kernel - 1) * dilation + 1, size);
    }
};

/// From parameter `first` on: (height, width, pooled height and width, kernel, stride, padding,
/// dilation), each of these for both axes.
struct Window {
    Axis h, w;

    Window(const NamedLaunch& launch, std::size_t first) {
        const auto axis = [&](std::size_t which) {
            const auto at = [&](std::size_t pair) {
                return integer(launch, first + 2 * pair + which);
            };
            return Axis{at(0), at(1), at(2), at(3), at(4), at(5)};
        };
        h = axis(0);
        w = axis(1);
    }
    bool is_sound() const {
        for (const Axis& axis : {h, w}) {
            if (axis.size <= 0 || axis.pooled <= 0 || axis.kernel <= 0 || axis.stride <= 0 ||
                axis.padding < 0 || axis.dilation <= 0)
                return false;
        }
        return true;
    }
    std::uint64_t plane() const { return static_cast<std::uint64_t>(h.size * w.size); }
    std::uint64_t pooled() const { return static_cast<std::uint64_t>(h.pooled * w.pooled); }
};

template <typename T>
void pool_plane(const Window& window, const T* in, T* out, std::int64_t* places) {
    for (std::int64_t ph = 0; ph < window.h.pooled; ++ph) {
        for (std::int64_t pw = 0; pw < window.w.pooled; ++pw) {
            T most = -std::numeric_limits<T>::infinity();
            std::int64_t place = window.h.begin(ph) * window.w.size + window.w.begin(pw);
            for (std::int64_t h = window.h.begin(ph); h < window.h.end(ph);
                 h += window.h.dilation) {
                for (std::int64_t w = window.w.begin(pw); w < window.w.end(pw);
                     w += window.w.dilation) {
                    const T value = in[h * window.w.size + w];
                    if (!(value > most) && value == value) continue;  // what is no number wins
                    most = value;
                    place = h * window.w.size + w;
                }
            }
            *out++ = most;
            *places++ = place;
        }
    }
}

/// (count of results, in, channels, window, out, places)
template <typename T>
bool forward(const NamedLaunch& launch) {
    const Window window(launch, 3);
    const auto results = static_cast<std::uint64_t>(integer(launch, 0));
    if (!window.is_sound()) return false;
    const std::uint64_t planes = results / window.pooled();
    const auto* in = launch.read<T>(launch.get<std::uint64_t>(1), planes * window.plane());
    auto* out = launch.write<T>(launch.get<std::uint64_t>(15), results);
    auto* places = launch.write<std::int64_t>(launch.get<std::uint64_t>(16), results);
    if (in == nullptr || out == nullptr || places == nullptr) return true;
    for (std::uint64_t i = 0; i < planes; ++i)
        pool_plane(window, in + i * window.plane(), out + i * window.pooled(),
                   places + i * window.pooled());
    launch.cost(
        static_cast<double>(results) * static_cast<double>(window.h.kernel * window.w.kernel),
        static_cast<double>(planes * window.plane() * sizeof(T) +
                            results * (sizeof(T) + sizeof(*places))));
    return true;
}

/// (grad out, places, batch, channels, window, grad in)
template <typename T>
bool backward(const NamedLaunch& launch) {
    const Window window(launch, 4);
    const auto planes = static_cast<std::uint64_t>(integer(launch, 2) * integer(launch, 3));
    if (!window.is_sound()) return false;
    const std::uint64_t results = planes * window.pooled();
    const std::uint64_t elements = planes * window.plane();
    const auto* from = launch.read<T>(launch.get<std::uint64_t>(0), results);
    const auto* places = launch.read<std::int64_t>(launch.get<std::uint64_t>(1), results);
    auto* to = launch.write<T>(launch.get<std::uint64_t>(16), elements);
    if (from == nullptr || places == nullptr || to == nullptr) return true;
    std::fill(to, to + elements, T{0});
    for (std::uint64_t i = 0; i < results; ++i) {
        const auto place = static_cast<std::uint64_t>(places[i]);
        if (place < window.plane()) to[i / window.pooled() * window.plane() + place] += from[i];
    }
    launch.cost(
        static_cast<double>(results),
        static_cast<double>(elements * sizeof(T) + results * (sizeof(T) + sizeof(*places))));
    return true;
}

}  // namespace

NamedKernel find_max_pool(const KernelName& name) {
    if (name.template_arguments.empty()) return {};
    const std::string& type = name.template_arguments[0];
    if (name.base == "max_pool_forward_nchw" && name.parameters.size() == 17) {
        if (type == "float") return forward<float>;
        if (type == "double") return forward<double>;
    }
    if (name.base == "max_pool_backward_nchw" && name.parameters.size() == 17) {
        if (type == "float") return backward<float>;
        if (type == "double") return backward<double>;
    }
    return {};
}

}  // namespace simgpu::torch
