// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/attributes.hpp"

#include <algorithm>
#include <cmath>

namespace simgpu::driver {

namespace {

/// Attributes that are the same for every device of these architectures (CUDA C++ programming
/// guide, "Compute Capabilities"). Those that are 0 are not in the list.
std::optional<int> architecture_attribute(CUdevice_attribute attribute) {
    constexpr int kMaxGrid = 65535;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
            return kMaxThreadsPerBlock;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
            return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
            return INT32_MAX;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            return kMaxGrid;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return kWarpThreads;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
            return kRegistersPerSm;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
            return 512;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
            return 32;
        case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
        case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        case CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER:
            return 1;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
            return 2;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
            return 2;
        default:
            return std::nullopt;
    }
}

/// Sizes of textures and surfaces.
std::optional<int> texture_attribute(CUdevice_attribute attribute) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
            return 131072;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
            return 65000;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
            return 2097120;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
            return 1 << 28;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
            return 16384;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE:
            return 8192;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE:
            return 32768;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
            return 2048;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
            return 2046;
        default:
            break;
    }
    bool width_or_height =
        (attribute >= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH &&
         attribute <= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT) ||
        attribute == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH ||
        (attribute >= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH &&
         attribute <= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT) ||
        (attribute >= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH &&
         attribute <= CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS) ||
        (attribute >= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH &&
         attribute <= CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT) ||
        attribute == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH;
    if (width_or_height) return 32768;
    return std::nullopt;
}

/// What the machine's profile says.
std::optional<int> profile_attribute(const Gpu& gpu, CUdevice_attribute attribute) {
    const MachineProfile& profile = machine().profile();
    SharedMemoryLimits shared = shared_memory_limits();
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return profile.compute_major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return profile.compute_minor;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return profile.sm_count;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
            return profile.clock_khz;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
            return 1215000;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
            // Two transfers a clock: GB/s = width / 8 * clock * 2. Widths are multiples of 32.
            return static_cast<int>(std::lround(profile.mem_gbps * 8 / (2 * 1.215) / 32)) * 32;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            return static_cast<int>(profile.l2_bytes);
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            return shared.per_block;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return shared.per_block_optin;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return shared.per_sm;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            return shared.reserved_per_block;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return max_threads_per_sm();
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            return max_blocks_per_sm();
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
            return gpu.number + 1;
        case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
            return gpu.number;
        case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
            return CU_MEM_HANDLE_TYPE_NONE;
        case CU_DEVICE_ATTRIBUTE_NUMA_ID:
            return -1;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
            return options().vmm ? 1 : 0;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
            return options().host_numa ? 0 : -1;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
            return options().vmm && options().host_numa ? 1 : 0;
        default:
            return std::nullopt;
    }
}

}  // namespace

SharedMemoryLimits shared_memory_limits() {
    constexpr int kKiB = 1024;
    const MachineProfile& profile = machine().profile();
    int capability = profile.compute_major * 10 + profile.compute_minor;
    if (capability >= 90) return {48 * kKiB, 227 * kKiB, 228 * kKiB, kKiB};
    if (capability == 80 || capability == 87) return {48 * kKiB, 163 * kKiB, 164 * kKiB, kKiB};
    if (capability > 80) return {48 * kKiB, 99 * kKiB, 100 * kKiB, kKiB};
    if (capability == 75) return {48 * kKiB, 64 * kKiB, 64 * kKiB, 0};
    return {48 * kKiB, 96 * kKiB, 96 * kKiB, 0};
}

int max_threads_per_sm() {
    const MachineProfile& profile = machine().profile();
    int capability = profile.compute_major * 10 + profile.compute_minor;
    if (capability == 75) return 1024;
    return capability == 86 || capability == 89 ? 1536 : 2048;
}

int max_blocks_per_sm() {
    const MachineProfile& profile = machine().profile();
    int capability = profile.compute_major * 10 + profile.compute_minor;
    if (capability == 75 || capability == 86) return 16;
    return capability == 89 ? 24 : 32;
}

std::optional<int> device_attribute(const Gpu& gpu, CUdevice_attribute attribute) {
    if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
    if (auto value = profile_attribute(gpu, attribute)) return value;
    if (auto value = architecture_attribute(attribute)) return value;
    if (auto value = texture_attribute(attribute)) return value;
    return 0;  // the feature does not exist here
}

}  // namespace simgpu::driver
