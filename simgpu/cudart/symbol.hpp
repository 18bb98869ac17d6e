// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// Address of `bytes` bytes at `offset` in the variable, which must lie inside of it; in a current
/// context.
cudaError_t locate_part(const void* symbol, std::size_t offset, std::size_t bytes, void** address);

}  // namespace libswap::simgpu::cudart
