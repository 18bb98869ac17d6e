// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the descriptor handles of the legacy API point to. A thread uses one at a time, or all only
// read it.
#pragma once

#include <new>

#include "simgpu/cudnn/activation.hpp"
#include "simgpu/cudnn/api.hpp"
#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/handle.hpp"
#include "simgpu/cudnn/tensor.hpp"

/// rank 0: not set yet.
struct cudnnTensorStruct {
    libswap::simgpu::cudnn::Tensor tensor{};
};

struct cudnnFilterStruct {
    libswap::simgpu::cudnn::Tensor tensor{};
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};

struct cudnnConvolutionStruct {
    /// spatial 0: not set yet. What is set by setters of its own outlives a new shape.
    libswap::simgpu::cudnn::ConvolutionShape shape{};
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnReorderType_t reorder = CUDNN_DEFAULT_REORDER;
};

struct cudnnActivationStruct {
    libswap::simgpu::cudnn::Activation activation{};
};

namespace libswap::simgpu::cudnn {

template <typename Struct>
cudnnStatus_t create_descriptor(Struct** descriptor) {
    if (descriptor == nullptr) {
        return bad_param("no place for the descriptor");
    }
    *descriptor = new (std::nothrow) Struct;
    return *descriptor == nullptr ? refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                                           "the host is out of memory")
                                  : CUDNN_STATUS_SUCCESS;
}

template <typename Struct>
cudnnStatus_t destroy_descriptor(Struct* descriptor) {
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

/// Sets *place where there is one.
template <typename T, typename Value>
void put(T* place, const Value& value) {
    if (place != nullptr) {
        *place = static_cast<T>(value);
    }
}

}  // namespace libswap::simgpu::cudnn
