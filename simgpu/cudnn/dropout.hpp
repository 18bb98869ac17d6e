// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/cudnn/descriptors.hpp"

/// Without states nothing is dropped.
struct cudnnDropoutStruct {
    float rate = 0;
    void* states = nullptr;
    unsigned long long seed = 0;
};

namespace libswap::simgpu::cudnn {

/// In device memory, at the beginning of the states.
struct DropoutStates {
    std::uint64_t seed;
    std::uint64_t drawn;
};

/// The next number in [0, 1): a function of the seed and of how many were drawn. Steele, Lea and
/// Flood, Fast Splittable Pseudorandom Number Generators, 2014.
inline double draw(DropoutStates& states) {
    std::uint64_t z = states.seed + ++states.drawn * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace libswap::simgpu::cudnn
