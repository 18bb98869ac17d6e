// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <memory>

#include "simgpu/device/machine.hpp"

namespace simgpu {

inline constexpr std::uint64_t kMiB = 1u << 20;
inline constexpr std::uint64_t kPage = 2 * kMiB;

/// A machine small enough for every test. Its host is quick: what the computer's own host takes
/// away from a thread counts as that thread's processor time.
inline MachineConfig small_machine(std::uint64_t bytes = 64 * kMiB, int devices = 1) {
    MachineConfig config;
    config.profile = default_profile();
    config.host_speed = 100;
    config.memory.window_bytes = 4ull << 30;
    config.memory.device_count = devices;
    for (int i = 0; i < devices; ++i) config.memory.capacity_bytes[i] = bytes;
    return config;
}

inline AccessGrant device_access(int device = 0, bool writable = true) {
    return {Location{Location::Kind::Device, device}, true, writable};
}

inline AccessGrant host_access(bool writable = true) {
    return {Location{Location::Kind::HostNuma, 0}, true, writable};
}

/// Maps a new handle at `va` with access for the device.
inline HandleId map_new(Memory& memory, std::uint64_t va, std::uint64_t bytes,
                        Location location = {}) {
    const HandleId handle = memory.create(bytes, location).value();
    if (memory.map(va, bytes, 0, handle) != CUDA_SUCCESS) return 0;
    const AccessGrant grant = device_access();
    return memory.set_access(va, bytes, {&grant, 1}) == CUDA_SUCCESS ? handle : 0;
}

/// A kernel that does nothing but take `ns` at the profile's arithmetic speed.
inline KernelLaunch busy_kernel(std::uint64_t ns, const char* name = "busy") {
    return {name, [ns](KernelMemory&) {
                KernelOutcome outcome;
                outcome.flops = static_cast<double>(ns) * default_profile().fp32_tflops * 1e3;
                return outcome;
            }};
}

inline CopyRequest copy_of(const void* dst, const void* src, std::uint64_t bytes) {
    CopyRequest request;
    request.dst = reinterpret_cast<std::uint64_t>(dst);
    request.src = reinterpret_cast<std::uint64_t>(src);
    request.width = bytes;
    return request;
}

inline CopyRequest copy_of(std::uint64_t dst, const void* src, std::uint64_t bytes) {
    return copy_of(reinterpret_cast<const void*>(dst), src, bytes);
}

inline CopyRequest copy_of(void* dst, std::uint64_t src, std::uint64_t bytes) {
    return copy_of(dst, reinterpret_cast<const void*>(src), bytes);
}

inline CopyRequest copy_of(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    return copy_of(reinterpret_cast<const void*>(dst), reinterpret_cast<const void*>(src), bytes);
}

}  // namespace simgpu
