// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/checks.hpp"

namespace libswap::simgpu::cudnn {

cudnnStatus_t check_alike(std::initializer_list<cudnnTensorDescriptor_t> descriptors) {
    const Tensor* first = nullptr;
    for (const cudnnTensorDescriptor_t descriptor : descriptors) {
        if (descriptor == nullptr || descriptor->tensor.rank == 0) {
            return bad_param("a descriptor is missing, or not set");
        }
        first = first == nullptr ? &descriptor->tensor : first;
        if (!same_dims(*first, descriptor->tensor) || first->type != descriptor->tensor.type) {
            return bad_param("the tensors' shapes or types differ");
        }
    }
    return is_floating(first->data_type()) ? CUDNN_STATUS_SUCCESS : not_supported("this data type");
}

cudnnStatus_t check_operands(cudnnHandle_t handle, std::initializer_list<const void*> operands) {
    if (handle == nullptr) {
        return bad_param("no handle");
    }
    for (const void* operand : operands) {
        if (operand == nullptr) {
            return bad_param("an operand is missing");
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace libswap::simgpu::cudnn
