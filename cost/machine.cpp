// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/machine.hpp"

#include <array>
#include <cstring>

namespace libswap::cost {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double remap_us(double us_per_gib, double us_per_chunk, std::uint64_t chunk_bytes,
                std::uint64_t bytes) {
    const std::uint64_t chunks = chunk_bytes == 0 ? 0 : (bytes + chunk_bytes - 1) / chunk_bytes;
    return us_per_gib * static_cast<double>(bytes) / kGib +
           us_per_chunk * static_cast<double>(chunks);
}

Machine make_machine(const char* name, double h2d, double d2h, double h2d_duplex, double d2h_duplex,
                     double latency_us, Ceilings ceilings) {
    Machine machine;
    machine.name = name;
    machine.link.to_device = {.latency_us = latency_us, .gbps = h2d};
    machine.link.to_host = {.latency_us = latency_us, .gbps = d2h};
    machine.link.to_device_duplex_gbps = h2d_duplex;
    machine.link.to_host_duplex_gbps = d2h_duplex;
    // Chunks of 64 MiB on an A100: ovg-project/kvcached, bench_layout.
    machine.remap.map_us_per_gib = 5200;
    machine.remap.unmap_us_per_gib = 1700;
    machine.ceilings = ceilings;
    return machine;
}

// Links: NVIDIA/nvbandwidth README (gen4, one way and both), its tutorial (gen5, both ways
// estimated), te42kyfo/gpu-benches (gen3, both ways estimated). Ceilings: the vendor's data sheets.
const std::array<Machine, 3>& machines() {
    static const std::array<Machine, 3> all{
        make_machine("pcie4-a100", 25.0, 26.0, 18.4, 19.6, 12, {19.5, 1555, 3}),
        make_machine("pcie5-h100", 55.6, 55.6, 45.0, 45.0, 10, {51, 2039, 3}),
        make_machine("pcie3-v100", 12.36, 12.9, 10.5, 10.9, 31, {14, 900, 4}),
    };
    return all;
}

}  // namespace

double RemapModel::map_us(std::uint64_t bytes) const {
    return remap_us(map_us_per_gib, map_us_per_chunk, chunk_bytes, bytes);
}

double RemapModel::unmap_us(std::uint64_t bytes) const {
    return remap_us(unmap_us_per_gib, unmap_us_per_chunk, chunk_bytes, bytes);
}

const Machine* find_machine(const char* name) {
    for (const Machine& machine : machines()) {
        if (std::strcmp(machine.name.c_str(), name) == 0) return &machine;
    }
    return nullptr;
}

Machine engine_machine() {
    Machine machine = machines()[0];
    // A line through the 2 MiB and 64 MiB figures of ovg-project/kvcached on an A100 (bench_vmm,
    // bench_layout). A fetch swaps the mapping: cuMemUnmap, a cuMemMap per chunk, cuMemSetAccess.
    // What leaves only has to be unmapped before its memory is somebody else's.
    machine.remap.map_us_per_gib = 6110;
    machine.remap.unmap_us_per_gib = 1330;
    machine.remap.map_us_per_chunk = 54;
    machine.remap.unmap_us_per_chunk = 23;
    machine.reaction_us = 10;
    return machine;
}

}  // namespace libswap::cost
