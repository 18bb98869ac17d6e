// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/array_shapes.hpp"

#include <algorithm>

namespace libswap {
namespace {

/// Bits of one element with all its channels.
std::size_t element_bits(CUarray_format format, unsigned channels) noexcept {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_UNORM_INT8X1:
        case CU_AD_FORMAT_SNORM_INT8X1:
            return 8 * channels;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
        case CU_AD_FORMAT_UNORM_INT16X1:
        case CU_AD_FORMAT_SNORM_INT16X1:
            return 16 * channels;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 32 * channels;
        // The channels are in the format's name.
        case CU_AD_FORMAT_UNORM_INT8X2:
        case CU_AD_FORMAT_SNORM_INT8X2:
            return 16;
        case CU_AD_FORMAT_UNORM_INT8X4:
        case CU_AD_FORMAT_SNORM_INT8X4:
        case CU_AD_FORMAT_UNORM_INT16X2:
        case CU_AD_FORMAT_SNORM_INT16X2:
            return 32;
        case CU_AD_FORMAT_UNORM_INT16X4:
        case CU_AD_FORMAT_SNORM_INT16X4:
            return 64;
        case CU_AD_FORMAT_NV12:
            return 12;
        // Compressed: blocks of 4 by 4 elements, of 8 or 16 bytes.
        case CU_AD_FORMAT_BC1_UNORM:
        case CU_AD_FORMAT_BC1_UNORM_SRGB:
        case CU_AD_FORMAT_BC4_UNORM:
        case CU_AD_FORMAT_BC4_SNORM:
            return 4;
        case CU_AD_FORMAT_BC2_UNORM:
        case CU_AD_FORMAT_BC2_UNORM_SRGB:
        case CU_AD_FORMAT_BC3_UNORM:
        case CU_AD_FORMAT_BC3_UNORM_SRGB:
        case CU_AD_FORMAT_BC5_UNORM:
        case CU_AD_FORMAT_BC5_SNORM:
        case CU_AD_FORMAT_BC6H_UF16:
        case CU_AD_FORMAT_BC6H_SF16:
        case CU_AD_FORMAT_BC7_UNORM:
        case CU_AD_FORMAT_BC7_UNORM_SRGB:
            return 8;
        default:
            return 0;
    }
}

/// Height and depth are 0 where the array has fewer dimensions.
std::size_t elements(std::size_t width, std::size_t height, std::size_t depth) noexcept {
    return width * std::max<std::size_t>(height, 1) * std::max<std::size_t>(depth, 1);
}

}  // namespace

std::size_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& shape) noexcept {
    return elements(shape.Width, shape.Height, 1) * element_bits(shape.Format, shape.NumChannels) /
           8;
}

std::size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) noexcept {
    if (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) return 0;
    return elements(shape.Width, shape.Height, shape.Depth) *
           element_bits(shape.Format, shape.NumChannels) / 8;
}

std::size_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels) noexcept {
    std::size_t bytes = 0;
    CUDA_ARRAY3D_DESCRIPTOR level = shape;
    const bool layered = shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    for (unsigned i = 0; i < levels; ++i) {
        bytes += array_bytes(level);
        if (level.Width <= 1 && level.Height <= 1 && (layered || level.Depth <= 1)) break;
        const auto halve = [](std::size_t& size) {
            if (size > 1) size /= 2;
        };
        halve(level.Width);
        halve(level.Height);
        if (!layered) halve(level.Depth);  // of a layered one, the depth counts the layers
    }
    return bytes;
}

}  // namespace libswap
