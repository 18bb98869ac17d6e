// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <tl/expected.hpp>

#include "simgpu/device/operation.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

/// What a side of a copy must be.
enum class Side { Any, Host, Device };

/// How a copy is submitted.
enum class Wait { Never, UntilDone };

/// Checks what the driver checks before it submits: device sides must be known memory, and in
/// bounds where they were allocated whole. Unmapped or ungranted VMM memory is the device's to
/// find.
CUresult submit_copy(const CopyRequest& request, Side dst, Side src, CUstream stream,
                     DefaultStream default_stream, Wait wait);

/// Rectangles as the driver's structures describe them; arrays are not built.
Result<CopyRequest> request_of(const CUDA_MEMCPY2D& copy);
Result<CopyRequest> request_of(const CUDA_MEMCPY3D& copy);
Result<CopyRequest> request_of(const CUDA_MEMCPY3D_PEER& copy);
Result<CopyRequest> request_of(const CUDA_MEMCPY3D_BATCH_OP& copy);

CUresult submit_memset(const MemsetRequest& request, CUstream stream, DefaultStream default_stream,
                       Wait wait);

}  // namespace simgpu::driver
