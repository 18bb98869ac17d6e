// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

// Copies in the driver's words and back. Where an array takes part, the driver is asked about it:
// in a current context.

cudaError_t driver_copy(const cudaMemcpy3DParms& parameters, CUDA_MEMCPY3D* copy);
cudaError_t driver_copy_1d(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D* copy);
cudaError_t runtime_copy(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* parameters);

}  // namespace libswap::simgpu::cudart
