// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

// cuda.h with every exported name as it is: no macro turns cuMemAlloc into cuMemAlloc_v2 or a
// legacy name into its per-thread twin, and all versions are declared. To be included before
// anything that includes cuda.h.
#ifdef __cuda_cuda_h__
#error "interposer/cuda_abi.hpp must come before <cuda.h>"
#endif

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR  // the enumerators stay those that other files see
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#undef __CUDA_API_VERSION_INTERNAL
