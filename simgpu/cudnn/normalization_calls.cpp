// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Batch normalisation.

#include <algorithm>

#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/descriptors.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/problem.hpp"

namespace libswap::simgpu::cudnn {
namespace {

bool is_mode(cudnnBatchNormMode_t mode) {
    return mode >= CUDNN_BATCHNORM_PER_ACTIVATION && mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}

bool is_ops(cudnnBatchNormOps_t ops) {
    return ops >= CUDNN_BATCHNORM_OPS_BN && ops <= CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
}

/// Parameters are one value per channel, or per element of an image; floats but for doubles.
cudnnDataType_t param_type(const Tensor& x) {
    return x.data_type() == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

std::int64_t param_count(const Tensor& x, cudnnBatchNormMode_t mode) {
    return mode == CUDNN_BATCHNORM_PER_ACTIVATION ? x.elements() / x.dims[0] : x.dims[1];
}

cudnnStatus_t check_tensors(cudnnBatchNormMode_t mode, cudnnTensorDescriptor_t x,
                            cudnnTensorDescriptor_t y, cudnnTensorDescriptor_t params,
                            double epsilon) {
    if (!is_mode(mode) || x == nullptr || y == nullptr || params == nullptr) {
        return bad_param("no such mode, or a descriptor is missing");
    }
    if (x->tensor.rank < 4 || x->tensor.rank > 5) {
        return bad_param("tensors are of four or five dimensions");
    }
    if (!same_dims(x->tensor, y->tensor) || x->tensor.type != y->tensor.type) {
        return bad_param("the tensors' shapes or types differ");
    }
    if (!is_floating(x->tensor.data_type())) {
        return not_supported("this data type");
    }
    if (params->tensor.elements() != param_count(x->tensor, mode) ||
        params->tensor.data_type() != param_type(x->tensor)) {
        return bad_param("the shape or type of the parameters does not fit");
    }
    return epsilon < CUDNN_BN_MIN_EPSILON ? bad_param("epsilon is too small")
                                          : CUDNN_STATUS_SUCCESS;
}

bool both_or_none(const void* a, const void* b) { return (a == nullptr) == (b == nullptr); }

std::size_t workspace_size(cudnnBatchNormMode_t mode, const Tensor& x) {
    constexpr std::size_t kPartialSums = 2 * sizeof(double);
    return mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT
               ? static_cast<std::size_t>(x.dims[1]) * kPartialSums
               : 0;
}

std::size_t reserve_size(cudnnBatchNormOps_t ops, const Tensor& x) {
    return ops == CUDNN_BATCHNORM_OPS_BN ? 0 : static_cast<std::size_t>(x.elements() + 7) / 8;
}

cudnnStatus_t check_space(std::size_t needed, const void* space, std::size_t bytes) {
    return needed != 0 && (space == nullptr || bytes < needed)
               ? bad_param("the workspace or the reserve space is too small")
               : CUDNN_STATUS_SUCCESS;
}

/// Only ReLU is fused.
cudnnStatus_t check_activation(cudnnBatchNormOps_t ops, cudnnActivationDescriptor_t activation) {
    if (!is_ops(ops)) {
        return bad_param("no such operations");
    }
    if (ops == CUDNN_BATCHNORM_OPS_BN) {
        return CUDNN_STATUS_SUCCESS;
    }
    if (activation == nullptr) {
        return bad_param("the activation is missing");
    }
    return activation->activation.mode == CUDNN_ACTIVATION_RELU ? CUDNN_STATUS_SUCCESS
                                                                : not_supported("this activation");
}

cudnnStatus_t answer_size(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
                          cudnnTensorDescriptor_t x, std::size_t size, std::size_t* bytes) {
    if (handle == nullptr || bytes == nullptr || !is_mode(mode) || !is_ops(ops) || x == nullptr) {
        return bad_param(
            "a handle, descriptor or place for the answer is missing, or no such mode");
    }
    *bytes = size;
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
    if (derived == nullptr || x == nullptr || !is_mode(mode) || x->tensor.rank < 4 ||
        x->tensor.rank > 5) {
        return bad_param("no descriptor of four or five dimensions, or no such mode");
    }
    int dims[Tensor::kMaxRank] = {1, x->tensor.dims[1], 1, 1, 1};
    if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) {
        std::copy_n(x->tensor.dims + 2, x->tensor.rank - 2, dims + 2);
    }
    derived->tensor = dense_tensor(param_type(x->tensor), x->tensor.rank, dims);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t, std::size_t* bytes) {
    return answer_size(handle, mode, ops, x, x == nullptr ? 0 : workspace_size(mode, x->tensor),
                       bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, std::size_t* bytes) {
    return answer_size(handle, mode, ops, x, x == nullptr ? 0 : workspace_size(mode, x->tensor),
                       bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t, const cudnnTensorDescriptor_t x, std::size_t* bytes) {
    return answer_size(handle, mode, ops, x, x == nullptr ? 0 : reserve_size(ops, x->tensor),
                       bytes);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t z_desc, const void* z, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t param_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse, cudnnActivationDescriptor_t activation, void* workspace,
    std::size_t workspace_bytes, void* reserve, std::size_t reserve_bytes) {
    if (handle == nullptr || alpha == nullptr || beta == nullptr || x == nullptr || y == nullptr ||
        scale == nullptr || bias == nullptr) {
        return bad_param("an operand is missing");
    }
    SIMGPU_CUDNN_TRY(check_tensors(mode, x_desc, y_desc, param_desc, epsilon))
    SIMGPU_CUDNN_TRY(check_activation(ops, activation))
    if (!both_or_none(running_mean, running_variance) || !both_or_none(saved_mean, saved_inverse)) {
        return bad_param("one of two results is missing");
    }
    const bool adds = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    if (adds && (z == nullptr || z_desc == nullptr || !same_dims(z_desc->tensor, x_desc->tensor))) {
        return bad_param("what is added is missing, or does not fit");
    }
    SIMGPU_CUDNN_TRY(check_space(workspace_size(mode, x_desc->tensor), workspace, workspace_bytes))
    SIMGPU_CUDNN_TRY(check_space(reserve_size(ops, x_desc->tensor), reserve, reserve_bytes))
    NormalizationParams params{};
    params.x = address_of(x);
    params.y = address_of(y);
    params.z = adds ? address_of(z) : 0;
    params.scale = address_of(scale);
    params.bias = address_of(bias);
    params.mean = address_of(running_mean);
    params.variance = address_of(running_variance);
    params.saved_mean = address_of(saved_mean);
    params.saved_inverse = address_of(saved_inverse);
    params.workspace_bytes = workspace_size(mode, x_desc->tensor);
    params.workspace = params.workspace_bytes == 0 ? 0 : address_of(workspace);
    params.alpha = scalar_at(alpha, x_desc->tensor.data_type());
    params.beta = scalar_at(beta, x_desc->tensor.data_type());
    params.factor = factor;
    params.epsilon = epsilon;
    params.x_desc = x_desc->tensor;
    params.y_desc = y_desc->tensor;
    params.param_desc = param_desc->tensor;
    if (adds) {
        params.z_desc = z_desc->tensor;
    }
    if (ops != CUDNN_BATCHNORM_OPS_BN) {
        params.reserve = address_of(reserve);
        params.activation = activation->activation;
        params.has_activation = 1;
    }
    params.per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? 1 : 0;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::normalization_training, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t param_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
    // Without Ex there is no workspace.
    const cudnnBatchNormMode_t plain =
        mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? CUDNN_BATCHNORM_SPATIAL : mode;
    return cudnnBatchNormalizationForwardTrainingEx(
        handle, plain, CUDNN_BATCHNORM_OPS_BN, alpha, beta, x_desc, x, nullptr, nullptr, y_desc, y,
        param_desc, scale, bias, factor, running_mean, running_variance, epsilon, saved_mean,
        saved_inverse, nullptr, nullptr, 0, nullptr, 0);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t param_desc, const void* scale, const void* bias,
    const void* mean, const void* variance, double epsilon) {
    if (handle == nullptr || alpha == nullptr || beta == nullptr || x == nullptr || y == nullptr ||
        scale == nullptr || bias == nullptr || mean == nullptr || variance == nullptr) {
        return bad_param("an operand is missing");
    }
    SIMGPU_CUDNN_TRY(check_tensors(mode, x_desc, y_desc, param_desc, epsilon))
    NormalizationParams params{};
    params.x = address_of(x);
    params.y = address_of(y);
    params.scale = address_of(scale);
    params.bias = address_of(bias);
    params.mean = address_of(mean);
    params.variance = address_of(variance);
    params.alpha = scalar_at(alpha, x_desc->tensor.data_type());
    params.beta = scalar_at(beta, x_desc->tensor.data_type());
    params.epsilon = epsilon;
    params.x_desc = x_desc->tensor;
    params.y_desc = y_desc->tensor;
    params.param_desc = param_desc->tensor;
    params.per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? 1 : 0;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::normalization_inference, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void* alpha_data, const void* beta_data, const void* alpha_param, const void* beta_param,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t dy_desc, const void* dy, const cudnnTensorDescriptor_t dz_desc,
    void* dz, const cudnnTensorDescriptor_t dx_desc, void* dx,
    const cudnnTensorDescriptor_t param_desc, const void* scale, const void*, void* dscale,
    void* dbias, double epsilon, const void* saved_mean, const void* saved_inverse,
    cudnnActivationDescriptor_t activation, void* workspace, std::size_t workspace_bytes,
    void* reserve, std::size_t reserve_bytes) {
    if (handle == nullptr || alpha_data == nullptr || beta_data == nullptr ||
        alpha_param == nullptr || beta_param == nullptr || x == nullptr || dy == nullptr ||
        dx == nullptr || scale == nullptr || dscale == nullptr || dbias == nullptr) {
        return bad_param("an operand is missing");
    }
    SIMGPU_CUDNN_TRY(check_tensors(mode, x_desc, dy_desc, param_desc, epsilon))
    SIMGPU_CUDNN_TRY(check_tensors(mode, x_desc, dx_desc, param_desc, epsilon))
    SIMGPU_CUDNN_TRY(check_activation(ops, activation))
    if (!both_or_none(saved_mean, saved_inverse)) {
        return bad_param("one of two saved results is missing");
    }
    const bool adds = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    if (adds &&
        (dz == nullptr || dz_desc == nullptr || !same_dims(dz_desc->tensor, x_desc->tensor))) {
        return bad_param("the place for the gradient of what is added is missing, or does not fit");
    }
    SIMGPU_CUDNN_TRY(check_space(workspace_size(mode, x_desc->tensor), workspace, workspace_bytes))
    SIMGPU_CUDNN_TRY(check_space(reserve_size(ops, x_desc->tensor), reserve, reserve_bytes))
    NormalizationGradientParams params{};
    params.x = address_of(x);
    params.dy = address_of(dy);
    params.dx = address_of(dx);
    params.dz = adds ? address_of(dz) : 0;
    params.scale = address_of(scale);
    params.dscale = address_of(dscale);
    params.dbias = address_of(dbias);
    params.saved_mean = address_of(saved_mean);
    params.saved_inverse = address_of(saved_inverse);
    params.has_activation = ops == CUDNN_BATCHNORM_OPS_BN ? 0 : 1;
    params.reserve = params.has_activation != 0 ? address_of(reserve) : 0;
    params.workspace_bytes = workspace_size(mode, x_desc->tensor);
    params.workspace = params.workspace_bytes == 0 ? 0 : address_of(workspace);
    const cudnnDataType_t type = x_desc->tensor.data_type();
    params.alpha_data = scalar_at(alpha_data, type);
    params.beta_data = scalar_at(beta_data, type);
    params.alpha_param = scalar_at(alpha_param, type);
    params.beta_param = scalar_at(beta_param, type);
    params.epsilon = epsilon;
    params.x_desc = x_desc->tensor;
    params.dy_desc = dy_desc->tensor;
    params.dx_desc = dx_desc->tensor;
    if (adds) {
        params.dz_desc = dz_desc->tensor;
    }
    params.param_desc = param_desc->tensor;
    params.per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? 1 : 0;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::normalization_backward, params, handle->stream, params.x_desc.elements()));
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_param, const void* beta_param, const cudnnTensorDescriptor_t x_desc,
    const void* x, const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnTensorDescriptor_t dx_desc, void* dx, const cudnnTensorDescriptor_t param_desc,
    const void* scale, void* dscale, void* dbias, double epsilon, const void* saved_mean,
    const void* saved_inverse) {
    const cudnnBatchNormMode_t plain =
        mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? CUDNN_BATCHNORM_SPATIAL : mode;
    return cudnnBatchNormalizationBackwardEx(
        handle, plain, CUDNN_BATCHNORM_OPS_BN, alpha_data, beta_data, alpha_param, beta_param,
        x_desc, x, nullptr, nullptr, dy_desc, dy, nullptr, nullptr, dx_desc, dx, param_desc, scale,
        nullptr, dscale, dbias, epsilon, saved_mean, saved_inverse, nullptr, nullptr, 0, nullptr,
        0);
}

}  // extern "C"
