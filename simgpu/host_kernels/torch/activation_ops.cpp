// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Activations and losses, element by element (torch 2.15's Activation*Kernel.cu, BinaryMisc*.cu,
// PointwiseOpsKernel.cu, Loss.cu). Lambdas hold their values in the order in which they name them.

#include <algorithm>
#include <array>
#include <cmath>

#include "simgpu/host_kernels/torch/elementwise_rows.hpp"

namespace simgpu::torch {
namespace {

double silu(double x) { return x * sigmoid(x); }
double silu_slope(double grad, double x) {
    const double s = sigmoid(x);
    return grad * s * (1 + x * (1 - s));
}
double softplus_of(double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double mish(double x) { return x * std::tanh(softplus_of(x)); }
double mish_slope(double grad, double x) {
    const double t = std::tanh(softplus_of(x));
    return grad * (t + x * sigmoid(x) * (1 - t * t));
}
double hard_swish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }
double hard_swish_slope(double grad, double x) {
    if (x < -3) return 0;
    return x <= 3 ? grad * (x / 3 + 0.5) : grad;
}
double hard_sigmoid(double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }
double hard_sigmoid_slope(double grad, double x) { return x > -3 && x < 3 ? grad / 6 : 0; }
double log_sigmoid(double x) { return std::fmin(0, x) - std::log1p(std::exp(-std::fabs(x))); }
double log_sigmoid_slope(double x, double grad) { return grad * sigmoid(-x); }
double tanh_slope(double grad, double out) { return grad * (1 - out * out); }
double sigmoid_slope(double grad, double out) { return grad * (1 - out) * out; }
double gated(double x, double gate) { return x * sigmoid(gate); }

double square_error(double a, double b) { return (a - b) * (a - b); }

double cross_entropy(double x, double target) {
    constexpr double kLeast = -100;
    const double no = std::fmax(std::log1p(-x), kLeast);
    const double yes = std::fmax(std::log(x), kLeast);
    return (target - 1) * no - target * yes;
}

void cross_entropy_slope(const Elements& e) {
    for_each_element<3>(e, [](double grad, double x, double target) {
        return grad * (x - target) / std::fmax((1 - x) * x, 1e-12);
    });
}

/// (slope below 0, slope above, factor inside the exponent below)
void elu(const Elements& e) {
    const double below = value(e, 0);
    const double above = value(e, 1);
    const double factor = value(e, 2);
    for_each_element<1>(
        e, [=](double x) { return x > 0 ? x * above : std::expm1(x * factor) * below; });
}

/// The same, then whether the second input is the result.
void elu_slope(const Elements& e) {
    const double below = value(e, 0);
    const double above = value(e, 1);
    const double factor = value(e, 2);
    const bool is_result = e.held<std::uint8_t>(3 * size_of(calculating(e.functor[0]))) != 0;
    for_each_element<2>(e, [=](double grad, double x) {
        if (x > 0) return grad * above;
        return is_result ? grad * factor * (x + below)
                         : grad * factor * below * std::exp(x * factor);
    });
}

void leaky_relu(const Elements& e) {
    const double slope = value(e, 0);
    for_each_element<1>(e, [=](double x) { return x > 0 ? x : x * slope; });
}

void leaky_relu_slope(const Elements& e) {
    const double slope = value(e, 0);
    for_each_element<2>(e, [=](double x, double grad) { return x > 0 ? grad : grad * slope; });
}

/// (beta, threshold)
void softplus(const Elements& e) {
    const double beta = value(e, 0);
    const double threshold = value(e, 1);
    for_each_element<1>(e, [=](double x) {
        return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
    });
}

void softplus_slope(const Elements& e) {
    const double beta = value(e, 0);
    const double threshold = value(e, 1);
    for_each_element<2>(e, [=](double grad, double x) {
        return x * beta > threshold ? grad : grad * sigmoid(x * beta);
    });
}

/// (least, most)
void hard_tanh_slope(const Elements& e) {
    const double low = value(e, 0);
    const double high = value(e, 1);
    for_each_element<2>(e, [=](double grad, double x) { return x <= low || x >= high ? 0 : grad; });
}

void square_error_slope(const Elements& e) {
    const double factor = value(e, 0);
    for_each_element<3>(e,
                        [=](double a, double b, double grad) { return factor * (a - b) * grad; });
}

void smooth_error(const Elements& e) {
    const double beta = value(e, 0);
    for_each_element<2>(e, [=](double a, double b) {
        const double z = std::fabs(a - b);
        return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
    });
}

/// (factor, beta)
void smooth_error_slope(const Elements& e) {
    const double factor = value(e, 0);
    const double beta = value(e, 1);
    for_each_element<3>(e, [=](double a, double b, double grad) {
        const double x = a - b;
        if (std::fabs(x) <= beta && beta != 0) return factor * x * grad / beta;
        return (x < 0 ? -1 : x > 0 ? 1 : 0) * factor * grad;
    });
}

void huber(const Elements& e) {
    const double delta = value(e, 0);
    for_each_element<2>(e, [=](double a, double b) {
        const double z = std::fabs(a - b);
        return z < delta ? 0.5 * z * z : delta * (z - 0.5 * delta);
    });
}

/// (factor, delta)
void huber_slope(const Elements& e) {
    const double factor = value(e, 0);
    const double delta = value(e, 1);
    for_each_element<3>(e, [=](double a, double b, double grad) {
        return factor * grad * std::clamp(a - b, -delta, delta);
    });
}

/// Dropout backward: (scale).
void masked_scale(const Elements& e) {
    const double scale = value(e, 0);
    for_each_element<2>(e, [=](double grad, double kept) { return grad * kept * scale; });
}

/// Group norm: by the factor and summand of the channel.
void scale_and_add(const Elements& e) {
    for_each_element<3>(
        e, [](double x, double factor, double summand) { return factor * x + summand; });
}

double times(double a, double b) { return a * b; }

void group_norm_slope(const Elements& e) {
    for_each_element<5>(e, [](double grad, double x, double of_grad, double of_x, double summand) {
        return of_grad * grad + of_x * x + summand;
    });
}

// What another row's name is part of stands before it.
constexpr std::array kRows{
    ElementwiseRow{"::log_sigmoid_backward_kernel", "", 2, Result::AsInputs,
                   binary<log_sigmoid_slope>},
    ElementwiseRow{"launch_log_sigmoid_forward_kernel", "", 1, Result::AsInputs,
                   unary<log_sigmoid>},
    ElementwiseRow{"::GroupNormKernelImplInternal<float, float>", "{lambda(float, float, float)#3}",
                   3, Result::AsInputs, scale_and_add},
    ElementwiseRow{"::GroupNormBackwardKernelImplInternal<float>", "{lambda(float, float)#1}", 2,
                   Result::AsInputs, binary<times>},
    ElementwiseRow{"::GroupNormBackwardKernelImplInternal<float>",
                   "{lambda(float, float, float, float, float)#1}", 5, Result::AsInputs,
                   group_norm_slope},
    ElementwiseRow{"::silu_kernel", "", 1, Result::AsInputs, unary<silu>},
    ElementwiseRow{"::silu_backward_kernel", "", 2, Result::AsInputs, binary<silu_slope>},
    ElementwiseRow{"::mish_kernel", "", 1, Result::AsInputs, unary<mish>},
    ElementwiseRow{"::mish_backward_kernel", "", 2, Result::AsInputs, binary<mish_slope>},
    ElementwiseRow{"::elu_kernel", "", 1, Result::AsInputs, elu},
    ElementwiseRow{"::elu_backward_kernel", "", 2, Result::AsInputs, elu_slope},
    ElementwiseRow{"::leaky_relu_kernel", "", 1, Result::AsInputs, leaky_relu},
    ElementwiseRow{"::leaky_relu_backward_kernel", "", 2, Result::AsInputs, leaky_relu_slope},
    ElementwiseRow{"::softplus_kernel", "", 1, Result::AsInputs, softplus},
    ElementwiseRow{"::softplus_backward_kernel", "", 2, Result::AsInputs, softplus_slope},
    ElementwiseRow{"::hardtanh_backward_kernel", "", 2, Result::AsInputs, hard_tanh_slope},
    ElementwiseRow{"::hardswish_kernel", "", 1, Result::AsInputs, unary<hard_swish>},
    ElementwiseRow{"::hardswish_backward_kernel", "", 2, Result::AsInputs,
                   binary<hard_swish_slope>},
    ElementwiseRow{"::hardsigmoid_kernel", "", 1, Result::AsInputs, unary<hard_sigmoid>},
    ElementwiseRow{"::hardsigmoid_backward_kernel", "", 2, Result::AsInputs,
                   binary<hard_sigmoid_slope>},
    ElementwiseRow{"::tanh_backward_kernel_cuda", "", 2, Result::AsInputs, binary<tanh_slope>},
    ElementwiseRow{"::sigmoid_backward_kernel_cuda", "", 2, Result::AsInputs,
                   binary<sigmoid_slope>},
    ElementwiseRow{"::glu_kernel", "", 2, Result::AsInputs, binary<gated>},
    ElementwiseRow{"::mse_kernel_cuda", "", 2, Result::AsInputs, binary<square_error>},
    ElementwiseRow{"::mse_backward_cuda_kernel", "", 3, Result::AsInputs, square_error_slope},
    ElementwiseRow{"::smooth_l1_kernel_cuda", "", 2, Result::AsInputs, smooth_error},
    ElementwiseRow{"::smooth_l1_backward_cuda_kernel", "", 3, Result::AsInputs, smooth_error_slope},
    ElementwiseRow{"::huber_kernel_cuda", "", 2, Result::AsInputs, huber},
    ElementwiseRow{"::huber_backward_cuda_kernel", "", 3, Result::AsInputs, huber_slope},
    ElementwiseRow{"::binary_cross_entropy_out_cuda", "", 2, Result::AsInputs,
                   binary<cross_entropy>},
    ElementwiseRow{"::binary_cross_entropy_backward_out_kernel", "", 3, Result::AsInputs,
                   cross_entropy_slope},
    ElementwiseRow{"::masked_scale_kernel", "", 2, Result::AsFirst, masked_scale},
};

}  // namespace

std::span<const ElementwiseRow> activation_rows() { return kRows; }

}  // namespace simgpu::torch
