// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// What an element of an array is, in the driver's words.
struct ArrayFormat {
    CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
    unsigned channels = 0;
};

/// For a format that both APIs have: 1, 2 or 4 channels of the same width.
cudaError_t driver_format(const cudaChannelFormatDesc& channel, ArrayFormat* result);
cudaChannelFormatDesc runtime_channel(const ArrayFormat& format);

}  // namespace libswap::simgpu::cudart
