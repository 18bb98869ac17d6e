// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The negative log likelihood of rows of log-probabilities, forward and backward, summed or
// averaged (torch 2.15's NLLLoss2d... NLLLoss.cu).

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

/// What both directions share, from parameter `first` on: (bool average, int rows, int columns,
/// int64 classes, int64 ignored).
struct Shape {
    bool average;
    std::uint64_t rows;
    std::uint64_t columns;
    std::int64_t ignored;
};

Shape shape_of(const NamedLaunch& launch, std::size_t first) {
    return {launch.get<std::uint8_t>(first) != 0, launch.get<std::uint32_t>(first + 1),
            launch.get<std::uint32_t>(first + 2), launch.get<std::int64_t>(first + 4)};
}

/// Null weights stand for ones.
struct Weights {
    const float* data = nullptr;
    double at(std::int64_t target) const {
        return data != nullptr ? static_cast<double>(data[target]) : 1;
    }
};

bool read_weights(const NamedLaunch& launch, std::size_t index, std::uint64_t classes,
                  Weights& weights) {
    const auto va = launch.get<std::uint64_t>(index);
    if (va == 0) return true;
    weights.data = launch.read<float>(va, classes);
    return weights.data != nullptr;
}

/// Whether the row counts; targets outside of the classes trap on a device.
bool counts(const Shape& s, std::int64_t target) {
    return target != s.ignored && target >= 0 && target < static_cast<std::int64_t>(s.columns);
}

/// (out, total weight, in, target, weights, shape)
bool forward(const NamedLaunch& launch) {
    const Shape s = shape_of(launch, 5);
    Weights weights;
    auto* out = launch.write<float>(launch.get<std::uint64_t>(0), 1);
    auto* total = launch.write<float>(launch.get<std::uint64_t>(1), 1);
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(2), s.rows * s.columns);
    const auto* target = launch.read<std::int64_t>(launch.get<std::uint64_t>(3), s.rows);
    if (!read_weights(launch, 4, s.columns, weights) || out == nullptr || total == nullptr ||
        in == nullptr || target == nullptr)
        return true;
    double sum = 0;
    double weight = 0;
    for (std::uint64_t row = 0; row < s.rows; ++row) {
        if (!counts(s, target[row])) continue;
        const double w = weights.at(target[row]);
        sum -=
            w * static_cast<double>(in[row * s.columns + static_cast<std::uint64_t>(target[row])]);
        weight += w;
    }
    *total = static_cast<float>(weight);
    *out = static_cast<float>(s.average ? sum / weight : sum);
    launch.cost(static_cast<double>(s.rows), 12.0 * static_cast<double>(s.rows));
    return true;
}

/// (grad in, grad out, target, weights, total weight, shape). What it does not set is zero already.
bool backward(const NamedLaunch& launch) {
    const Shape s = shape_of(launch, 5);
    Weights weights;
    auto* grad = launch.write<float>(launch.get<std::uint64_t>(0), s.rows * s.columns);
    const auto* out = launch.read<float>(launch.get<std::uint64_t>(1), 1);
    const auto* target = launch.read<std::int64_t>(launch.get<std::uint64_t>(2), s.rows);
    const auto* total = launch.read<float>(launch.get<std::uint64_t>(4), 1);
    if (!read_weights(launch, 3, s.columns, weights) || grad == nullptr || out == nullptr ||
        target == nullptr || total == nullptr)
        return true;
    const double scale = static_cast<double>(*out) / (s.average ? static_cast<double>(*total) : 1);
    for (std::uint64_t row = 0; row < s.rows; ++row) {
        if (!counts(s, target[row])) continue;
        grad[row * s.columns + static_cast<std::uint64_t>(target[row])] =
            static_cast<float>(-scale * weights.at(target[row]));
    }
    launch.cost(static_cast<double>(s.rows), 12.0 * static_cast<double>(s.rows));
    return true;
}

}  // namespace

NamedKernel find_loss(const KernelName& name) {
    if (!name.mentions("float") || !name.mentions("long")) return {};
    if (name.base == "nll_loss_forward_reduce_cuda_kernel_2d") return forward;
    if (name.base == "nll_loss_backward_reduce_cuda_kernel_2d") return backward;
    return {};
}

}  // namespace simgpu::torch
