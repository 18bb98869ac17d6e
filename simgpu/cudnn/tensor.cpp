// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/tensor.hpp"

#include <algorithm>

namespace libswap::simgpu::cudnn {

std::int64_t Tensor::elements() const {
    std::int64_t count = rank > 0 ? 1 : 0;
    for (int i = 0; i < rank; ++i) {
        count *= dims[i];
    }
    return count;
}

std::int64_t Tensor::extent() const {
    if (elements() == 0) {
        return 0;
    }
    std::int64_t last = 0;
    for (int i = 0; i < rank; ++i) {
        last += (dims[i] - 1) * strides[i];
    }
    return last + 1;
}

std::int64_t Tensor::bytes() const {
    return extent() * static_cast<std::int64_t>(bytes_of(data_type()));
}

bool Tensor::is_dense() const {
    std::int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
        if (dims[i] != 1 && strides[i] != stride) {
            return false;
        }
        stride *= dims[i];
    }
    return true;
}

std::size_t bytes_of(cudnnDataType_t type) {
    switch (type) {
        case CUDNN_DATA_DOUBLE:
        case CUDNN_DATA_INT64:
            return 8;
        case CUDNN_DATA_FLOAT:
        case CUDNN_DATA_INT32:
            return 4;
        case CUDNN_DATA_HALF:
        case CUDNN_DATA_BFLOAT16:
            return 2;
        case CUDNN_DATA_INT8:
        case CUDNN_DATA_UINT8:
        case CUDNN_DATA_BOOLEAN:
            return 1;
        default:
            return 0;
    }
}

bool is_data_type(cudnnDataType_t type) {
    return type >= CUDNN_DATA_FLOAT && type <= CUDNN_DATA_COMPLEX_FP64;
}

bool is_floating(cudnnDataType_t type) {
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

Tensor dense_tensor(cudnnDataType_t type, int rank, const int* dims) {
    Tensor tensor{};
    tensor.type = type;
    tensor.rank = rank;
    std::copy_n(dims, rank, tensor.dims);
    std::int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
        tensor.strides[i] = stride;
        stride *= dims[i];
    }
    return tensor;
}

Tensor channels_last_tensor(cudnnDataType_t type, int rank, const int* dims) {
    Tensor tensor = dense_tensor(type, rank, dims);
    if (rank < 2) {
        return tensor;
    }
    std::int64_t stride = 1;
    tensor.strides[1] = stride;
    stride *= dims[1];
    for (int i = rank - 1; i >= 2; --i) {
        tensor.strides[i] = stride;
        stride *= dims[i];
    }
    tensor.strides[0] = stride;
    return tensor;
}

bool same_dims(const Tensor& a, const Tensor& b) {
    return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

}  // namespace libswap::simgpu::cudnn
