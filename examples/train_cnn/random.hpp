// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cmath>
#include <cstdint>

namespace train_cnn {

/// The next number of a SplitMix64 sequence: the same on every machine.
inline std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/// A number of the standard normal distribution (Box and Muller).
inline double next_normal(std::uint64_t& state) {
    const double u = (static_cast<double>(next_random(state) >> 11) + 1.0) * 0x1p-53;
    const double v = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

}  // namespace train_cnn
