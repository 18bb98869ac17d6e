// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/host_kernels/written_operands.hpp"

namespace simgpu {

/// Adds `bytes` bytes to a digest that depends on every one of them and on its place.
std::uint64_t stir(std::uint64_t digest, const void* data, std::size_t bytes);

/// Fills with values that follow from `seed` and their place alone: floats within +-1/16, integers
/// from 0 to 7, bytes 0 or 1.
void fill_from(std::uint64_t seed, FillType type, void* data, std::size_t bytes);

}  // namespace simgpu
