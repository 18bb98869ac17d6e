// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>

#include "cost/link_model.hpp"
#include "cost/roofline.hpp"

namespace libswap::cost {

/// What a remap costs. The time is map_us_per_gib * GiB + map_us_per_chunk * chunks, and likewise
/// for unmapping; the referee's machines know the first term only.
struct RemapModel {
    double map_us_per_gib = 0;
    double unmap_us_per_gib = 0;
    double map_us_per_chunk = 0;
    double unmap_us_per_chunk = 0;
    std::uint64_t chunk_bytes = std::uint64_t{64} << 20;

    double map_us(std::uint64_t bytes) const;
    double unmap_us(std::uint64_t bytes) const;
};

/// A device and its link to the host, as the models see it.
struct Machine {
    std::string name;
    LinkModel link;
    RemapModel remap;
    Ceilings ceilings;
    double reaction_us = 0;  ///< from the end of an operation until an action due then begins
};

/// The machines that the shipped profiles describe ("pcie4-a100", "pcie5-h100", "pcie3-v100"), or
/// nullptr. Figures and sources: simgpu/machines/*.json.
const Machine* find_machine(const char* name);

/// What libswap's own engine plans for: pcie4-a100 with the remaps and the reaction time of the
/// engine, which swaps mappings chunk by chunk.
Machine engine_machine();

}  // namespace libswap::cost
