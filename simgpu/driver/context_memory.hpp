// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>

#include "simgpu/driver/context.hpp"

// What a context takes of its device's memory by itself, so that cuMemGetInfo tells it: the buffer
// of printf from the first module on that uses it, and local memory from the first kernel on that
// needs more of it than is there. Both stay until the context goes. @thread any

namespace simgpu::driver {

/// CUDA_ERROR_OUT_OF_MEMORY where there is no room, as for the next.
CUresult need_printf_buffer(Context& context);

/// For `threads` threads of a kernel that needs `bytes` for each. The vendor's driver counts all
/// threads that the device can hold; here it is no more than the kernel has, since devices may be
/// as small as tests want them.
CUresult need_local_memory(Context& context, std::uint64_t bytes, std::uint64_t threads);

void release_memory_of(Context& context);

}  // namespace simgpu::driver
