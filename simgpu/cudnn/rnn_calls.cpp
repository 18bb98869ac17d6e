// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Recurrent networks by the calls of version 8: descriptors, sizes, and the three directions.

#include <algorithm>
#include <functional>
#include <vector>

#include "simgpu/cublas/driver.hpp"
#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/dropout.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/problem.hpp"
#include "simgpu/cudnn/rnn.hpp"

using libswap::simgpu::cudnn::RnnShape;
using libswap::simgpu::cudnn::SequenceLayout;

/// layers 0: not set yet.
struct cudnnRNNStruct {
    RnnShape shape{};
    cudnnRNNAlgo_t algorithm = CUDNN_RNN_ALGO_STANDARD;
    cudnnRNNInputMode_t input_mode = CUDNN_LINEAR_INPUT;
    cudnnDataType_t math_precision = CUDNN_DATA_FLOAT;
    cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;
    std::int32_t projection = 0;
    cudnnDropoutDescriptor_t dropout = nullptr;
    std::uint32_t flags = 0;
};

/// steps 0: not set yet.
struct cudnnRNNDataStruct {
    SequenceLayout layout{};
    std::vector<std::int32_t> lengths;
    double padding = 0;
};

namespace libswap::simgpu::cudnn {
namespace {

/// What the reserve space and the work are computed in.
std::size_t bytes_of_scalar(const RnnShape& shape) {
    return shape.type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
}

bool all_full(const cudnnRNNDataStruct& data) {
    return std::all_of(data.lengths.begin(), data.lengths.end(),
                       [&](std::int32_t length) { return length == data.layout.steps; });
}

/// Room for the lengths of the sequences, and for the gates of a step.
std::size_t workspace_size(const RnnShape& shape, const SequenceLayout& x) {
    return static_cast<std::size_t>(x.batch) *
           (sizeof(std::int32_t) + static_cast<std::size_t>(shape.rows()) * bytes_of_scalar(shape));
}

std::size_t reserve_size(const RnnShape& shape, const SequenceLayout& x) {
    return static_cast<std::size_t>(shape.row_elements() * shape.pseudo_layers() * x.steps *
                                    x.batch) *
           bytes_of_scalar(shape);
}

std::size_t weights_size(const RnnShape& shape) {
    return static_cast<std::size_t>(shape.weights_before(shape.pseudo_layers())) *
           bytes_of(static_cast<cudnnDataType_t>(shape.type));
}

cudnnStatus_t check_data(cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x,
                         cudnnRNNDataDescriptor_t y) {
    if (rnn == nullptr || x == nullptr || y == nullptr || rnn->shape.layers == 0 ||
        x->layout.steps == 0 || y->layout.steps == 0) {
        return bad_param("a descriptor is missing, or not set");
    }
    const bool alike = x->layout.steps == y->layout.steps && x->layout.batch == y->layout.batch &&
                       x->lengths == y->lengths && x->layout.type == rnn->shape.type &&
                       y->layout.type == rnn->shape.type;
    const bool fits = x->layout.width == rnn->shape.inputs &&
                      y->layout.width == rnn->shape.hidden * rnn->shape.directions;
    return alike && fits ? CUDNN_STATUS_SUCCESS : bad_param("the sequences do not fit the network");
}

/// What the three directions have in common.
cudnnStatus_t prepare(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x,
                      cudnnRNNDataDescriptor_t y, const std::int32_t* device_lengths,
                      std::size_t weight_bytes, std::size_t workspace_bytes, void* workspace,
                      std::size_t reserve_bytes, void* reserve, bool training, RnnParams& params) {
    if (handle == nullptr) {
        return bad_param("no handle");
    }
    SIMGPU_CUDNN_TRY(check_data(rnn, x, y))
    if (weight_bytes < weights_size(rnn->shape)) {
        return bad_param("the weight space is too small");
    }
    const std::size_t needed = workspace_size(rnn->shape, x->layout);
    if (workspace == nullptr || workspace_bytes < needed) {
        return bad_param("the workspace is too small");
    }
    if (training && (reserve == nullptr || reserve_bytes < reserve_size(rnn->shape, x->layout))) {
        return bad_param("the reserve space is too small");
    }
    params.shape = rnn->shape;
    params.x_layout = x->layout;
    params.y_layout = y->layout;
    params.padding = y->padding;
    params.training = training ? 1 : 0;
    params.reserve = training ? address_of(reserve) : 0;
    const std::size_t lengths_bytes = x->lengths.size() * sizeof(std::int32_t);
    params.workspace = address_of(workspace) + lengths_bytes;
    params.workspace_bytes = needed - lengths_bytes;
    if (rnn->dropout != nullptr) {
        params.dropout = static_cast<double>(rnn->dropout->rate);
        params.states = address_of(rnn->dropout->states);
    }
    ensure_context(*handle);
    if (all_full(*x)) {
        return CUDNN_STATUS_SUCCESS;
    }
    params.lengths = address_of(device_lengths);
    if (device_lengths == nullptr) {
        // The descriptor has them on the host; kernels get them through the workspace.
        params.lengths = address_of(workspace);
        return status_of(cublas::driver()->cuMemcpyHtoDAsync_fn(params.lengths, x->lengths.data(),
                                                                lengths_bytes, handle->stream));
    }
    return CUDNN_STATUS_SUCCESS;
}

std::int64_t threads_of(const RnnParams& params) {
    return std::int64_t{params.x_layout.batch} * params.shape.rows();
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias_mode,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
                                       cudnnDataType_t math_precision, cudnnMathType_t math_type,
                                       std::int32_t inputs, std::int32_t hidden,
                                       std::int32_t projection, std::int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, std::uint32_t flags) {
    if (rnn == nullptr || algorithm < CUDNN_RNN_ALGO_STANDARD ||
        algorithm >= CUDNN_RNN_ALGO_COUNT || cell < CUDNN_RNN_RELU || cell > CUDNN_GRU ||
        bias_mode < CUDNN_RNN_NO_BIAS || bias_mode > CUDNN_RNN_SINGLE_REC_BIAS ||
        direction < CUDNN_UNIDIRECTIONAL || direction > CUDNN_BIDIRECTIONAL) {
        return bad_param("no descriptor, or no such mode");
    }
    if (inputs < 1 || hidden < 1 || layers < 1 || projection < 0) {
        return bad_param("a size is not positive");
    }
    if (!is_floating(type) || input_mode != CUDNN_LINEAR_INPUT ||
        (projection != 0 && projection != hidden)) {
        return not_supported("this data type, a fixed input, or a projection");
    }
    rnn->shape = {cell, bias_mode, direction == CUDNN_BIDIRECTIONAL ? 2 : 1, layers, inputs, hidden,
                  type, 0};
    rnn->algorithm = algorithm;
    rnn->input_mode = input_mode;
    rnn->math_precision = math_precision;
    rnn->math_type = math_type;
    rnn->projection = projection;
    rnn->dropout = dropout;
    rnn->flags = flags;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t* algorithm,
                                       cudnnRNNMode_t* cell, cudnnRNNBiasMode_t* bias_mode,
                                       cudnnDirectionMode_t* direction,
                                       cudnnRNNInputMode_t* input_mode, cudnnDataType_t* type,
                                       cudnnDataType_t* math_precision, cudnnMathType_t* math_type,
                                       std::int32_t* inputs, std::int32_t* hidden,
                                       std::int32_t* projection, std::int32_t* layers,
                                       cudnnDropoutDescriptor_t* dropout, std::uint32_t* flags) {
    if (rnn == nullptr) {
        return bad_param("no descriptor");
    }
    put(algorithm, rnn->algorithm);
    put(cell, rnn->shape.cell);
    put(bias_mode, rnn->shape.bias_mode);
    put(direction, rnn->shape.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL);
    put(input_mode, rnn->input_mode);
    put(type, rnn->shape.type);
    put(math_precision, rnn->math_precision);
    put(math_type, rnn->math_type);
    put(inputs, rnn->shape.inputs);
    put(hidden, rnn->shape.hidden);
    put(projection, rnn->projection);
    put(layers, rnn->shape.layers);
    put(dropout, rnn->dropout);
    put(flags, rnn->flags);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void* padding) {
    if (data == nullptr || layout < CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED ||
        layout > CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED || steps < 1 || batch < 1 ||
        width < 1 || lengths == nullptr) {
        return bad_param("no descriptor, layout or lengths, or a size is not positive");
    }
    if (!is_floating(type)) {
        return not_supported("this data type");
    }
    if (std::any_of(lengths, lengths + batch,
                    [=](int length) { return length < 0 || length > steps; })) {
        return bad_param("a sequence is longer than the longest");
    }
    if (layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED &&
        !std::is_sorted(lengths, lengths + batch, std::greater<>())) {
        return bad_param("packed sequences are not sorted");
    }
    data->layout = {layout, type, steps, batch, width, 0};
    data->lengths.assign(lengths, lengths + batch);
    data->padding = padding == nullptr ? 0 : scalar_at(padding, type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t* type,
                                        cudnnRNNDataLayout_t* layout, int* steps, int* batch,
                                        int* width, int requested, int lengths[], void*) {
    if (data == nullptr || requested < 0) {
        return bad_param("no descriptor, or a negative number of lengths");
    }
    put(type, data->layout.type);
    put(layout, data->layout.layout);
    put(steps, data->layout.steps);
    put(batch, data->layout.batch);
    put(width, data->layout.width);
    if (lengths != nullptr) {
        std::copy_n(
            data->lengths.begin(),
            std::min<std::size_t>(static_cast<std::size_t>(requested), data->lengths.size()),
            lengths);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch) {
    return handle == nullptr || rnn == nullptr || batch < 1
               ? bad_param("no handle or descriptor, or no batch")
               : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        std::size_t* workspace, std::size_t* reserve) {
    if (handle == nullptr || rnn == nullptr || x == nullptr || rnn->shape.layers == 0 ||
        x->layout.steps == 0) {
        return bad_param("a handle or descriptor is missing, or not set");
    }
    put(workspace, workspace_size(rnn->shape, x->layout));
    put(reserve, mode == CUDNN_FWD_MODE_TRAINING ? reserve_size(rnn->shape, x->layout) : 0);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         std::size_t* bytes) {
    if (handle == nullptr || rnn == nullptr || bytes == nullptr || rnn->shape.layers == 0) {
        return bad_param("a handle or descriptor is missing, or not set");
    }
    *bytes = weights_size(rnn->shape);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      std::int32_t pseudo_layer, std::size_t weight_bytes,
                                      const void* weights, std::int32_t linear,
                                      cudnnTensorDescriptor_t matrix_desc, void** matrix,
                                      cudnnTensorDescriptor_t bias_desc, void** bias) {
    // PyTorch asks for one of the two at a time.
    if (handle == nullptr || rnn == nullptr || rnn->shape.layers == 0 ||
        (matrix == nullptr && bias == nullptr)) {
        return bad_param("a handle, descriptor or place for the answer is missing");
    }
    const RnnShape& shape = rnn->shape;
    const int gates = shape.gates();
    if (pseudo_layer < 0 || pseudo_layer >= shape.pseudo_layers() || linear < 0 ||
        linear >= 2 * gates || weight_bytes < weights_size(shape)) {
        return bad_param("no such layer or matrix, or the weight space is too small");
    }
    const bool recurrent = linear >= gates;
    const std::int64_t gate = linear % gates;
    const std::int64_t columns = recurrent ? shape.hidden : shape.inputs_of(pseudo_layer);
    const std::int64_t first = shape.weights_before(pseudo_layer);
    const bool has_bias = recurrent ? shape.has_recurrent_bias() : shape.has_input_bias();
    const auto type = static_cast<cudnnDataType_t>(shape.type);
    const auto address = [&](std::int64_t element) {
        return reinterpret_cast<void*>(address_of(weights) +
                                       static_cast<std::uint64_t>(element) * bytes_of(type));
    };
    put(matrix, address(first + (recurrent ? shape.recurrent_at(pseudo_layer) : 0) +
                        gate * shape.hidden * columns));
    put(bias, has_bias ? address(first +
                                 (recurrent ? shape.recurrent_bias_at(pseudo_layer)
                                            : shape.input_bias_at(pseudo_layer)) +
                                 gate * shape.hidden)
                       : nullptr);
    if (matrix_desc != nullptr) {
        const int dims[] = {1, shape.hidden, static_cast<int>(columns)};
        matrix_desc->tensor = dense_tensor(type, 3, dims);
    }
    if (bias_desc != nullptr) {
        const int dims[] = {1, shape.hidden, 1};
        bias_desc->tensor = has_bias ? dense_tensor(type, 3, dims) : Tensor{};
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const std::int32_t lengths[],
                              cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t,
                              const void* hx, void* hy, cudnnTensorDescriptor_t, const void* cx,
                              void* cy, std::size_t weight_bytes, const void* weights,
                              std::size_t workspace_bytes, void* workspace,
                              std::size_t reserve_bytes, void* reserve) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {x, y, weights}))
    RnnParams params{};
    SIMGPU_CUDNN_TRY(prepare(handle, rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes,
                             workspace, reserve_bytes, reserve, mode == CUDNN_FWD_MODE_TRAINING,
                             params))
    params.x = address_of(x);
    params.y = address_of(y);
    params.hx = address_of(hx);
    params.hy = address_of(hy);
    params.cx = address_of(cx);
    params.cy = address_of(cy);
    params.weights = address_of(weights);
    return status_of(launch(Kernel::rnn_forward, params, handle->stream, threads_of(params)));
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const std::int32_t lengths[], cudnnRNNDataDescriptor_t y_desc,
                                      const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_desc, void* dx,
                                      cudnnTensorDescriptor_t, const void* hx, const void* dhy,
                                      void* dhx, cudnnTensorDescriptor_t, const void* cx,
                                      const void* dcy, void* dcx, std::size_t weight_bytes,
                                      const void* weights, std::size_t workspace_bytes,
                                      void* workspace, std::size_t reserve_bytes, void* reserve) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {y, dy, dx, weights}))
    RnnParams params{};
    SIMGPU_CUDNN_TRY(prepare(handle, rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes,
                             workspace, reserve_bytes, reserve, true, params))
    params.x = address_of(dx);
    params.y = address_of(y);
    params.dy = address_of(dy);
    params.hx = address_of(hx);
    params.hy = address_of(dhy);
    params.dhx = address_of(dhx);
    params.cx = address_of(cx);
    params.cy = address_of(dcy);
    params.dcx = address_of(dcx);
    params.weights = address_of(weights);
    return status_of(launch(Kernel::rnn_backward_data, params, handle->stream, threads_of(params)));
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         cudnnWgradMode_t mode, const std::int32_t lengths[],
                                         cudnnRNNDataDescriptor_t x_desc, const void* x,
                                         cudnnTensorDescriptor_t, const void* hx,
                                         cudnnRNNDataDescriptor_t y_desc, const void* y,
                                         std::size_t weight_bytes, void* dweights,
                                         std::size_t workspace_bytes, void* workspace,
                                         std::size_t reserve_bytes, void* reserve) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {x, y, dweights}))
    RnnParams params{};
    SIMGPU_CUDNN_TRY(prepare(handle, rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes,
                             workspace, reserve_bytes, reserve, true, params))
    params.x = address_of(x);
    params.y = address_of(y);
    params.hx = address_of(hx);
    params.weights = address_of(dweights);
    params.adds = mode == CUDNN_WGRAD_MODE_ADD ? 1 : 0;
    return status_of(
        launch(Kernel::rnn_backward_weights, params, handle->stream, threads_of(params)));
}

}  // extern "C"
