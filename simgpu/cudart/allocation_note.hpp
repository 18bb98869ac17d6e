// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// Tells the stand-in driver what the program has at `pointer`, or with 0 no longer has
/// (simgpuAllocationNote): beneath us an interposer may hand out parts of larger pieces. Nothing
/// under another driver. @thread any
void note_allocation(const void* pointer, std::size_t bytes) noexcept;

/// The result of an allocation, told to the stand-in driver if it is one.
inline cudaError_t noted(void* const* pointer, std::size_t bytes, cudaError_t result) noexcept {
    if (result == cudaSuccess) note_allocation(*pointer, bytes);
    return result;
}

}  // namespace libswap::simgpu::cudart
