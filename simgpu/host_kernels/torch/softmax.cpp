// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Softmax and its logarithm over the last dimension, forward and backward: rows of up to 2,048
// elements by a warp each, longer ones by a block each (torch 2.15's PersistentSoftmax.cuh and
// SoftMax.cu).

#include <algorithm>
#include <cmath>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

struct Rows {
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    /// Elements from row to row.
    std::uint64_t stride = 0;

    std::uint64_t extent() const { return rows == 0 ? 0 : (rows - 1) * stride + columns; }
};

void forward_row(const float* in, float* out, std::uint64_t columns, bool log) {
    const float top = *std::max_element(in, in + columns);
    double sum = 0;
    for (std::uint64_t i = 0; i < columns; ++i) sum += std::exp(in[i] - top);
    if (log) {
        const auto rest = static_cast<float>(top + std::log(sum));
        for (std::uint64_t i = 0; i < columns; ++i) out[i] = in[i] - rest;
    } else {
        const auto scale = static_cast<float>(1 / sum);
        for (std::uint64_t i = 0; i < columns; ++i) out[i] = std::exp(in[i] - top) * scale;
    }
}

/// `grad` is the gradient times the output where there is no logarithm.
void backward_row(const float* grad, const float* output, float* out, std::uint64_t columns,
                  bool log) {
    double sum = 0;
    for (std::uint64_t i = 0; i < columns; ++i) sum += static_cast<double>(grad[i]);
    const auto total = static_cast<float>(sum);
    for (std::uint64_t i = 0; i < columns; ++i)
        out[i] = grad[i] - (log ? std::exp(output[i]) : output[i]) * total;
}

bool forward(const NamedLaunch& launch, const Rows& r, bool log) {
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(1), r.extent());
    auto* out = launch.write<float>(launch.get<std::uint64_t>(0), r.extent());
    if (in == nullptr || out == nullptr) return true;
    for (std::uint64_t row = 0; row < r.rows && r.columns != 0; ++row)
        forward_row(in + row * r.stride, out + row * r.stride, r.columns, log);
    launch.cost(5.0 * static_cast<double>(r.extent()), 8.0 * static_cast<double>(r.extent()));
    return true;
}

bool backward(const NamedLaunch& launch, const Rows& r, std::uint64_t grad_va,
              std::uint64_t output_va, bool log) {
    const auto* grad = launch.read<float>(grad_va, r.extent());
    const auto* output = launch.read<float>(output_va, r.extent());
    auto* out = launch.write<float>(launch.get<std::uint64_t>(0), r.extent());
    if (grad == nullptr || output == nullptr || out == nullptr) return true;
    for (std::uint64_t row = 0; row < r.rows; ++row) {
        const std::uint64_t at = row * r.stride;
        backward_row(grad + at, output + at, out + at, r.columns, log);
    }
    launch.cost(4.0 * static_cast<double>(r.extent()), 12.0 * static_cast<double>(r.extent()));
    return true;
}

bool all_float(const KernelName& name, std::size_t first) {
    const auto& arguments = name.template_arguments;
    for (std::size_t i = first; i < first + 3; ++i) {
        if (i >= arguments.size() || arguments[i] != "float") return false;
    }
    return true;
}

/// (out, in, rows, stride, columns, mask, ...)
NamedKernel warp_forward(bool log) {
    return [log](const NamedLaunch& launch) {
        if (launch.get<std::uint64_t>(5) != 0) return false;
        const Rows rows{launch.get<std::uint32_t>(2), launch.get<std::uint32_t>(4),
                        launch.get<std::uint32_t>(3)};
        return forward(launch, rows, log);
    };
}

/// (grad_in, grad, output, rows, stride, columns, mask)
NamedKernel warp_backward(bool log) {
    return [log](const NamedLaunch& launch) {
        if (launch.get<std::uint64_t>(6) != 0) return false;
        const Rows rows{launch.get<std::uint32_t>(3), launch.get<std::uint32_t>(5),
                        launch.get<std::uint32_t>(4)};
        return backward(launch, rows, launch.get<std::uint64_t>(1), launch.get<std::uint64_t>(2),
                        log);
    };
}

/// A block per row; the last argument is the row's length.
Rows block_rows(const NamedLaunch& launch, std::size_t length) {
    const std::uint64_t columns = launch.parameter(length).size() == 8
                                      ? launch.get<std::uint64_t>(length)
                                      : launch.get<std::uint32_t>(length);
    return {launch.grid()[0], columns, columns};
}

}  // namespace

NamedKernel find_softmax(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    const bool log =
        name.mentions("LogSoftMax") || (arguments.size() > 4 && arguments[4] == "true");
    if (name.base == "softmax_warp_forward" && all_float(name, 0)) return warp_forward(log);
    if (name.base == "softmax_warp_backward" && all_float(name, 0)) return warp_backward(log);
    if (name.base.starts_with("cunn_SoftMaxForward") && name.mentions("<") &&
        (all_float(name, 1) || all_float(name, 0)))
        return [log](const NamedLaunch& launch) {
            return forward(launch, block_rows(launch, 2), log);
        };
    // (grad_in, output, grad, length)
    if (name.base.starts_with("cunn_SoftMaxBackward") && (all_float(name, 1) || all_float(name, 0)))
        return [log](const NamedLaunch& launch) {
            return backward(launch, block_rows(launch, 3), launch.get<std::uint64_t>(2),
                            launch.get<std::uint64_t>(1), log);
        };
    return {};
}

}  // namespace simgpu::torch
