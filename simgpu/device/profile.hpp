// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace simgpu {

/// Speeds and costs of a machine, from a JSON file in simgpu/machines (or any path). All link rates
/// are GB/s of 1e9 bytes.
struct MachineProfile {
    std::string name = "pcie4-a100";
    std::string source;
    std::string device_name = "simgpu";
    int compute_major = 8;
    int compute_minor = 0;
    std::uint64_t memory_bytes = 0;  ///< Device memory when SIMGPU_MEMORY does not say.

    double h2d_gbps = 0, d2h_gbps = 0;                ///< One direction busy.
    double h2d_duplex_gbps = 0, d2h_duplex_gbps = 0;  ///< Both directions busy.
    double pageable_gbps = 0;  ///< Copies from and to memory that is not pinned.
    double host_gbps = 0;      ///< Host to host copies.
    double transfer_latency_us = 0;

    double fp32_tflops = 0;
    double mem_gbps = 0;
    double thread_instructions_per_ns = 0;  ///< All SMs together.
    double launch_latency_us = 0;
    int sm_count = 0;
    std::uint64_t l2_bytes = 0;
    int clock_khz = 0;

    // Costs of memory calls: per call, and per GiB.
    double create_us = 0, create_us_per_gib = 0;  ///< cuMemCreate, and cuMemAlloc.
    double map_us = 0, map_us_per_gib = 0;
    double set_access_us = 0, set_access_us_per_gib = 0;
    double unmap_us = 0, unmap_us_per_gib = 0;
    double host_alloc_us_per_gib = 0;  ///< Pinning host memory.
    double host_call_us = 0;           ///< What a submitting call costs its host thread.
};

/// Reads the profile `name_or_path`: a path when it has a slash or ends in .json, else a name,
/// looked for as DIRECTORY/NAME.json in `directories`, then among the compiled-in ones (the
/// default). The error is one line.
tl::expected<MachineProfile, std::string> load_profile(std::string_view name_or_path,
                                                       const std::vector<std::string>& directories);

/// Parses the text of a profile.
tl::expected<MachineProfile, std::string> parse_profile(std::string_view json,
                                                        std::string_view name);

/// The compiled-in default profile (pcie4-a100).
const MachineProfile& default_profile();

}  // namespace simgpu
