// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <optional>

#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

/// Shared memory of a device: per block without and with opt-in, per SM, and what the driver keeps
/// per block.
struct SharedMemoryLimits {
    int per_block;
    int per_block_optin;
    int per_sm;
    int reserved_per_block;
};

SharedMemoryLimits shared_memory_limits();
int max_threads_per_sm();
int max_blocks_per_sm();
inline constexpr int kRegistersPerSm = 65536;
inline constexpr int kWarpThreads = 32;
inline constexpr int kMaxThreadsPerBlock = 1024;

/// Value of a device attribute, nothing for one that does not exist.
std::optional<int> device_attribute(const Gpu& gpu, CUdevice_attribute attribute);

}  // namespace simgpu::driver
