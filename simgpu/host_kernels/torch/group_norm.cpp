// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Group norm in float32 (torch 2.15's group_norm_kernel.cu): moments of groups, then factors and
// summands of channels; backward sums of channels first. What is done element by element is in
// elementwise_ops.cpp.

#include <cmath>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

double wide(float x) { return static_cast<double>(x); }

/// A parameter's tensor; none where its address is null.
const float* maybe(const NamedLaunch& launch, std::size_t parameter, std::uint64_t number) {
    const auto va = launch.get<std::uint64_t>(parameter);
    return va == 0 ? nullptr : launch.read<float>(va, number);
}

/// (elements of a group, epsilon, in, means out, inverse deviations out, ...): a group per block.
bool moments(const NamedLaunch& launch) {
    const auto elements = launch.get<std::uint64_t>(0);
    const double epsilon = wide(launch.get<float>(1));
    const std::uint64_t groups = launch.grid()[0];
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(2), groups * elements);
    auto* mean = launch.write<float>(launch.get<std::uint64_t>(3), groups);
    auto* inverse = launch.write<float>(launch.get<std::uint64_t>(4), groups);
    if (in == nullptr || mean == nullptr || inverse == nullptr || elements == 0) return true;
    for (std::uint64_t group = 0; group < groups; ++group) {
        const float* x = in + group * elements;
        double sum = 0;
        double squares = 0;
        for (std::uint64_t i = 0; i < elements; ++i) sum += wide(x[i]);
        const double middle = sum / static_cast<double>(elements);
        for (std::uint64_t i = 0; i < elements; ++i)
            squares += (wide(x[i]) - middle) * (wide(x[i]) - middle);
        mean[group] = static_cast<float>(middle);
        inverse[group] =
            static_cast<float>(1 / std::sqrt(squares / static_cast<double>(elements) + epsilon));
    }
    const auto all = static_cast<double>(groups * elements);
    launch.cost(4 * all, 4 * all);
    return true;
}

/// (samples, channels, groups, means, inverse deviations, gamma, beta, factors out, summands out)
bool forward_factors(const NamedLaunch& launch) {
    const auto samples = launch.get<std::uint64_t>(0);
    const auto channels = launch.get<std::uint64_t>(1);
    const auto groups = launch.get<std::uint64_t>(2);
    if (groups == 0 || channels % groups != 0) return false;
    const std::uint64_t number = samples * channels;
    const auto* mean = launch.read<float>(launch.get<std::uint64_t>(3), samples * groups);
    const auto* inverse = launch.read<float>(launch.get<std::uint64_t>(4), samples * groups);
    const auto* gamma = maybe(launch, 5, channels);
    const auto* beta = maybe(launch, 6, channels);
    auto* factor = launch.write<float>(launch.get<std::uint64_t>(7), number);
    auto* summand = launch.write<float>(launch.get<std::uint64_t>(8), number);
    if (mean == nullptr || inverse == nullptr || factor == nullptr || summand == nullptr)
        return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t group = i / (channels / groups);
        const std::uint64_t c = i % channels;
        factor[i] = inverse[group] * (gamma == nullptr ? 1 : gamma[c]);
        summand[i] = static_cast<float>(-wide(factor[i]) * wide(mean[group]) +
                                        (beta == nullptr ? 0 : wide(beta[c])));
    }
    return true;
}

/// (elements of a channel, gradient, in, sums of products out, sums of gradients out): a channel
/// per block.
bool channel_sums(const NamedLaunch& launch) {
    const auto elements = launch.get<std::uint64_t>(0);
    const std::uint64_t channels = launch.grid()[0];
    const auto* grad = launch.read<float>(launch.get<std::uint64_t>(1), channels * elements);
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(2), channels * elements);
    auto* products = launch.write<float>(launch.get<std::uint64_t>(3), channels);
    auto* sums = launch.write<float>(launch.get<std::uint64_t>(4), channels);
    if (grad == nullptr || in == nullptr || products == nullptr || sums == nullptr) return true;
    for (std::uint64_t c = 0; c < channels; ++c) {
        double product = 0;
        double sum = 0;
        for (std::uint64_t i = c * elements; i < (c + 1) * elements; ++i) {
            product += wide(grad[i]) * wide(in[i]);
            sum += wide(grad[i]);
        }
        products[c] = static_cast<float>(product);
        sums[c] = static_cast<float>(sum);
    }
    const auto all = static_cast<double>(channels * elements);
    launch.cost(3 * all, 8 * all);
    return true;
}

/// (channels, elements of a channel, groups, means, inverse deviations, gamma, sums of products,
/// sums of gradients, factors out, summands out): a sample and a group per block.
bool backward_factors(const NamedLaunch& launch) {
    const auto channels = launch.get<std::uint64_t>(0);
    const auto elements = launch.get<std::uint64_t>(1);
    const auto groups = launch.get<std::uint64_t>(2);
    const std::uint64_t samples = launch.grid()[0];
    if (groups == 0 || channels % groups != 0 || launch.count() != 10) return false;
    const std::uint64_t width = channels / groups;
    const auto* mean = launch.read<float>(launch.get<std::uint64_t>(3), samples * groups);
    const auto* inverse = launch.read<float>(launch.get<std::uint64_t>(4), samples * groups);
    const auto* gamma = maybe(launch, 5, channels);
    const auto* products = launch.read<float>(launch.get<std::uint64_t>(6), samples * channels);
    const auto* sums = launch.read<float>(launch.get<std::uint64_t>(7), samples * channels);
    auto* factor = launch.write<float>(launch.get<std::uint64_t>(8), samples * groups);
    auto* summand = launch.write<float>(launch.get<std::uint64_t>(9), samples * groups);
    if (mean == nullptr || inverse == nullptr || products == nullptr || sums == nullptr ||
        factor == nullptr || summand == nullptr)
        return true;
    for (std::uint64_t group = 0; group < samples * groups; ++group) {
        double product = 0;
        double sum = 0;
        for (std::uint64_t i = 0; i < width; ++i) {
            const double weight = gamma == nullptr ? 1 : wide(gamma[group % groups * width + i]);
            product += wide(products[group * width + i]) * weight;
            sum += wide(sums[group * width + i]) * weight;
        }
        const double m = wide(mean[group]);
        const double r = wide(inverse[group]);
        const double share = 1 / static_cast<double>(width * elements);
        const double x = (sum * m - product) * r * r * r * share;
        factor[group] = static_cast<float>(x);
        summand[group] = static_cast<float>(-x * m - sum * r * share);
    }
    return true;
}

/// (samples, channels, groups, means, inverse deviations, sums of products, sums of gradients,
/// gradients of gamma and beta out)
bool parameter_gradients(const NamedLaunch& launch) {
    const auto samples = launch.get<std::uint64_t>(0);
    const auto channels = launch.get<std::uint64_t>(1);
    const auto groups = launch.get<std::uint64_t>(2);
    if (groups == 0 || channels % groups != 0) return false;
    const auto* mean = launch.read<float>(launch.get<std::uint64_t>(3), samples * groups);
    const auto* inverse = launch.read<float>(launch.get<std::uint64_t>(4), samples * groups);
    const auto* products = launch.read<float>(launch.get<std::uint64_t>(5), samples * channels);
    const auto* sums = launch.read<float>(launch.get<std::uint64_t>(6), samples * channels);
    const auto gamma_va = launch.get<std::uint64_t>(7);
    const auto beta_va = launch.get<std::uint64_t>(8);
    auto* gamma = gamma_va == 0 ? nullptr : launch.write<float>(gamma_va, channels);
    auto* beta = beta_va == 0 ? nullptr : launch.write<float>(beta_va, channels);
    if (mean == nullptr || inverse == nullptr || products == nullptr || sums == nullptr)
        return true;
    for (std::uint64_t c = 0; c < channels; ++c) {
        double of_gamma = 0;
        double of_beta = 0;
        for (std::uint64_t n = 0; n < samples; ++n) {
            const std::uint64_t i = n * channels + c;
            const std::uint64_t group = n * groups + c / (channels / groups);
            of_gamma +=
                (wide(products[i]) - wide(sums[i]) * wide(mean[group])) * wide(inverse[group]);
            of_beta += wide(sums[i]);
        }
        if (gamma != nullptr) gamma[c] = static_cast<float>(of_gamma);
        if (beta != nullptr) beta[c] = static_cast<float>(of_beta);
    }
    return true;
}

}  // namespace

NamedKernel find_group_norm(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    // <[elements at once,] float[, float]>
    if (arguments.empty() || arguments.back() != "float" ||
        (arguments.size() > 1 && arguments[arguments.size() - 2].find("Half") != std::string::npos))
        return {};
    if (name.base == "RowwiseMomentsContiguousCUDAKernel" ||
        name.base == "RowwiseMomentsCUDAKernel")
        return name.mentions("float const*, float*, float*") ? NamedKernel(moments) : NamedKernel();
    if (name.base == "ComputeFusedParamsCUDAKernel" && arguments.front() == "float")
        return forward_factors;
    if (name.base == "ComputeInternalGradientsContiguousCUDAKernel" ||
        name.base == "ComputeInternalGradientsCUDAKernel")
        return channel_sums;
    if (name.base == "ComputeBackwardFusedParamsCUDAKernel") return backward_factors;
    if (name.base == "GammaBetaBackwardCUDAKernel1" || name.base == "GammaBetaBackwardCUDAKernel2")
        return parameter_gradients;
    return {};
}

}  // namespace simgpu::torch
