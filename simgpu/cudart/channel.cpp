// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudart/channel.hpp"

namespace libswap::simgpu::cudart {

cudaError_t driver_format(const cudaChannelFormatDesc& channel, ArrayFormat* result) {
    result->channels = static_cast<unsigned>((channel.x != 0) + (channel.y != 0) +
                                             (channel.z != 0) + (channel.w != 0));
    if (result->channels == 0 || result->channels == 3) {
        return cudaErrorInvalidChannelDescriptor;
    }
    const bool is_signed = channel.f == cudaChannelFormatKindSigned;
    if (channel.f == cudaChannelFormatKindFloat) {
        result->format = channel.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
        return channel.x == 16 || channel.x == 32 ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
    }
    switch (channel.x) {
        case 8:
            result->format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
            return cudaSuccess;
        case 16:
            result->format = is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
            return cudaSuccess;
        case 32:
            result->format = is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
            return cudaSuccess;
        default:
            return cudaErrorInvalidChannelDescriptor;
    }
}

cudaChannelFormatDesc runtime_channel(const ArrayFormat& format) {
    int bits = 32;
    cudaChannelFormatKind kind = cudaChannelFormatKindFloat;
    switch (format.format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            bits = 8;
            break;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            bits = 16;
            break;
        default:
            break;
    }
    switch (format.format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_UNSIGNED_INT32:
            kind = cudaChannelFormatKindUnsigned;
            break;
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT32:
            kind = cudaChannelFormatKindSigned;
            break;
        default:
            break;
    }
    const unsigned channels = format.channels;
    return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

}  // namespace libswap::simgpu::cudart
