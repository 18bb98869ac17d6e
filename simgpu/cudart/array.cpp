// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

struct DriverFormat {
    CUarray_format format;
    unsigned channels;
};

/// A format that both APIs have: 1, 2 or 4 channels of the same width.
cudaError_t to_driver(const cudaChannelFormatDesc& channel, DriverFormat* result) {
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

cudaChannelFormatDesc to_runtime_format(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    int bits = 32;
    cudaChannelFormatKind kind = cudaChannelFormatKindFloat;
    switch (descriptor.Format) {
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
    switch (descriptor.Format) {
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
    const unsigned channels = descriptor.NumChannels;
    return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

cudaError_t create(cudaArray_t* array, const cudaChannelFormatDesc* channel, cudaExtent extent,
                   unsigned flags) {
    return on_context([&] {
        if (array == nullptr || channel == nullptr) {
            return cudaErrorInvalidValue;
        }
        DriverFormat format{};
        const cudaError_t error = to_driver(*channel, &format);
        if (error != cudaSuccess) {
            return error;
        }
        CUDA_ARRAY3D_DESCRIPTOR descriptor{};
        descriptor.Width = extent.width;
        descriptor.Height = extent.height;
        descriptor.Depth = extent.depth;
        descriptor.Format = format.format;
        descriptor.NumChannels = format.channels;
        descriptor.Flags = flags;
        return call(CUDART_DRIVER(cuArray3DCreate, 3020), reinterpret_cast<CUarray*>(array),
                    &descriptor);
    });
}

cudaError_t describe(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    return call(CUDART_DRIVER(cuArray3DGetDescriptor, 3020), descriptor,
                reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)));
}

}  // namespace

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channel, size_t width,
                            size_t height, unsigned flags) {
    return create(array, channel, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channel,
                              cudaExtent extent, unsigned flags) {
    return create(array, channel, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    return on_context([&] {
        return array == nullptr
                   ? cudaSuccess
                   : call(CUDART_DRIVER(cuArrayDestroy, 2000), reinterpret_cast<CUarray>(array));
    });
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channel, cudaArray_const_t array) {
    return on_context([&] {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{};
        const cudaError_t error = describe(array, &descriptor);
        if (error == cudaSuccess) {
            *channel = to_runtime_format(descriptor);
        }
        return error;
    });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channel, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
    return on_context([&] {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{};
        const cudaError_t error = describe(array, &descriptor);
        if (error != cudaSuccess) {
            return error;
        }
        if (channel != nullptr) {
            *channel = to_runtime_format(descriptor);
        }
        if (extent != nullptr) {
            *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
        }
        if (flags != nullptr) {
            *flags = descriptor.Flags;
        }
        return cudaSuccess;
    });
}
