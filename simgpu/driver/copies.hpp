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

/// What the driver checks before it submits: device sides must be known memory, and in bounds where
/// they were allocated whole. Unmapped or ungranted VMM memory is the device's to find.
CUresult check_copy(const CopyRequest& request, Side dst, Side src, int device);
CUresult check_memset(const MemsetRequest& request, int device);

/// Checks and submits, or adds a node where the stream captures.
CUresult submit_copy(const CopyRequest& request, Side dst, Side src, CUstream stream,
                     DefaultStream default_stream, Wait wait);

/// The same for a rectangle as the driver's structure describes it.
CUresult submit_copy(const CUDA_MEMCPY3D& words, CUstream stream, DefaultStream default_stream,
                     Wait wait);

/// The other structures as the most general one. A batch's copy may name arrays that do not exist.
CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& copy);
CUDA_MEMCPY3D widen(const CUDA_MEMCPY3D_PEER& copy);
inline CUDA_MEMCPY3D widen(const CUDA_MEMCPY3D& copy) { return copy; }
CUresult widen(const CUDA_MEMCPY3D_BATCH_OP& copy, CUDA_MEMCPY3D& out);

/// Addresses and pitches; errors as the driver's for a structure that describes no rectangle.
Result<CopyRequest> request_of(const CUDA_MEMCPY3D& copy);
/// The same rectangle in the driver's words; what `Side::Any` is follows from where it lies.
CUDA_MEMCPY3D describe(const CopyRequest& request, Side dst, Side src);
Side side_of(CUmemorytype type);

CUresult submit_memset(const MemsetRequest& request, CUstream stream, DefaultStream default_stream,
                       Wait wait);

}  // namespace simgpu::driver
