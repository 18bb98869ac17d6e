// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string_view>

#include "simgpu/host_kernels/torch/scalar_type.hpp"

/// The order in which PyTorch and CUB sort elements.
namespace simgpu::torch {

/// The element type behind a parameter's type: "float const*", "at::...::TensorInfo<long const,
/// unsigned int>". Knows CUDA's own names of halves too. Unknown for others.
ScalarType element_type(std::string_view parameter);

/// A number of as many bits as the element has, which grows with it. Zeros are one, NaNs too, above
/// all others.
std::uint64_t ordered_bits(ScalarType type, const void* from);

/// The same for the inverse order.
std::uint64_t descending_bits(ScalarType type, const void* from);

}  // namespace simgpu::torch
