// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

/// `64MiB`, `2G`, `4096`: bytes, suffixes in powers of 1024.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Where machine profiles may lie: beside the library as built or installed, and in the source
/// tree.
std::vector<std::string> profile_directories();

/// SIMGPU_MACHINE, SIMGPU_MEMORY, SIMGPU_DATA, SIMGPU_FILL, SIMGPU_SHARE, SIMGPU_DELAYS,
/// SIMGPU_HOST_SPEED and what else makes a machine. What does not parse is said in one line, and
/// its default taken.
MachineConfig machine_config(const Options& options);

/// SIMGPU_VMM, SIMGPU_HOST_NUMA, SIMGPU_DEVICES, CUDA_VISIBLE_DEVICES.
Options read_options();

/// What can be known of all devices without a machine.
struct DeviceFacts {
    MachineProfile profile;
    std::uint64_t memory_bytes = 0;
    int count = 0;                        ///< Whichever of them the process sees.
    std::shared_ptr<SharedUsage> shared;  ///< To look at only; may be null.
};
DeviceFacts device_facts();

}  // namespace simgpu::driver
