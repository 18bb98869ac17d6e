// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Calls that combine, fill, copy and reduce tensors, and the descriptors of what they do.

#include "simgpu/cudnn/broadcast.hpp"
#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/element.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/problem.hpp"

struct cudnnOpTensorStruct {
    cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nan_option = CUDNN_NOT_PROPAGATE_NAN;
};

struct cudnnReduceTensorStruct {
    cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nan_option = CUDNN_NOT_PROPAGATE_NAN;
    cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
    cudnnIndicesType_t index_type = CUDNN_32BIT_INDICES;
};

namespace libswap::simgpu::cudnn {
namespace {

bool is_nan_option(cudnnNanPropagation_t option) {
    return option == CUDNN_NOT_PROPAGATE_NAN || option == CUDNN_PROPAGATE_NAN;
}

bool has_indices(const cudnnReduceTensorStruct& reduction) {
    return reduction.indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES &&
           (reduction.op == CUDNN_REDUCE_TENSOR_MIN || reduction.op == CUDNN_REDUCE_TENSOR_MAX);
}

cudnnStatus_t check_reduction(cudnnReduceTensorDescriptor_t reduction, cudnnTensorDescriptor_t a,
                              cudnnTensorDescriptor_t c) {
    if (reduction == nullptr || a == nullptr || c == nullptr || a->tensor.rank == 0) {
        return bad_param("a descriptor is missing, or not set");
    }
    if (!can_repeat(c->tensor, a->tensor) || a->tensor.type != c->tensor.type) {
        return bad_param("the shapes or types do not fit");
    }
    if (!is_floating(a->tensor.data_type())) {
        return not_supported("this data type");
    }
    return CUDNN_STATUS_SUCCESS;
}

std::size_t indices_size(const cudnnReduceTensorStruct& reduction, const Tensor& c) {
    return has_indices(reduction) ? static_cast<std::size_t>(c.elements()) * sizeof(std::uint32_t)
                                  : 0;
}

/// Partial results, where there is something to reduce.
std::size_t workspace_size(const Tensor& a, const Tensor& c) {
    return same_dims(a, c) ? 0 : static_cast<std::size_t>(c.elements()) * sizeof(double);
}

/// The host's value of the type of the tensor.
double value_at(const void* pointer, cudnnDataType_t type) {
    switch (type) {
        case CUDNN_DATA_DOUBLE:
            return *static_cast<const double*>(pointer);
        case CUDNN_DATA_HALF:
            return static_cast<double>(float_of_half(*static_cast<const std::uint16_t*>(pointer)));
        case CUDNN_DATA_BFLOAT16:
            return static_cast<double>(
                float_of_bfloat(*static_cast<const std::uint16_t*>(pointer)));
        case CUDNN_DATA_INT8:
            return *static_cast<const std::int8_t*>(pointer);
        case CUDNN_DATA_UINT8:
        case CUDNN_DATA_BOOLEAN:
            return *static_cast<const std::uint8_t*>(pointer);
        case CUDNN_DATA_INT32:
            return *static_cast<const std::int32_t*>(pointer);
        case CUDNN_DATA_INT64:
            return static_cast<double>(*static_cast<const std::int64_t*>(pointer));
        default:
            return static_cast<double>(*static_cast<const float*>(pointer));
    }
}

cudnnStatus_t run_op(const cudnnContext& handle, const TensorOpParams& params) {
    ensure_context(handle);
    return status_of(launch(Kernel::tensor_op, params, handle.stream, params.c_desc.elements()));
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor, cudnnOpTensorOp_t op,
                                         cudnnDataType_t compute,
                                         cudnnNanPropagation_t nan_option) {
    if (descriptor == nullptr || op < CUDNN_OP_TENSOR_ADD || op > CUDNN_OP_TENSOR_NOT ||
        !is_data_type(compute) || !is_nan_option(nan_option)) {
        return bad_param("no descriptor, or no such operation, type or option");
    }
    *descriptor = {op, compute, nan_option};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t descriptor,
                                         cudnnOpTensorOp_t* op, cudnnDataType_t* compute,
                                         cudnnNanPropagation_t* nan_option) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    put(op, descriptor->op);
    put(compute, descriptor->compute);
    put(nan_option, descriptor->nan_option);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t op,
                            const void* alpha1, const cudnnTensorDescriptor_t a_desc, const void* a,
                            const void* alpha2, const cudnnTensorDescriptor_t b_desc, const void* b,
                            const void* beta, const cudnnTensorDescriptor_t c_desc, void* c) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {op, alpha1, a, beta, c}))
    SIMGPU_CUDNN_TRY(check_alike({a_desc, c_desc}))
    const bool unary = op->op == CUDNN_OP_TENSOR_SQRT || op->op == CUDNN_OP_TENSOR_NOT;
    if (!unary && (alpha2 == nullptr || b_desc == nullptr || b == nullptr ||
                   b_desc->tensor.type != c_desc->tensor.type ||
                   !can_repeat(b_desc->tensor, c_desc->tensor))) {
        return bad_param("the second operand is missing or does not fit");
    }
    const cudnnDataType_t type = c_desc->tensor.data_type();
    TensorOpParams params{};
    params.a = address_of(a);
    params.c = address_of(c);
    params.alpha1 = scalar_at(alpha1, type);
    params.beta = scalar_at(beta, type);
    params.a_desc = a_desc->tensor;
    params.c_desc = c_desc->tensor;
    params.op = op->op;
    if (!unary) {
        params.b = address_of(b);
        params.alpha2 = scalar_at(alpha2, type);
        params.b_desc = b_desc->tensor;
    }
    return run_op(*handle, params);
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             const cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             const cudnnTensorDescriptor_t c_desc, void* c) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {alpha, a_desc, a, beta, c_desc, c}))
    if (!can_repeat(a_desc->tensor, c_desc->tensor) || a_desc->tensor.type != c_desc->tensor.type) {
        return bad_param("the shapes or types do not fit");
    }
    if (!is_floating(c_desc->tensor.data_type())) {
        return not_supported("this data type");
    }
    TensorOpParams params{};
    params.a = address_of(a);
    params.c = address_of(c);
    params.alpha1 = scalar_at(alpha, c_desc->tensor.data_type());
    params.beta = scalar_at(beta, c_desc->tensor.data_type());
    params.a_desc = a_desc->tensor;
    params.c_desc = c_desc->tensor;
    return run_op(*handle, params);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   const cudnnTensorDescriptor_t x_desc, const void* x,
                                   const void* beta, const cudnnTensorDescriptor_t y_desc,
                                   void* y) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {alpha, x, beta, y}))
    SIMGPU_CUDNN_TRY(check_alike({x_desc, y_desc}))
    return cudnnAddTensor(handle, alpha, x_desc, x, beta, y_desc, y);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                               const void* alpha) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {y_desc, y, alpha}))
    if (!is_floating(y_desc->tensor.data_type())) {
        return not_supported("this data type");
    }
    TensorFillParams params{};
    params.y = address_of(y);
    params.alpha = scalar_at(alpha, y_desc->tensor.data_type());
    params.y_desc = y_desc->tensor;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::tensor_scale, params, handle->stream, params.y_desc.elements()));
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                             const void* value) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {y_desc, y, value}))
    TensorFillParams params{};
    params.y = address_of(y);
    params.alpha = value_at(value, y_desc->tensor.data_type());
    params.y_desc = y_desc->tensor;
    ensure_context(*handle);
    return status_of(launch(Kernel::tensor_set, params, handle->stream, params.y_desc.elements()));
}

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor,
                                             cudnnReduceTensorOp_t op, cudnnDataType_t compute,
                                             cudnnNanPropagation_t nan_option,
                                             cudnnReduceTensorIndices_t indices,
                                             cudnnIndicesType_t index_type) {
    if (descriptor == nullptr || op < CUDNN_REDUCE_TENSOR_ADD ||
        op > CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS || !is_data_type(compute) ||
        !is_nan_option(nan_option) ||
        (indices != CUDNN_REDUCE_TENSOR_NO_INDICES &&
         indices != CUDNN_REDUCE_TENSOR_FLATTENED_INDICES)) {
        return bad_param("no descriptor, or no such operation, type or option");
    }
    // As documented: only these are supported.
    if (index_type != CUDNN_32BIT_INDICES) {
        return not_supported("indices of this size");
    }
    *descriptor = {op, compute, nan_option, indices, index_type};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t descriptor,
                                             cudnnReduceTensorOp_t* op, cudnnDataType_t* compute,
                                             cudnnNanPropagation_t* nan_option,
                                             cudnnReduceTensorIndices_t* indices,
                                             cudnnIndicesType_t* index_type) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    put(op, descriptor->op);
    put(compute, descriptor->compute);
    put(nan_option, descriptor->nan_option);
    put(indices, descriptor->indices);
    put(index_type, descriptor->index_type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           const cudnnReduceTensorDescriptor_t reduction,
                                           const cudnnTensorDescriptor_t a,
                                           const cudnnTensorDescriptor_t c, std::size_t* bytes) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {bytes}))
    SIMGPU_CUDNN_TRY(check_reduction(reduction, a, c))
    *bytes = indices_size(*reduction, c->tensor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnReduceTensorDescriptor_t reduction,
                                             const cudnnTensorDescriptor_t a,
                                             const cudnnTensorDescriptor_t c, std::size_t* bytes) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {bytes}))
    SIMGPU_CUDNN_TRY(check_reduction(reduction, a, c))
    *bytes = workspace_size(a->tensor, c->tensor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduction,
                                void* indices, std::size_t indices_bytes, void* workspace,
                                std::size_t workspace_bytes, const void* alpha,
                                const cudnnTensorDescriptor_t a_desc, const void* a,
                                const void* beta, const cudnnTensorDescriptor_t c_desc, void* c) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {alpha, a, beta, c}))
    SIMGPU_CUDNN_TRY(check_reduction(reduction, a_desc, c_desc))
    const std::size_t index_bytes = indices_size(*reduction, c_desc->tensor);
    const std::size_t scratch_bytes = workspace_size(a_desc->tensor, c_desc->tensor);
    if ((index_bytes != 0 && (indices == nullptr || indices_bytes < index_bytes)) ||
        (scratch_bytes != 0 && (workspace == nullptr || workspace_bytes < scratch_bytes))) {
        return refuse(CUDNN_STATUS_INVALID_VALUE, "the indices or the workspace are too small");
    }
    ReductionParams params{};
    params.a = address_of(a);
    params.c = address_of(c);
    params.indices = index_bytes == 0 ? 0 : address_of(indices);
    params.workspace = scratch_bytes == 0 ? 0 : address_of(workspace);
    params.workspace_bytes = scratch_bytes;
    params.alpha = scalar_at(alpha, a_desc->tensor.data_type());
    params.beta = scalar_at(beta, a_desc->tensor.data_type());
    params.a_desc = a_desc->tensor;
    params.c_desc = c_desc->tensor;
    params.op = reduction->op;
    params.propagate_nan = reduction->nan_option;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::tensor_reduce, params, handle->stream, params.a_desc.elements()));
}

}  // extern "C"
