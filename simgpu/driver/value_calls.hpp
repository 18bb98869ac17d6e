// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <optional>

#include "simgpu/device/graph.hpp"

namespace simgpu::driver {

/// CUDA_ERROR_INVALID_VALUE where cuStreamBatchMemOp would refuse the operations.
CUresult check_value_operations(unsigned count, const CUstreamBatchMemOpParams* operations,
                                unsigned flags);

/// What the device does for a checked operation; nothing for a barrier.
std::optional<GraphStep> value_step(const CUstreamBatchMemOpParams& operation);

}  // namespace simgpu::driver
