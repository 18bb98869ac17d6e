// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the kernels of activations, softmax and pooling are told in the same words.
#pragma once

#include "simgpu/cudnn/descriptors.hpp"
#include "simgpu/cudnn/problem.hpp"
#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

/// A tensor as cuDNN's calls pass one.
struct TensorOperand {
    cudnnTensorDescriptor_t descriptor;
    const void* data;
};

/// alpha and beta, of the type that they have for these tensors.
template <class Params>
void set_blend(Params& params, const void* alpha, const void* beta, const Tensor& tensor) {
    params.alpha = scalar_at(alpha, tensor.data_type());
    params.beta = scalar_at(beta, tensor.data_type());
}

/// Parameters of y = alpha f(x) + beta y.
template <class Params>
Params forward_params(const void* alpha, TensorOperand x, const void* beta, TensorOperand y) {
    Params params{};
    params.x = address_of(x.data);
    params.y = address_of(y.data);
    params.x_desc = x.descriptor->tensor;
    params.y_desc = y.descriptor->tensor;
    set_blend(params, alpha, beta, params.x_desc);
    return params;
}

/// Parameters of dx = alpha f'(x, y) dy + beta dx.
template <class Params>
Params backward_params(const void* alpha, TensorOperand y, TensorOperand dy, TensorOperand x,
                       const void* beta, TensorOperand dx) {
    Params params = forward_params<Params>(alpha, x, beta, y);
    params.dy = address_of(dy.data);
    params.dx = address_of(dx.data);
    params.dy_desc = dy.descriptor->tensor;
    params.dx_desc = dx.descriptor->tensor;
    return params;
}

}  // namespace libswap::simgpu::cudnn
