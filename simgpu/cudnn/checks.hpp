// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What calls check before they launch.
#pragma once

#include <initializer_list>

#include "simgpu/cudnn/descriptors.hpp"

/// Returns a failed status from the function around it.
#define SIMGPU_CUDNN_TRY(expression)                                             \
    if (const cudnnStatus_t tried = expression; tried != CUDNN_STATUS_SUCCESS) { \
        return tried;                                                            \
    }

namespace libswap::simgpu::cudnn {

/// All there, of the same dimensions and of one type that can be computed with.
cudnnStatus_t check_alike(std::initializer_list<cudnnTensorDescriptor_t> descriptors);

/// A handle, and no operand missing.
cudnnStatus_t check_operands(cudnnHandle_t handle, std::initializer_list<const void*> operands);

}  // namespace libswap::simgpu::cudnn
