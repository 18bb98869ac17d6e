// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// cudaMemcpy in a current context; `per_thread` picks the per-thread default stream.
cudaError_t copy_now(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                     bool per_thread);

/// cudaMemcpyAsync in a current context.
cudaError_t copy_on_stream(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream, bool per_thread);

}  // namespace libswap::simgpu::cudart
