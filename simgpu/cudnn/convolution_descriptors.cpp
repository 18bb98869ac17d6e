// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Descriptors of convolutions and of activations.

#include <algorithm>

#include "simgpu/cudnn/descriptors.hpp"

namespace libswap::simgpu::cudnn {
namespace {

constexpr int kMostSpatial = ConvolutionShape::kMaxSpatial;

/// Reads `spatial` numbers, each at least `least`.
bool read_numbers(const int* from, int spatial, int least, std::int32_t* to) {
    if (from == nullptr) {
        return false;
    }
    for (int i = 0; i < spatial; ++i) {
        if (from[i] < least) {
            return false;
        }
        to[i] = from[i];
    }
    return true;
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int spatial,
                                              const int pad[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    if (spatial < 0) {
        return bad_param("a negative number of dimensions");
    }
    if (spatial == 0 || spatial > kMostSpatial) {
        return not_supported("this number of dimensions");
    }
    if (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION) {
        return bad_param("no such mode");
    }
    if (!is_data_type(compute)) {
        return bad_param("no such data type");
    }
    ConvolutionShape shape = descriptor->shape;
    if (!read_numbers(pad, spatial, 0, shape.pad_before) ||
        !read_numbers(stride, spatial, 1, shape.stride) ||
        !read_numbers(dilation, spatial, 1, shape.dilation)) {
        return bad_param("a padding is negative, or a stride or dilation is not positive");
    }
    std::copy_n(shape.pad_before, spatial, shape.pad_after);
    shape.spatial = spatial;
    shape.flip = mode == CUDNN_CONVOLUTION ? 1 : 0;
    descriptor->shape = shape;
    descriptor->mode = mode;
    descriptor->compute = compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    const int pad[] = {pad_h, pad_w};
    const int stride[] = {u, v};
    const int dilation[] = {dilation_h, dilation_w};
    return cudnnSetConvolutionNdDescriptor(descriptor, 2, pad, stride, dilation, mode, compute);
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t descriptor,
                                              int requested, int* spatial, int pad[], int stride[],
                                              int dilation[], cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute) {
    if (descriptor == nullptr || requested < 0) {
        return bad_param("no descriptor, or a negative number of dimensions");
    }
    const ConvolutionShape& shape = descriptor->shape;
    const int count = std::min<int>(requested, shape.spatial);
    put(spatial, shape.spatial);
    put(mode, descriptor->mode);
    put(compute, descriptor->compute);
    for (int i = 0; i < count; ++i) {
        put(pad == nullptr ? nullptr : pad + i, shape.pad_before[i]);
        put(stride == nullptr ? nullptr : stride + i, shape.stride[i]);
        put(dilation == nullptr ? nullptr : dilation + i, shape.dilation[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t descriptor,
                                              int* pad_h, int* pad_w, int* u, int* v,
                                              int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute) {
    if (descriptor == nullptr || descriptor->shape.spatial != 2) {
        return bad_param("no descriptor of two dimensions");
    }
    const ConvolutionShape& shape = descriptor->shape;
    put(pad_h, shape.pad_before[0]);
    put(pad_w, shape.pad_before[1]);
    put(u, shape.stride[0]);
    put(v, shape.stride[1]);
    put(dilation_h, shape.dilation[0]);
    put(dilation_w, shape.dilation[1]);
    put(mode, descriptor->mode);
    put(compute, descriptor->compute);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math) {
    if (descriptor == nullptr || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) {
        return bad_param("no descriptor, or no such math type");
    }
    descriptor->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t* math) {
    if (descriptor == nullptr || math == nullptr) {
        return bad_param("no descriptor, or no place for the answer");
    }
    *math = descriptor->math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
    if (descriptor == nullptr || groups < 1) {
        return bad_param("no descriptor, or no groups");
    }
    descriptor->shape.groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int* groups) {
    if (descriptor == nullptr || groups == nullptr) {
        return bad_param("no descriptor, or no place for the answer");
    }
    *groups = descriptor->shape.groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t descriptor,
                                             cudnnReorderType_t reorder) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    descriptor->reorder = reorder;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t descriptor,
                                             cudnnReorderType_t* reorder) {
    if (descriptor == nullptr || reorder == nullptr) {
        return bad_param("no descriptor, or no place for the answer");
    }
    *reorder = descriptor->reorder;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t descriptor,
                                                    const cudnnTensorDescriptor_t input,
                                                    const cudnnFilterDescriptor_t filter, int rank,
                                                    int dims[]) {
    if (descriptor == nullptr || input == nullptr || filter == nullptr || dims == nullptr) {
        return bad_param("a descriptor or the place for the answer is missing");
    }
    int all[Tensor::kMaxRank];
    if (!convolution_output(descriptor->shape, input->tensor, filter->tensor, all) ||
        rank < input->tensor.rank) {
        return bad_param("the shapes do not fit");
    }
    std::copy_n(all, input->tensor.rank, dims);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t descriptor,
                                                    const cudnnTensorDescriptor_t input,
                                                    const cudnnFilterDescriptor_t filter, int* n,
                                                    int* c, int* h, int* w) {
    int dims[Tensor::kMaxRank];
    if (descriptor == nullptr || descriptor->shape.spatial != 2) {
        return bad_param("no descriptor of two dimensions");
    }
    const cudnnStatus_t status =
        cudnnGetConvolutionNdForwardOutputDim(descriptor, input, filter, Tensor::kMaxRank, dims);
    if (status == CUDNN_STATUS_SUCCESS) {
        put(n, dims[0]);
        put(c, dims[1]);
        put(h, dims[2]);
        put(w, dims[3]);
    }
    return status;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan_option, double coefficient) {
    if (descriptor == nullptr || mode < CUDNN_ACTIVATION_SIGMOID || mode > CUDNN_ACTIVATION_SWISH ||
        (nan_option != CUDNN_NOT_PROPAGATE_NAN && nan_option != CUDNN_PROPAGATE_NAN)) {
        return bad_param("no descriptor, or no such mode");
    }
    descriptor->activation.mode = mode;
    descriptor->activation.propagate_nan = nan_option;
    descriptor->activation.coefficient = coefficient;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t* mode,
                                           cudnnNanPropagation_t* nan_option, double* coefficient) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    put(mode, descriptor->activation.mode);
    put(nan_option, descriptor->activation.propagate_nan);
    put(coefficient, descriptor->activation.coefficient);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t descriptor,
                                                    double beta) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    descriptor->activation.swish_beta = beta;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t descriptor,
                                                    double* beta) {
    if (descriptor == nullptr || beta == nullptr) {
        return bad_param("no descriptor, or no place for the answer");
    }
    *beta = descriptor->activation.swish_beta;
    return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
