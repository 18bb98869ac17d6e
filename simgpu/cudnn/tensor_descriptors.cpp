// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Descriptors of tensors and filters.

#include <algorithm>
#include <climits>

#include "simgpu/cudnn/descriptors.hpp"

namespace libswap::simgpu::cudnn {
namespace {

constexpr int kLeastRank = 3;
constexpr int kMostRank = CUDNN_DIM_MAX;

bool is_format(cudnnTensorFormat_t format) {
    return format >= CUDNN_TENSOR_NCHW && format <= CUDNN_TENSOR_NCHW_VECT_C;
}

cudnnStatus_t set_tensor(Tensor& out, const Tensor& tensor) {
    for (int i = 0; i < tensor.rank; ++i) {
        if (tensor.dims[i] <= 0) {
            return bad_param("a dimension is not positive");
        }
        if (tensor.strides[i] < 0) {
            return bad_param("a stride is negative");
        }
    }
    // As documented: no more than 2 giga-elements.
    std::int64_t elements = 1;
    for (int i = 0; i < tensor.rank; ++i) {
        elements *= tensor.dims[i];
        if (elements > INT_MAX) {
            return not_supported("more than 2 giga-elements");
        }
    }
    if (tensor.extent() > INT_MAX) {
        return not_supported("more than 2 giga-elements");
    }
    out = tensor;
    return CUDNN_STATUS_SUCCESS;
}

/// The checks that all setters have in common.
cudnnStatus_t check(const void* descriptor, cudnnDataType_t type, int rank) {
    if (descriptor == nullptr) {
        return bad_param("no descriptor");
    }
    if (!is_data_type(type)) {
        return bad_param("no such data type");
    }
    if (bytes_of(type) == 0) {
        return not_supported("this data type");
    }
    if (rank < kLeastRank || rank > kMostRank) {
        return not_supported("this number of dimensions");
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_by_format(Tensor& out, cudnnTensorFormat_t format, cudnnDataType_t type, int rank,
                            const int* dims) {
    if (!is_format(format)) {
        return bad_param("no such format");
    }
    if (format == CUDNN_TENSOR_NCHW_VECT_C) {
        return not_supported("vectors of channels");
    }
    return set_tensor(out, format == CUDNN_TENSOR_NHWC ? channels_last_tensor(type, rank, dims)
                                                       : dense_tensor(type, rank, dims));
}

cudnnStatus_t bytes_of_tensor(const Tensor& tensor, std::size_t* bytes) {
    if (bytes == nullptr) {
        return bad_param("no place for the size");
    }
    *bytes = static_cast<std::size_t>(tensor.bytes());
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
    const int dims[] = {n, c, h, w};
    return cudnnSetTensorNdDescriptorEx(descriptor, format, type, 4, dims);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
    const int dims[] = {n, c, h, w};
    const int strides[] = {n_stride, c_stride, h_stride, w_stride};
    return cudnnSetTensorNdDescriptor(descriptor, type, 4, dims, strides);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                         int rank, const int dims[], const int strides[]) {
    if (const cudnnStatus_t status = check(descriptor, type, rank);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (dims == nullptr || strides == nullptr) {
        return bad_param("no dimensions, or no strides");
    }
    Tensor tensor = dense_tensor(type, rank, dims);
    std::copy_n(strides, rank, tensor.strides);
    return set_tensor(descriptor->tensor, tensor);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t descriptor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int dims[]) {
    if (const cudnnStatus_t status = check(descriptor, type, rank);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (dims == nullptr) {
        return bad_param("no dimensions");
    }
    return set_by_format(descriptor->tensor, format, type, rank, dims);
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t descriptor,
                                         cudnnDataType_t* type, int* n, int* c, int* h, int* w,
                                         int* n_stride, int* c_stride, int* h_stride,
                                         int* w_stride) {
    if (descriptor == nullptr || descriptor->tensor.rank != 4) {
        return bad_param("no descriptor of four dimensions");
    }
    const Tensor& tensor = descriptor->tensor;
    put(type, tensor.type);
    int* const dims[] = {n, c, h, w};
    int* const strides[] = {n_stride, c_stride, h_stride, w_stride};
    for (int i = 0; i < 4; ++i) {
        put(dims[i], tensor.dims[i]);
        put(strides[i], tensor.strides[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, int* rank, int dims[],
                                         int strides[]) {
    if (descriptor == nullptr || requested < 0) {
        return bad_param("no descriptor, or a negative number of dimensions");
    }
    const Tensor& tensor = descriptor->tensor;
    put(type, tensor.type);
    put(rank, tensor.rank);
    for (int i = 0; i < std::min(requested, tensor.rank); ++i) {
        if (dims != nullptr) {
            dims[i] = tensor.dims[i];
        }
        if (strides != nullptr) {
            strides[i] = static_cast<int>(tensor.strides[i]);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t descriptor,
                                        std::size_t* bytes) {
    return descriptor == nullptr ? bad_param("no descriptor")
                                 : bytes_of_tensor(descriptor->tensor, bytes);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    const int dims[] = {k, c, h, w};
    return cudnnSetFilterNdDescriptor(descriptor, type, format, 4, dims);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int dims[]) {
    if (const cudnnStatus_t status = check(descriptor, type, rank);
        status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (dims == nullptr) {
        return bad_param("no dimensions");
    }
    const cudnnStatus_t status = set_by_format(descriptor->tensor, format, type, rank, dims);
    if (status == CUDNN_STATUS_SUCCESS) {
        descriptor->format = format;
    }
    return status;
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t descriptor,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format, int* k,
                                         int* c, int* h, int* w) {
    if (descriptor == nullptr || descriptor->tensor.rank != 4) {
        return bad_param("no descriptor of four dimensions");
    }
    put(type, descriptor->tensor.type);
    put(format, descriptor->format);
    int* const dims[] = {k, c, h, w};
    for (int i = 0; i < 4; ++i) {
        put(dims[i], descriptor->tensor.dims[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format,
                                         int* rank, int dims[]) {
    if (descriptor == nullptr || requested < 0) {
        return bad_param("no descriptor, or a negative number of dimensions");
    }
    put(type, descriptor->tensor.type);
    put(format, descriptor->format);
    put(rank, descriptor->tensor.rank);
    if (dims != nullptr) {
        std::copy_n(descriptor->tensor.dims, std::min(requested, descriptor->tensor.rank), dims);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t descriptor,
                                        std::size_t* bytes) {
    return descriptor == nullptr ? bad_param("no descriptor")
                                 : bytes_of_tensor(descriptor->tensor, bytes);
}

}  // extern "C"
