// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "interposer/cuda_abi.hpp"

#include <cuda.h>

#include <cstddef>

namespace libswap {

/// Bytes of the elements of an array; the driver may take more for its layout. 0 for a shape or
/// format that is not known, and for sparse and deferred arrays, which have no memory of their own.
std::size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) noexcept;
std::size_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& shape) noexcept;
/// All levels of a mipmapped array.
std::size_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels) noexcept;

}  // namespace libswap
