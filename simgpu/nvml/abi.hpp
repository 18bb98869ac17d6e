// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// NVML's binary interface, as far as it is stood in for.
#pragma once

#include <cstdint>

namespace simgpu::nvml {

enum Result : int {
    kSuccess = 0,
    kUninitialized = 1,
    kInvalidArgument = 2,
    kNotSupported = 3,
    kNotFound = 6,
    kInsufficientSize = 7,
    kDriverNotLoaded = 9,
    kArgumentVersionMismatch = 25,
};

struct MemoryInfo {
    std::uint64_t total, free, used;
};

struct MemoryInfoV2 {
    std::uint32_t version;
    std::uint64_t total, reserved, free, used;
};
inline constexpr std::uint32_t kMemoryInfoV2 = sizeof(MemoryInfoV2) | 2U << 24;

struct ProcessV1 {
    std::uint32_t pid;
    std::uint64_t bytes;
};

struct ProcessV2 {
    std::uint32_t pid;
    std::uint64_t bytes;
    std::uint32_t gpu_instance, compute_instance;
};
inline constexpr std::uint32_t kNoInstance = UINT32_MAX;

struct Utilization {
    std::uint32_t gpu, memory;  ///< per cent
};

struct PciInfo {
    char bus_id_legacy[16];
    std::uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

inline constexpr int kPeerOk = 0;

}  // namespace simgpu::nvml
