// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/pointwise.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace libswap::simgpu::cudnn {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Hendrycks and Gimpel, Gaussian Error Linear Units, 2016: the approximation by tanh.
double gelu_argument(double x) {
    return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

double relu(const GraphOp& op, double x) {
    const double lower = static_cast<double>(op.lower);
    const double upper = static_cast<double>(op.upper);
    return x < lower ? lower + static_cast<double>(op.slope) * (x - lower) : std::min(x, upper);
}

double forward(const GraphOp& op, double x) {
    const double c = static_cast<double>(op.coefficient);
    switch (op.mode) {
        case CUDNN_POINTWISE_RELU_FWD:
            return relu(op, x);
        case CUDNN_POINTWISE_TANH_FWD:
            return std::tanh(x);
        case CUDNN_POINTWISE_SIGMOID_FWD:
            return sigmoid(x);
        case CUDNN_POINTWISE_ELU_FWD:
            return x > 0 ? x : c * std::expm1(x);
        case CUDNN_POINTWISE_GELU_FWD:
            return x * normal_distribution(x);
        case CUDNN_POINTWISE_SOFTPLUS_FWD:
            return std::log1p(std::exp(c * x)) / c;
        case CUDNN_POINTWISE_SWISH_FWD:
            return x * sigmoid(c * x);
        default:
            return 0.5 * x * (1 + std::tanh(gelu_argument(x)));
    }
}

double derivative(const GraphOp& op, double x) {
    const double c = static_cast<double>(op.coefficient);
    switch (op.mode) {
        case CUDNN_POINTWISE_RELU_BWD:
            return x <= static_cast<double>(op.lower)  ? static_cast<double>(op.slope)
                   : x < static_cast<double>(op.upper) ? 1
                                                       : 0;
        case CUDNN_POINTWISE_TANH_BWD:
            return 1 - std::tanh(x) * std::tanh(x);
        case CUDNN_POINTWISE_SIGMOID_BWD:
            return sigmoid(x) * (1 - sigmoid(x));
        case CUDNN_POINTWISE_ELU_BWD:
            return x > 0 ? 1 : c * std::exp(x);
        case CUDNN_POINTWISE_GELU_BWD:
            return normal_distribution(x) + x * normal_density(x);
        case CUDNN_POINTWISE_SOFTPLUS_BWD:
            return sigmoid(c * x);
        case CUDNN_POINTWISE_SWISH_BWD:
            return sigmoid(c * x) * (1 + c * x * (1 - sigmoid(c * x)));
        default: {
            const double tanh = std::tanh(gelu_argument(x));
            const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
            return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner;
        }
    }
}

double unary(int mode, double x) {
    switch (mode) {
        case CUDNN_POINTWISE_ABS:
            return std::abs(x);
        case CUDNN_POINTWISE_CEIL:
            return std::ceil(x);
        case CUDNN_POINTWISE_COS:
            return std::cos(x);
        case CUDNN_POINTWISE_EXP:
            return std::exp(x);
        case CUDNN_POINTWISE_FLOOR:
            return std::floor(x);
        case CUDNN_POINTWISE_LOG:
            return std::log(x);
        case CUDNN_POINTWISE_NEG:
            return -x;
        case CUDNN_POINTWISE_RSQRT:
            return 1 / std::sqrt(x);
        case CUDNN_POINTWISE_SIN:
            return std::sin(x);
        case CUDNN_POINTWISE_SQRT:
            return std::sqrt(x);
        case CUDNN_POINTWISE_TAN:
            return std::tan(x);
        case CUDNN_POINTWISE_ERF:
            return std::erf(x);
        case CUDNN_POINTWISE_RECIPROCAL:
            return 1 / x;
        case CUDNN_POINTWISE_LOGICAL_NOT:
            return x == 0 ? 1 : 0;
        default:
            return x;
    }
}

double binary(int mode, double x, double b) {
    switch (mode) {
        case CUDNN_POINTWISE_ADD:
            return x + b;
        case CUDNN_POINTWISE_ADD_SQUARE:
            return x + b * b;
        case CUDNN_POINTWISE_DIV:
            return x / b;
        case CUDNN_POINTWISE_MAX:
            return std::max(x, b);
        case CUDNN_POINTWISE_MIN:
            return std::min(x, b);
        case CUDNN_POINTWISE_MOD:
            return std::fmod(x, b);
        case CUDNN_POINTWISE_MUL:
            return x * b;
        case CUDNN_POINTWISE_POW:
            return std::pow(x, b);
        case CUDNN_POINTWISE_SUB:
            return x - b;
        case CUDNN_POINTWISE_ATAN2:
            return std::atan2(x, b);
        case CUDNN_POINTWISE_CMP_EQ:
            return x == b ? 1 : 0;
        case CUDNN_POINTWISE_CMP_NEQ:
            return x != b ? 1 : 0;
        case CUDNN_POINTWISE_CMP_GT:
            return x > b ? 1 : 0;
        case CUDNN_POINTWISE_CMP_GE:
            return x >= b ? 1 : 0;
        case CUDNN_POINTWISE_CMP_LT:
            return x < b ? 1 : 0;
        case CUDNN_POINTWISE_CMP_LE:
            return x <= b ? 1 : 0;
        case CUDNN_POINTWISE_LOGICAL_AND:
            return x != 0 && b != 0 ? 1 : 0;
        default:
            return x != 0 || b != 0 ? 1 : 0;
    }
}

bool is_binary(int mode) {
    return mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL ||
           mode == CUDNN_POINTWISE_MIN || mode == CUDNN_POINTWISE_MAX ||
           (mode >= CUDNN_POINTWISE_ADD_SQUARE && mode <= CUDNN_POINTWISE_SUB) ||
           mode == CUDNN_POINTWISE_ATAN2 ||
           (mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE) ||
           mode == CUDNN_POINTWISE_LOGICAL_AND || mode == CUDNN_POINTWISE_LOGICAL_OR;
}

bool is_forward(int mode) {
    return mode >= CUDNN_POINTWISE_RELU_FWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
}

bool is_backward(int mode) {
    return mode >= CUDNN_POINTWISE_RELU_BWD && mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_BWD;
}

}  // namespace

bool is_pointwise(int mode) {
    return is_binary(mode) || is_forward(mode) || is_backward(mode) ||
           mode == CUDNN_POINTWISE_SQRT ||
           (mode >= CUDNN_POINTWISE_ABS && mode <= CUDNN_POINTWISE_RECIPROCAL) ||
           mode == CUDNN_POINTWISE_LOGICAL_NOT || mode == CUDNN_POINTWISE_GEN_INDEX ||
           mode == CUDNN_POINTWISE_BINARY_SELECT;
}

double pointwise(const GraphOp& op, double x, double b, double t, double index) {
    const int mode = op.mode;
    if (is_backward(mode)) {
        return b * derivative(op, x);
    }
    const double a = static_cast<double>(op.alpha1) * x;
    if (is_forward(mode)) {
        return forward(op, a);
    }
    if (is_binary(mode)) {
        return binary(mode, a, static_cast<double>(op.alpha2) * b);
    }
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
        return index;
    }
    return mode == CUDNN_POINTWISE_BINARY_SELECT ? (t != 0 ? x : b) : unary(mode, a);
}

}  // namespace libswap::simgpu::cudnn
