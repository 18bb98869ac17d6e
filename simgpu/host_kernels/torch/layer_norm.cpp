// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Layer norm over rows, forward and backward (torch 2.15's layer_norm_kernel.cu), and RMS norm,
// which is the same kernels with a mean of 0 that they neither read nor write.

#include <cmath>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

struct Moments {
    float mean;
    float rstd;
};

Moments moments(const float* x, std::uint64_t n, float eps, bool rms) {
    double sum = 0;
    for (std::uint64_t i = 0; i < n && !rms; ++i) sum += static_cast<double>(x[i]);
    const double mean = sum / static_cast<double>(n);
    double squares = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double off = static_cast<double>(x[i]) - mean;
        squares += off * off;
    }
    const double variance = squares / static_cast<double>(n);
    return {static_cast<float>(mean),
            static_cast<float>(1 / std::sqrt(variance + static_cast<double>(eps)))};
}

/// Null where the kernel was given none; `ok` turns false where memory is missing.
const float* optional(const NamedLaunch& launch, std::size_t index, std::uint64_t n, bool& ok) {
    const auto va = launch.get<std::uint64_t>(index);
    if (va == 0) return nullptr;
    const float* data = launch.read<float>(va, n);
    ok = ok && data != nullptr;
    return data;
}

/// Rows' means. Empty, and not ok, where memory is missing.
std::vector<float> means(const NamedLaunch& launch, std::size_t index, std::uint64_t rows, bool rms,
                         bool& ok) {
    if (rms) return std::vector<float>(rows);
    const float* data = launch.read<float>(launch.get<std::uint64_t>(index), rows);
    ok = ok && data != nullptr;
    return data == nullptr ? std::vector<float>() : std::vector<float>(data, data + rows);
}

/// (int n, float eps, x, gamma, beta, mean, rstd, y), a block per row.
bool forward(const NamedLaunch& launch, bool rms) {
    const std::uint64_t rows = launch.grid()[0];
    const std::uint64_t n = launch.get<std::uint32_t>(0);
    const auto eps = launch.get<float>(1);
    bool ok = true;
    const float* x = optional(launch, 2, rows * n, ok);
    const float* gamma = optional(launch, 3, n, ok);
    const float* beta = optional(launch, 4, n, ok);
    auto* mean = rms ? nullptr : launch.write<float>(launch.get<std::uint64_t>(5), rows);
    auto* rstd = launch.write<float>(launch.get<std::uint64_t>(6), rows);
    auto* y = launch.write<float>(launch.get<std::uint64_t>(7), rows * n);
    if (!ok || x == nullptr || (mean == nullptr && !rms) || rstd == nullptr || y == nullptr)
        return true;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        const Moments m = moments(in, n, eps, rms);
        if (mean != nullptr) mean[row] = m.mean;
        rstd[row] = m.rstd;
        for (std::uint64_t i = 0; i < n; ++i) {
            const float scaled = (in[i] - m.mean) * m.rstd;
            y[row * n + i] =
                scaled * (gamma != nullptr ? gamma[i] : 1) + (beta != nullptr ? beta[i] : 0);
        }
    }
    launch.cost(8.0 * static_cast<double>(rows * n), 8.0 * static_cast<double>(rows * n));
    return true;
}

/// Rows that four floats do not fill, in two launches: (int64 rows, int64 n, float eps, x, mean,
/// rstd), and apply().
bool row_moments(const NamedLaunch& launch, bool rms) {
    const auto rows = launch.get<std::uint64_t>(0);
    const auto n = launch.get<std::uint64_t>(1);
    const auto eps = launch.get<float>(2);
    const auto* x = launch.read<float>(launch.get<std::uint64_t>(3), rows * n);
    auto* mean = rms ? nullptr : launch.write<float>(launch.get<std::uint64_t>(4), rows);
    auto* rstd = launch.write<float>(launch.get<std::uint64_t>(5), rows);
    if (x == nullptr || (mean == nullptr && !rms) || rstd == nullptr) return true;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const Moments m = moments(x + row * n, n, eps, rms);
        if (mean != nullptr) mean[row] = m.mean;
        rstd[row] = m.rstd;
    }
    launch.cost(4.0 * static_cast<double>(rows * n), 4.0 * static_cast<double>(rows * n));
    return true;
}

/// (int64 rows, int64 n, x, mean, rstd, gamma, beta, y)
bool apply(const NamedLaunch& launch, bool rms) {
    const auto rows = launch.get<std::uint64_t>(0);
    const auto n = launch.get<std::uint64_t>(1);
    bool ok = true;
    const float* x = optional(launch, 2, rows * n, ok);
    const auto mean = means(launch, 3, rows, rms, ok);
    const float* rstd = optional(launch, 4, rows, ok);
    const float* gamma = optional(launch, 5, n, ok);
    const float* beta = rms ? nullptr : optional(launch, 6, n, ok);
    auto* y = launch.write<float>(launch.get<std::uint64_t>(7), rows * n);
    if (!ok || x == nullptr || rstd == nullptr || y == nullptr) return true;
    for (std::uint64_t at = 0; at < rows * n; ++at) {
        const float scaled = (x[at] - mean[at / n]) * rstd[at / n];
        y[at] =
            scaled * (gamma != nullptr ? gamma[at % n] : 1) + (beta != nullptr ? beta[at % n] : 0);
    }
    launch.cost(4.0 * static_cast<double>(rows * n), 8.0 * static_cast<double>(rows * n));
    return true;
}

/// (dy, x, mean, rstd, gamma, dx, int n), a block per row.
bool input_gradient(const NamedLaunch& launch, bool rms) {
    const std::uint64_t rows = launch.grid()[0];
    const std::uint64_t n = launch.get<std::uint32_t>(6);
    bool ok = true;
    const float* dy = optional(launch, 0, rows * n, ok);
    const float* x = optional(launch, 1, rows * n, ok);
    const auto mean = means(launch, 2, rows, rms, ok);
    const float* rstd = optional(launch, 3, rows, ok);
    const float* gamma = optional(launch, 4, n, ok);
    auto* dx = launch.write<float>(launch.get<std::uint64_t>(5), rows * n);
    if (!ok || dy == nullptr || x == nullptr || rstd == nullptr || dx == nullptr) return true;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const float* grads = dy + row * n;
        const float* in = x + row * n;
        double sum = 0;
        double product = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            const double g = static_cast<double>(grads[i]) *
                             static_cast<double>(gamma != nullptr ? gamma[i] : 1);
            if (!rms) sum += g;
            product += g * static_cast<double>((in[i] - mean[row]) * rstd[row]);
        }
        for (std::uint64_t i = 0; i < n; ++i) {
            const double g = static_cast<double>(grads[i]) *
                             static_cast<double>(gamma != nullptr ? gamma[i] : 1);
            const auto scaled = static_cast<double>((in[i] - mean[row]) * rstd[row]);
            dx[row * n + i] =
                static_cast<float>(static_cast<double>(rstd[row]) *
                                   (g - (sum + scaled * product) / static_cast<double>(n)));
        }
    }
    launch.cost(10.0 * static_cast<double>(rows * n), 12.0 * static_cast<double>(rows * n));
    return true;
}

/// (int64 rows, int64 n, dy, x, mean, rstd, dgamma, dbeta). Blocks along y make partial sums, a row
/// each, which another kernel adds: here the first row has all of it.
bool parameter_gradient(const NamedLaunch& launch, bool rms) {
    const auto rows = launch.get<std::uint64_t>(0);
    const auto n = launch.get<std::uint64_t>(1);
    const std::uint64_t parts = launch.grid()[1];
    bool ok = true;
    const float* dy = optional(launch, 2, rows * n, ok);
    const float* x = optional(launch, 3, rows * n, ok);
    const auto mean = means(launch, 4, rows, rms, ok);
    const float* rstd = optional(launch, 5, rows, ok);
    const auto out = [&](std::size_t index) -> float* {
        const auto va = launch.get<std::uint64_t>(index);
        if (va == 0) return nullptr;
        auto* data = launch.write<float>(va, parts * n);
        ok = ok && data != nullptr;
        return data;
    };
    float* dgamma = out(6);
    // Of RMS norm the same memory is passed again.
    float* dbeta = rms ? nullptr : out(7);
    if (!ok || dy == nullptr || x == nullptr || rstd == nullptr) return true;
    std::vector<double> gammas(n);
    std::vector<double> betas(n);
    for (std::uint64_t row = 0; row < rows; ++row) {
        for (std::uint64_t i = 0; i < n; ++i) {
            const auto g = static_cast<double>(dy[row * n + i]);
            gammas[i] += g * static_cast<double>((x[row * n + i] - mean[row]) * rstd[row]);
            betas[i] += g;
        }
    }
    for (std::uint64_t i = 0; i < parts * n; ++i) {
        if (dgamma != nullptr) dgamma[i] = i < n ? static_cast<float>(gammas[i]) : 0;
        if (dbeta != nullptr) dbeta[i] = i < n ? static_cast<float>(betas[i]) : 0;
    }
    launch.cost(5.0 * static_cast<double>(rows * n), 8.0 * static_cast<double>(rows * n));
    return true;
}

}  // namespace

NamedKernel find_layer_norm(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    const bool floats = arguments.size() >= 2 && arguments[0] == "float" && arguments[1] == "float";
    if (!floats) return {};
    const auto bind = [](auto form, bool rms) -> NamedKernel {
        return [form, rms](const NamedLaunch& launch) { return form(launch, rms); };
    };
    // The last argument asks for the root mean square alone.
    const bool rms = arguments.size() >= 3 && arguments.back() == "true";
    if (name.base == "vectorized_layer_norm_kernel") return bind(forward, rms);
    if (name.base == "RowwiseMomentsCUDAKernel") return bind(row_moments, rms);
    if (name.base == "LayerNormForwardCUDAKernel") return bind(apply, rms);
    if (name.base == "layer_norm_grad_input_kernel_vectorized" ||
        name.base == "layer_norm_grad_input_kernel")
        return bind(input_gradient, rms);
    if (name.base == "GammaBetaBackwardCUDAKernelTemplate" ||
        name.base == "GammaBetaBackwardSimpleCUDAKernel")
        return bind(parameter_gradient, rms);
    return {};
}

}  // namespace simgpu::torch
