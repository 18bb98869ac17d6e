// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

#include "program.hpp"

namespace random_programs {

struct Shape {
    unsigned steps = 60;
    unsigned live_mib = 40;  ///< all buffers together, at most
    unsigned threads = 1;
    unsigned devices = 1;
    bool cached = false;  ///< memory of an allocator of the program's own, and no graphs
};

/// The program of a seed; the same everywhere.
Program generate(std::uint64_t seed, const Shape& shape);

}  // namespace random_programs
