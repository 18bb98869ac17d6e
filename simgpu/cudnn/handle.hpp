// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include "simgpu/cudnn/api.hpp"

/// What a cudnnHandle_t points to. As with the vendor's, one thread uses it at a time.
struct cudnnContext {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
};

namespace libswap::simgpu::cudnn {

/// Makes the handle's context current where the thread has none.
void ensure_context(const cudnnContext& handle);

/// What a driver call's answer is in cuDNN's terms.
cudnnStatus_t status_of(CUresult result);

/// Remembers `why` for the thread's cudnnGetLastErrorString, and returns `status`.
/// `why` must live for ever.
cudnnStatus_t refuse(cudnnStatus_t status, const char* why);

inline cudnnStatus_t bad_param(const char* why) { return refuse(CUDNN_STATUS_BAD_PARAM, why); }
inline cudnnStatus_t not_supported(const char* why) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, why);
}

}  // namespace libswap::simgpu::cudnn
