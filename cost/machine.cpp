// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/machine.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

namespace libswap::cost {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double remap_us(double us_per_gib, double us_per_chunk, std::uint64_t chunk_bytes,
                std::uint64_t bytes) {
    const std::uint64_t chunks = chunk_bytes == 0 ? 0 : (bytes + chunk_bytes - 1) / chunk_bytes;
    return us_per_gib * static_cast<double>(bytes) / kGib +
           us_per_chunk * static_cast<double>(chunks);
}

/// What calls of the driver cost, as the profiles have it.
struct RemapCalls {
    double map_us, map_us_per_gib;
    double set_access_us, set_access_us_per_gib;
    double unmap_us, unmap_us_per_gib;
};

/// A row of machines.inc.
struct Profile {
    const char* name;
    double h2d_gbps, d2h_gbps, h2d_duplex_gbps, d2h_duplex_gbps;
    double transfer_latency_us;
    double map_us_per_gib, unmap_us_per_gib;
    Ceilings ceilings;
    RemapCalls calls;
};

constexpr Profile kProfiles[] = {
#include "cost/machines.inc"
};

Machine make_machine(const Profile& p) {
    Machine machine;
    machine.name = p.name;
    machine.link.to_device = {.latency_us = p.transfer_latency_us, .gbps = p.h2d_gbps};
    machine.link.to_host = {.latency_us = p.transfer_latency_us, .gbps = p.d2h_gbps};
    machine.link.to_device_duplex_gbps = p.h2d_duplex_gbps;
    machine.link.to_host_duplex_gbps = p.d2h_duplex_gbps;
    machine.remap.map_us_per_gib = p.map_us_per_gib;
    machine.remap.unmap_us_per_gib = p.unmap_us_per_gib;
    machine.ceilings = p.ceilings;
    return machine;
}

const std::vector<Machine>& machines() {
    static const auto* all = [] {
        auto* made = new std::vector<Machine>;  // never destroyed: threads may outlive main
        for (const Profile& p : kProfiles) made->push_back(make_machine(p));
        return made;
    }();
    return *all;
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
    constexpr std::string_view kName = "pcie4-a100";
    const auto* profile = std::find_if(std::begin(kProfiles), std::end(kProfiles),
                                       [&](const Profile& p) { return kName == p.name; });
    Machine machine = make_machine(*profile);
    // A fetch swaps the mapping: cuMemUnmap, a cuMemMap per chunk, cuMemSetAccess. What leaves only
    // has to be unmapped before its memory is somebody else's.
    const RemapCalls& c = profile->calls;
    machine.remap.map_us_per_gib = c.unmap_us_per_gib + c.map_us_per_gib + c.set_access_us_per_gib;
    machine.remap.map_us_per_chunk = c.unmap_us + c.map_us + c.set_access_us;
    machine.remap.unmap_us_per_gib = c.unmap_us_per_gib;
    machine.remap.unmap_us_per_chunk = c.unmap_us;
    machine.reaction_us = 10;
    return machine;
}

}  // namespace libswap::cost
