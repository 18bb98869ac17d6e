// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/channel.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

cudaError_t driver_descriptor(const cudaChannelFormatDesc* channel, cudaExtent extent,
                              unsigned flags, CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    if (channel == nullptr) {
        return cudaErrorInvalidValue;
    }
    ArrayFormat format{};
    const cudaError_t error = driver_format(*channel, &format);
    *descriptor = {extent.width,  extent.height,   extent.depth,
                   format.format, format.channels, flags};
    return error;
}

cudaError_t create(cudaArray_t* array, const cudaChannelFormatDesc* channel, cudaExtent extent,
                   unsigned flags) {
    return on_context([&] {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{};
        const cudaError_t error = driver_descriptor(channel, extent, flags, &descriptor);
        return error == cudaSuccess ? call(CUDART_DRIVER(cuArray3DCreate, 3020),
                                           reinterpret_cast<CUarray*>(array), &descriptor)
                                    : error;
    });
}

CUmipmappedArray driver_array(cudaMipmappedArray_const_t array) {
    return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(array));
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
            *channel = runtime_channel({descriptor.Format, descriptor.NumChannels});
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
            *channel = runtime_channel({descriptor.Format, descriptor.NumChannels});
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

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* channel, cudaExtent extent,
                                     unsigned levels, unsigned flags) {
    return on_context([&] {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{};
        const cudaError_t error = driver_descriptor(channel, extent, flags, &descriptor);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuMipmappedArrayCreate, 5000),
                          reinterpret_cast<CUmipmappedArray*>(array), &descriptor, levels)
                   : error;
    });
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                       unsigned number) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMipmappedArrayGetLevel, 5000),
                    reinterpret_cast<CUarray*>(level), driver_array(array), number);
    });
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    return on_context([&] {
        return array == nullptr
                   ? cudaSuccess
                   : call(CUDART_DRIVER(cuMipmappedArrayDestroy, 5000), driver_array(array));
    });
}
