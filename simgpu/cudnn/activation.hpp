// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cmath>
#include <cstdint>

#include "simgpu/cudnn/api.hpp"

namespace libswap::simgpu::cudnn {

/// As a descriptor and kernels' parameters have it.
struct Activation {
    std::int32_t mode = CUDNN_ACTIVATION_IDENTITY;  ///< cudnnActivationMode_t
    std::int32_t propagate_nan = 0;
    double coefficient = 0;  ///< ceiling of the clipped ReLU, alpha of ELU
    double swish_beta = 1;
};

/// The activation of x. Formulas: cuDNN's reference, cudnnActivationMode_t.
template <typename T>
T activate(const Activation& a, T x) {
    switch (a.mode) {
        case CUDNN_ACTIVATION_SIGMOID:
            return T{1} / (T{1} + std::exp(-x));
        case CUDNN_ACTIVATION_RELU:
            return x > T{0} || (a.propagate_nan != 0 && std::isnan(x)) ? x : T{0};
        case CUDNN_ACTIVATION_TANH:
            return std::tanh(x);
        case CUDNN_ACTIVATION_CLIPPED_RELU: {
            const T ceiling = static_cast<T>(a.coefficient);
            if (a.propagate_nan != 0 && std::isnan(x)) {
                return x;
            }
            return x > ceiling ? ceiling : x > T{0} ? x : T{0};
        }
        case CUDNN_ACTIVATION_ELU:
            return x > T{0} ? x : static_cast<T>(a.coefficient) * std::expm1(x);
        case CUDNN_ACTIVATION_SWISH:
            return x / (T{1} + std::exp(-static_cast<T>(a.swish_beta) * x));
        default:
            return x;
    }
}

/// The gradient by x, given y = activate(x).
template <typename T>
T activation_gradient(const Activation& a, T y, T x, T dy) {
    switch (a.mode) {
        case CUDNN_ACTIVATION_SIGMOID:
            return dy * y * (T{1} - y);
        case CUDNN_ACTIVATION_RELU:
            return x > T{0} ? dy : T{0};
        case CUDNN_ACTIVATION_TANH:
            return dy * (T{1} - y * y);
        case CUDNN_ACTIVATION_CLIPPED_RELU:
            return x > T{0} && x < static_cast<T>(a.coefficient) ? dy : T{0};
        case CUDNN_ACTIVATION_ELU:
            return x > T{0} ? dy : dy * (y + static_cast<T>(a.coefficient));
        case CUDNN_ACTIVATION_SWISH: {
            const T beta = static_cast<T>(a.swish_beta);
            const T sigmoid = T{1} / (T{1} + std::exp(-beta * x));
            return dy * (sigmoid + beta * x * sigmoid * (T{1} - sigmoid));
        }
        default:
            return dy;
    }
}

}  // namespace libswap::simgpu::cudnn
