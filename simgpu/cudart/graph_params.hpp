// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

// Parameters of graph nodes in the driver's words and back; in a current context.

cudaError_t driver_kernel(const cudaKernelNodeParams* given, CUDA_KERNEL_NODE_PARAMS* out);
void runtime_kernel(const CUDA_KERNEL_NODE_PARAMS& given, cudaKernelNodeParams* out);
cudaError_t driver_node(const cudaGraphNodeParams& given, CUgraphNodeParams* out);
/// What the driver told in the structure (an address, bodies of a conditional node).
void copy_answers(const CUgraphNodeParams& told, cudaGraphNodeParams* out);

}  // namespace libswap::simgpu::cudart
