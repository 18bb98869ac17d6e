// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// Whether the runtime has a name for this code.
bool is_known(cudaError_t error) noexcept;

}  // namespace libswap::simgpu::cudart
