// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Activations and softmax.

#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/descriptors.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/operand_params.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/problem.hpp"

namespace libswap::simgpu::cudnn {
namespace {

bool is_softmax(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode) {
    return algorithm >= CUDNN_SOFTMAX_FAST && algorithm <= CUDNN_SOFTMAX_LOG &&
           (mode == CUDNN_SOFTMAX_MODE_INSTANCE || mode == CUDNN_SOFTMAX_MODE_CHANNEL);
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                     const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                     const void* x, const void* beta,
                                     const cudnnTensorDescriptor_t y_desc, void* y) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {activation, alpha, x, beta, y}))
    SIMGPU_CUDNN_TRY(check_alike({x_desc, y_desc}))
    auto params = forward_params<ActivationParams>(alpha, {x_desc, x}, beta, {y_desc, y});
    params.activation = activation->activation;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::activation_forward, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                      const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                      const void* y, const cudnnTensorDescriptor_t dy_desc,
                                      const void* dy, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const void* beta,
                                      const cudnnTensorDescriptor_t dx_desc, void* dx) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {activation, alpha, y, dy, x, beta, dx}))
    SIMGPU_CUDNN_TRY(check_alike({y_desc, dy_desc, x_desc, dx_desc}))
    auto params = backward_params<ActivationGradientParams>(alpha, {y_desc, y}, {dy_desc, dy},
                                                            {x_desc, x}, beta, {dx_desc, dx});
    params.activation = activation->activation;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::activation_backward, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const void* beta, const cudnnTensorDescriptor_t y_desc, void* y) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {alpha, x, beta, y}))
    SIMGPU_CUDNN_TRY(check_alike({x_desc, y_desc}))
    if (!is_softmax(algorithm, mode)) {
        return bad_param("no such algorithm or mode");
    }
    auto params = forward_params<SoftmaxParams>(alpha, {x_desc, x}, beta, {y_desc, y});
    params.algorithm = algorithm;
    params.mode = mode;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::softmax_forward, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   const cudnnTensorDescriptor_t y_desc, const void* y,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                   void* dx) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {alpha, y, dy, beta, dx}))
    SIMGPU_CUDNN_TRY(check_alike({y_desc, dy_desc, dx_desc}))
    if (!is_softmax(algorithm, mode)) {
        return bad_param("no such algorithm or mode");
    }
    auto params = forward_params<SoftmaxParams>(alpha, {dy_desc, dy}, beta, {y_desc, y});
    params.dx = address_of(dx);
    params.dx_desc = dx_desc->tensor;
    params.algorithm = algorithm;
    params.mode = mode;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::softmax_backward, params, handle->stream, params.y_desc.elements()));
}

}  // extern "C"
