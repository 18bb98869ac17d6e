// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>

#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/operand_params.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/problem.hpp"

/// spatial 0: not set yet.
struct cudnnPoolingStruct {
    libswap::simgpu::cudnn::PoolingShape shape{};
};

namespace libswap::simgpu::cudnn {
namespace {

/// The output's dimensions; false where they do not fit. `dims` gets x.rank numbers.
bool pooling_output(const PoolingShape& shape, const Tensor& x, int* dims) {
    if (shape.spatial == 0 || x.rank != shape.spatial + 2) {
        return false;
    }
    dims[0] = x.dims[0];
    dims[1] = x.dims[1];
    for (int i = 0; i < shape.spatial; ++i) {
        const std::int64_t room =
            std::int64_t{x.dims[i + 2]} + 2 * std::int64_t{shape.pad[i]} - shape.window[i];
        if (room < 0) {
            return false;
        }
        dims[i + 2] = static_cast<int>(room / shape.stride[i]) + 1;
    }
    return true;
}

/// Outputs may be smaller or larger than the formula gives, as programs that round up make them;
/// each window must touch the padded image.
bool fits(const PoolingShape& shape, const Tensor& x, const Tensor& y) {
    int dims[Tensor::kMaxRank];
    if (!pooling_output(shape, x, dims) || y.rank != x.rank || y.dims[0] != dims[0] ||
        y.dims[1] != dims[1]) {
        return false;
    }
    for (int i = 0; i < shape.spatial; ++i) {
        if (std::int64_t{y.dims[i + 2] - 1} * shape.stride[i] - shape.pad[i] >= x.dims[i + 2]) {
            return false;
        }
    }
    return true;
}

bool is_positive(const int* values, int count, int least) {
    return values != nullptr &&
           std::all_of(values, values + count, [least](int value) { return value >= least; });
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan_option, int spatial,
                                          const int window[], const int pad[], const int stride[]) {
    if (descriptor == nullptr || mode < CUDNN_POOLING_MAX ||
        mode > CUDNN_POOLING_MAX_DETERMINISTIC ||
        (nan_option != CUDNN_NOT_PROPAGATE_NAN && nan_option != CUDNN_PROPAGATE_NAN)) {
        return bad_param("no descriptor, or no such mode");
    }
    if (spatial < 1 || spatial > PoolingShape::kMaxSpatial) {
        return not_supported("this number of dimensions");
    }
    if (!is_positive(window, spatial, 1) || !is_positive(pad, spatial, 0) ||
        !is_positive(stride, spatial, 1)) {
        return bad_param("a window or stride is not positive, or a padding negative");
    }
    PoolingShape& shape = descriptor->shape;
    shape = {};
    shape.mode = mode;
    shape.propagate_nan = nan_option;
    shape.spatial = spatial;
    std::copy_n(window, spatial, shape.window);
    std::copy_n(pad, spatial, shape.pad);
    std::copy_n(stride, spatial, shape.stride);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t nan_option,
                                          int window_height, int window_width, int vertical_pad,
                                          int horizontal_pad, int vertical_stride,
                                          int horizontal_stride) {
    const int window[] = {window_height, window_width};
    const int pad[] = {vertical_pad, horizontal_pad};
    const int stride[] = {vertical_stride, horizontal_stride};
    return cudnnSetPoolingNdDescriptor(descriptor, mode, nan_option, 2, window, pad, stride);
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t descriptor, int requested,
                                          cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* nan_option, int* spatial,
                                          int window[], int pad[], int stride[]) {
    if (descriptor == nullptr || requested < 0) {
        return bad_param("no descriptor, or a negative number of dimensions");
    }
    const PoolingShape& shape = descriptor->shape;
    put(mode, shape.mode);
    put(nan_option, shape.propagate_nan);
    put(spatial, shape.spatial);
    for (int i = 0; i < std::min<int>(requested, shape.spatial); ++i) {
        put(window == nullptr ? nullptr : window + i, shape.window[i]);
        put(pad == nullptr ? nullptr : pad + i, shape.pad[i]);
        put(stride == nullptr ? nullptr : stride + i, shape.stride[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* nan_option, int* window_height,
                                          int* window_width, int* vertical_pad, int* horizontal_pad,
                                          int* vertical_stride, int* horizontal_stride) {
    if (descriptor == nullptr || descriptor->shape.spatial != 2) {
        return bad_param("no descriptor of two dimensions");
    }
    const PoolingShape& shape = descriptor->shape;
    put(mode, shape.mode);
    put(nan_option, shape.propagate_nan);
    put(window_height, shape.window[0]);
    put(window_width, shape.window[1]);
    put(vertical_pad, shape.pad[0]);
    put(horizontal_pad, shape.pad[1]);
    put(vertical_stride, shape.stride[0]);
    put(horizontal_stride, shape.stride[1]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t descriptor,
                                                const cudnnTensorDescriptor_t input, int rank,
                                                int dims[]) {
    int all[Tensor::kMaxRank];
    if (descriptor == nullptr || input == nullptr || dims == nullptr ||
        !pooling_output(descriptor->shape, input->tensor, all) || rank != input->tensor.rank) {
        return bad_param("a descriptor is missing, or the shapes do not fit");
    }
    std::copy_n(all, rank, dims);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t descriptor,
                                                const cudnnTensorDescriptor_t input, int* n, int* c,
                                                int* h, int* w) {
    int dims[Tensor::kMaxRank];
    SIMGPU_CUDNN_TRY(cudnnGetPoolingNdForwardOutputDim(descriptor, input, 4, dims))
    put(n, dims[0]);
    put(c, dims[1]);
    put(h, dims[2]);
    put(w, dims[3]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t y_desc, void* y) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {pooling, alpha, x_desc, x, beta, y_desc, y}))
    if (x_desc->tensor.type != y_desc->tensor.type ||
        !fits(pooling->shape, x_desc->tensor, y_desc->tensor)) {
        return bad_param("the shapes or types do not fit");
    }
    if (!is_floating(x_desc->tensor.data_type())) {
        return not_supported("this data type");
    }
    auto params = forward_params<PoolingParams>(alpha, {x_desc, x}, beta, {y_desc, y});
    params.shape = pooling->shape;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::pooling_forward, params, handle->stream, params.y_desc.elements()));
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                   const void* y, const cudnnTensorDescriptor_t dy_desc,
                                   const void* dy, const cudnnTensorDescriptor_t x_desc,
                                   const void* x, const void* beta,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {pooling, alpha, y, dy, x, beta, dx}))
    SIMGPU_CUDNN_TRY(check_alike({y_desc, dy_desc}))
    SIMGPU_CUDNN_TRY(check_alike({x_desc, dx_desc}))
    if (x_desc->tensor.type != y_desc->tensor.type ||
        !fits(pooling->shape, x_desc->tensor, y_desc->tensor)) {
        return bad_param("the shapes or types do not fit");
    }
    auto params = backward_params<PoolingGradientParams>(alpha, {y_desc, y}, {dy_desc, dy},
                                                         {x_desc, x}, beta, {dx_desc, dx});
    params.shape = pooling->shape;
    ensure_context(*handle);
    return status_of(
        launch(Kernel::pooling_backward, params, handle->stream, params.x_desc.elements()));
}

}  // extern "C"
