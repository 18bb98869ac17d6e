// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The legacy calls that convolve.

#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/problem.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// An algorithm of the direction's enumeration that is there.
cudnnStatus_t need_algorithm(Direction direction, int id, const Algorithm*& out) {
    if (id < 0 || id >= algorithm_count(direction)) {
        return bad_param("no such algorithm");
    }
    out = find_algorithm(direction, id);
    return out == nullptr ? not_supported("this algorithm") : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t prepare(cudnnHandle_t handle, Direction direction, const Problem& problem, int id,
                      const Operands& operands, const Algorithm*& algorithm) {
    if (handle == nullptr) {
        return bad_param("no handle");
    }
    if (operands.x == nullptr || operands.w == nullptr || operands.y == nullptr) {
        return bad_param("a tensor's address is missing");
    }
    if (const cudnnStatus_t status = need_algorithm(direction, id, algorithm);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const std::size_t needed = workspace_bytes(*algorithm, problem);
    if (operands.workspace_bytes < needed || (needed != 0 && operands.workspace == nullptr)) {
        return bad_param("the workspace is too small");
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t convolve_by_call(cudnnHandle_t handle, Direction direction, const Problem& problem,
                               int id, const Operands& operands, const void* alpha,
                               const void* beta) {
    if (alpha == nullptr || beta == nullptr) {
        return bad_param("a factor is missing");
    }
    const Algorithm* algorithm = nullptr;
    if (const cudnnStatus_t status = prepare(handle, direction, problem, id, operands, algorithm);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    ConvolutionParams params = params_of(problem, *algorithm, operands);
    params.alpha = scalar_at(alpha, problem.y.data_type());
    params.beta = scalar_at(beta, problem.y.data_type());
    return launch_convolution(*handle, direction, params);
}

cudnnStatus_t workspace_size(cudnnHandle_t handle, Direction direction, const Problem& problem,
                             int id, std::size_t* bytes) {
    if (handle == nullptr || bytes == nullptr) {
        return bad_param("no handle, or no place for the size");
    }
    const Algorithm* algorithm = nullptr;
    const cudnnStatus_t status = need_algorithm(direction, id, algorithm);
    if (status == CUDNN_STATUS_SUCCESS) {
        *bytes = workspace_bytes(*algorithm, problem);
    }
    return status;
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

#define SIMGPU_CUDNN_PROBLEM(x, w, convolution, y)                              \
    Problem problem;                                                            \
    if (const cudnnStatus_t made = make_problem(x, w, convolution, y, problem); \
        made != CUDNN_STATUS_SUCCESS) {                                         \
        return made;                                                            \
    }

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
    SIMGPU_CUDNN_PROBLEM(x, w, convolution, y)
    return workspace_size(handle, Direction::Forward, problem, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
    SIMGPU_CUDNN_PROBLEM(dx, w, convolution, dy)
    return workspace_size(handle, Direction::BackwardData, problem, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
    SIMGPU_CUDNN_PROBLEM(x, dw, convolution, dy)
    return workspace_size(handle, Direction::BackwardFilter, problem, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void* x,
                                      const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
    SIMGPU_CUDNN_PROBLEM(x_desc, w_desc, convolution, y_desc)
    return convolve_by_call(handle, Direction::Forward, problem, algorithm,
                            {x, w, y, workspace, workspace_bytes}, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
    SIMGPU_CUDNN_PROBLEM(dx_desc, w_desc, convolution, dy_desc)
    return convolve_by_call(handle, Direction::BackwardData, problem, algorithm,
                            {dx, w, dy, workspace, workspace_bytes}, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, std::size_t workspace_bytes,
                                             const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
    SIMGPU_CUDNN_PROBLEM(x_desc, dw_desc, convolution, dy_desc)
    return convolve_by_call(handle, Direction::BackwardFilter, problem, algorithm,
                            {x, dw, dy, workspace, workspace_bytes}, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
    void* workspace, std::size_t workspace_bytes, const void* alpha2,
    const cudnnTensorDescriptor_t z_desc, const void* z, const cudnnTensorDescriptor_t bias_desc,
    const void* bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y_desc, void* y) {
    SIMGPU_CUDNN_PROBLEM(x_desc, w_desc, convolution, y_desc)
    if (alpha1 == nullptr || alpha2 == nullptr || z_desc == nullptr || bias_desc == nullptr ||
        activation == nullptr || bias == nullptr || z == nullptr) {
        return bad_param("an operand is missing");
    }
    if (!same_dims(z_desc->tensor, problem.y) || bias_desc->tensor.rank < 2 ||
        bias_desc->tensor.elements() != problem.y.dims[1] ||
        bias_desc->tensor.dims[1] != problem.y.dims[1]) {
        return bad_param("the shapes of z or of the bias do not fit");
    }
    // As documented: only these two.
    if (activation->activation.mode != CUDNN_ACTIVATION_RELU &&
        activation->activation.mode != CUDNN_ACTIVATION_IDENTITY) {
        return not_supported("this activation");
    }
    const Operands operands{x, w, y, workspace, workspace_bytes};
    const Algorithm* chosen = nullptr;
    if (const cudnnStatus_t status =
            prepare(handle, Direction::Forward, problem, algorithm, operands, chosen);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    ConvolutionParams params = params_of(problem, *chosen, operands);
    params.alpha = scalar_at(alpha1, problem.y.data_type());
    params.beta = scalar_at(alpha2, problem.y.data_type());
    params.z = address_of(z);
    params.z_desc = z_desc->tensor;
    params.bias = address_of(bias);
    params.bias_desc = bias_desc->tensor;
    params.activation = activation->activation;
    params.has_activation = 1;
    return launch_convolution(*handle, Direction::Forward, params);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, const cudnnTensorDescriptor_t db_desc,
                                           void* db) {
    if (handle == nullptr || alpha == nullptr || beta == nullptr || dy_desc == nullptr ||
        db_desc == nullptr || dy == nullptr || db == nullptr) {
        return bad_param("an operand is missing");
    }
    const Tensor& from = dy_desc->tensor;
    const Tensor& to = db_desc->tensor;
    // As documented: a bias has extents of 1 but in its channels.
    if (from.rank < 3 || to.rank < 2 || to.dims[1] != from.dims[1] ||
        to.elements() != from.dims[1] || to.type != from.type) {
        return bad_param("the shapes of the gradients do not fit");
    }
    if (!is_floating(from.data_type())) {
        return not_supported("gradients of this data type");
    }
    ensure_context(*handle);
    BiasGradientParams params{};
    params.dy = address_of(dy);
    params.db = address_of(db);
    params.alpha = scalar_at(alpha, from.data_type());
    params.beta = scalar_at(beta, from.data_type());
    params.dy_desc = from;
    params.db_desc = to;
    return status_of(
        launch(Kernel::convolution_backward_bias, params, handle->stream, from.elements()));
}

}  // extern "C"

#undef SIMGPU_CUDNN_PROBLEM
