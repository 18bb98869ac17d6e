// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Copies of two and three dimensions, from and to pitched memory and arrays.

#include "simgpu/cudart/copy_shapes.hpp"

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

struct MemoryTypes {
    CUmemorytype from;
    CUmemorytype to;
};

cudaError_t memory_types(cudaMemcpyKind kind, MemoryTypes* types) {
    switch (kind) {
        case cudaMemcpyHostToHost:
            *types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
            return cudaSuccess;
        case cudaMemcpyHostToDevice:
            *types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
            return cudaSuccess;
        case cudaMemcpyDeviceToHost:
            *types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
            return cudaSuccess;
        case cudaMemcpyDeviceToDevice:
            *types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
            return cudaSuccess;
        case cudaMemcpyDefault:
            *types = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
            return cudaSuccess;
    }
    return cudaErrorInvalidMemcpyDirection;
}

template <typename Copy>
void set_source(Copy& copy, CUmemorytype type, const void* pointer, size_t pitch) {
    copy.srcMemoryType = type;
    copy.srcPitch = pitch;
    if (type == CU_MEMORYTYPE_HOST) {
        copy.srcHost = pointer;
    } else {
        copy.srcDevice = device_pointer(pointer);
    }
}

template <typename Copy>
void set_target(Copy& copy, CUmemorytype type, void* pointer, size_t pitch) {
    copy.dstMemoryType = type;
    copy.dstPitch = pitch;
    if (type == CU_MEMORYTYPE_HOST) {
        copy.dstHost = pointer;
    } else {
        copy.dstDevice = device_pointer(pointer);
    }
}

cudaError_t run_2d(const CUDA_MEMCPY2D& copy, const cudaStream_t* stream, bool per_thread) {
    if (copy.WidthInBytes == 0 || copy.Height == 0) {
        return cudaSuccess;
    }
    // The driver's synchronous form must take any pitch, which cuMemcpy2D does not.
    return stream == nullptr
               ? call(CUDART_DRIVER_ON(per_thread, cuMemcpy2DUnaligned, 3020, 7000), &copy)
               : call(CUDART_DRIVER_ON(per_thread, cuMemcpy2DAsync, 3020, 7000), &copy, *stream);
}

cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, const cudaStream_t* stream,
                    bool per_thread) {
    return on_context([&] {
        MemoryTypes types{};
        const cudaError_t error = memory_types(kind, &types);
        if (error != cudaSuccess) {
            return error;
        }
        if (height > 1 && (width > to_pitch || width > from_pitch)) {
            return cudaErrorInvalidPitchValue;
        }
        CUDA_MEMCPY2D copy{};
        set_source(copy, types.from, from, from_pitch);
        set_target(copy, types.to, to, to_pitch);
        copy.WidthInBytes = width;
        copy.Height = height;
        return run_2d(copy, stream, per_thread);
    });
}

cudaError_t copy_2d_to_array(cudaArray_t to, size_t x_bytes, size_t y, const void* from,
                             size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                             const cudaStream_t* stream, bool per_thread) {
    return on_context([&] {
        MemoryTypes types{};
        const cudaError_t error = memory_types(kind, &types);
        if (error != cudaSuccess) {
            return error;
        }
        CUDA_MEMCPY2D copy{};
        set_source(copy, types.from, from, pitch);
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = reinterpret_cast<CUarray>(to);
        copy.dstXInBytes = x_bytes;
        copy.dstY = y;
        copy.WidthInBytes = width;
        copy.Height = height;
        return run_2d(copy, stream, per_thread);
    });
}

cudaError_t copy_2d_from_array(void* to, size_t pitch, cudaArray_const_t from, size_t x_bytes,
                               size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                               const cudaStream_t* stream, bool per_thread) {
    return on_context([&] {
        MemoryTypes types{};
        const cudaError_t error = memory_types(kind, &types);
        if (error != cudaSuccess) {
            return error;
        }
        CUDA_MEMCPY2D copy{};
        set_target(copy, types.to, to, pitch);
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = reinterpret_cast<CUarray>(const_cast<cudaArray*>(from));
        copy.srcXInBytes = x_bytes;
        copy.srcY = y;
        copy.WidthInBytes = width;
        copy.Height = height;
        return run_2d(copy, stream, per_thread);
    });
}

cudaError_t copy_2d_arrays(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                           size_t from_x, size_t from_y, size_t width, size_t height,
                           bool per_thread) {
    return on_context([&] {
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = reinterpret_cast<CUarray>(const_cast<cudaArray*>(from));
        copy.srcXInBytes = from_x;
        copy.srcY = from_y;
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = reinterpret_cast<CUarray>(to);
        copy.dstXInBytes = to_x;
        copy.dstY = to_y;
        copy.WidthInBytes = width;
        copy.Height = height;
        return run_2d(copy, nullptr, per_thread);
    });
}

size_t format_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        default:
            return 4;
    }
}

cudaError_t element_bytes(cudaArray_const_t array, size_t* bytes) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    const cudaError_t error = call(CUDART_DRIVER(cuArray3DGetDescriptor, 3020), &descriptor,
                                   reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)));
    *bytes = format_bytes(descriptor.Format) * descriptor.NumChannels;
    return error;
}

/// What cudaMemcpy3D and cudaMemcpy3DPeer have in common, for either driver structure.
template <typename Copy, typename Parameters>
cudaError_t describe_3d(const Parameters& parameters, const MemoryTypes& types, Copy& copy) {
    size_t width_unit = 1;
    if (parameters.srcArray != nullptr || parameters.dstArray != nullptr) {
        // With an array on either side the extent counts its elements.
        const cudaError_t error = element_bytes(
            parameters.srcArray != nullptr ? parameters.srcArray : parameters.dstArray,
            &width_unit);
        if (error != cudaSuccess) {
            return error;
        }
    }
    if (parameters.srcArray != nullptr) {
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = reinterpret_cast<CUarray>(parameters.srcArray);
        copy.srcXInBytes = parameters.srcPos.x * width_unit;
    } else {
        set_source(copy, types.from, parameters.srcPtr.ptr, parameters.srcPtr.pitch);
        copy.srcHeight = parameters.srcPtr.ysize;
        copy.srcXInBytes = parameters.srcPos.x;
    }
    if (parameters.dstArray != nullptr) {
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = reinterpret_cast<CUarray>(parameters.dstArray);
        copy.dstXInBytes = parameters.dstPos.x * width_unit;
    } else {
        set_target(copy, types.to, parameters.dstPtr.ptr, parameters.dstPtr.pitch);
        copy.dstHeight = parameters.dstPtr.ysize;
        copy.dstXInBytes = parameters.dstPos.x;
    }
    copy.srcY = parameters.srcPos.y;
    copy.srcZ = parameters.srcPos.z;
    copy.dstY = parameters.dstPos.y;
    copy.dstZ = parameters.dstPos.z;
    copy.WidthInBytes = parameters.extent.width * width_unit;
    copy.Height = parameters.extent.height;
    copy.Depth = parameters.extent.depth;
    return cudaSuccess;
}

cudaError_t copy_3d(const cudaMemcpy3DParms* parameters, const cudaStream_t* stream,
                    bool per_thread) {
    return on_context([&] {
        if (parameters == nullptr) {
            return cudaErrorInvalidValue;
        }
        CUDA_MEMCPY3D copy{};
        const cudaError_t error = driver_copy(*parameters, &copy);
        if (error != cudaSuccess || copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) {
            return error;
        }
        return stream == nullptr ? call(CUDART_DRIVER_ON(per_thread, cuMemcpy3D, 3020, 7000), &copy)
                                 : call(CUDART_DRIVER_ON(per_thread, cuMemcpy3DAsync, 3020, 7000),
                                        &copy, *stream);
    });
}

cudaError_t copy_3d_peer(const cudaMemcpy3DPeerParms* parameters, const cudaStream_t* stream,
                         bool per_thread) {
    return on_context([&] {
        if (parameters == nullptr) {
            return cudaErrorInvalidValue;
        }
        CUDA_MEMCPY3D_PEER copy{};
        cudaError_t error =
            describe_3d(*parameters, {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE}, copy);
        if (error == cudaSuccess) {
            error = primary_context(parameters->srcDevice, &copy.srcContext);
        }
        if (error == cudaSuccess) {
            error = primary_context(parameters->dstDevice, &copy.dstContext);
        }
        if (error != cudaSuccess || copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) {
            return error;
        }
        return stream == nullptr
                   ? call(CUDART_DRIVER_ON(per_thread, cuMemcpy3DPeer, 4000, 7000), &copy)
                   : call(CUDART_DRIVER_ON(per_thread, cuMemcpy3DPeerAsync, 4000, 7000), &copy,
                          *stream);
    });
}

}  // namespace

namespace libswap::simgpu::cudart {

cudaError_t driver_copy(const cudaMemcpy3DParms& parameters, CUDA_MEMCPY3D* copy) {
    MemoryTypes types{};
    const cudaError_t error = memory_types(parameters.kind, &types);
    return error == cudaSuccess ? describe_3d(parameters, types, *copy) : error;
}

cudaError_t driver_copy_1d(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D* copy) {
    cudaMemcpy3DParms parameters{};
    parameters.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
    parameters.dstPtr = {to, bytes, bytes, 1};
    parameters.extent = {bytes, 1, 1};
    parameters.kind = kind;
    return driver_copy(parameters, copy);
}

namespace {

/// The kind that has these memory types; what is not plain is for the driver to find out.
cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to) {
    const auto plain = [](CUmemorytype type) {
        return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE;
    };
    if (!plain(from) || !plain(to)) {
        return cudaMemcpyDefault;
    }
    if (from == CU_MEMORYTYPE_HOST) {
        return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    }
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

}  // namespace

cudaError_t runtime_copy(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* parameters) {
    *parameters = {};
    size_t width_unit = 1;
    const bool arrays =
        copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
    if (arrays) {
        const auto array = reinterpret_cast<cudaArray_const_t>(
            copy.srcMemoryType == CU_MEMORYTYPE_ARRAY ? copy.srcArray : copy.dstArray);
        const cudaError_t error = element_bytes(array, &width_unit);
        if (error != cudaSuccess) {
            return error;
        }
    }
    if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
        parameters->srcArray = reinterpret_cast<cudaArray_t>(copy.srcArray);
        parameters->srcPos.x = copy.srcXInBytes / width_unit;
    } else {
        void* pointer = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                            ? const_cast<void*>(copy.srcHost)
                            : reinterpret_cast<void*>(copy.srcDevice);
        parameters->srcPtr = {pointer, copy.srcPitch, copy.WidthInBytes, copy.srcHeight};
        parameters->srcPos.x = copy.srcXInBytes;
    }
    if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        parameters->dstArray = reinterpret_cast<cudaArray_t>(copy.dstArray);
        parameters->dstPos.x = copy.dstXInBytes / width_unit;
    } else {
        void* pointer = copy.dstMemoryType == CU_MEMORYTYPE_HOST
                            ? copy.dstHost
                            : reinterpret_cast<void*>(copy.dstDevice);
        parameters->dstPtr = {pointer, copy.dstPitch, copy.WidthInBytes, copy.dstHeight};
        parameters->dstPos.x = copy.dstXInBytes;
    }
    parameters->srcPos.y = copy.srcY;
    parameters->srcPos.z = copy.srcZ;
    parameters->dstPos.y = copy.dstY;
    parameters->dstPos.z = copy.dstZ;
    parameters->extent = {copy.WidthInBytes / width_unit, copy.Height, copy.Depth};
    parameters->kind = kind_of(copy.srcMemoryType, copy.dstMemoryType);
    return cudaSuccess;
}

}  // namespace libswap::simgpu::cudart

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, nullptr, false);
}

cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind) {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, nullptr, true);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, &stream, false);
}

cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, &stream, true);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x_bytes, size_t y, const void* from,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
    return copy_2d_to_array(to, x_bytes, y, from, pitch, width, height, kind, nullptr, false);
}

cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t to, size_t x_bytes, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind) {
    return copy_2d_to_array(to, x_bytes, y, from, pitch, width, height, kind, nullptr, true);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x_bytes, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
    return copy_2d_to_array(to, x_bytes, y, from, pitch, width, height, kind, &stream, false);
}

cudaError_t cudaMemcpy2DToArrayAsync_ptsz(cudaArray_t to, size_t x_bytes, size_t y,
                                          const void* from, size_t pitch, size_t width,
                                          size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d_to_array(to, x_bytes, y, from, pitch, width, height, kind, &stream, true);
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x_bytes,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
    return copy_2d_from_array(to, pitch, from, x_bytes, y, width, height, kind, nullptr, false);
}

cudaError_t cudaMemcpy2DFromArray_ptds(void* to, size_t pitch, cudaArray_const_t from,
                                       size_t x_bytes, size_t y, size_t width, size_t height,
                                       cudaMemcpyKind kind) {
    return copy_2d_from_array(to, pitch, from, x_bytes, y, width, height, kind, nullptr, true);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from,
                                       size_t x_bytes, size_t y, size_t width, size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d_from_array(to, pitch, from, x_bytes, y, width, height, kind, &stream, false);
}

cudaError_t cudaMemcpy2DFromArrayAsync_ptsz(void* to, size_t pitch, cudaArray_const_t from,
                                            size_t x_bytes, size_t y, size_t width, size_t height,
                                            cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d_from_array(to, pitch, from, x_bytes, y, width, height, kind, &stream, true);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, cudaMemcpyKind) {
    return copy_2d_arrays(to, to_x, to_y, from, from_x, from_y, width, height, false);
}

cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t to, size_t to_x, size_t to_y,
                                          cudaArray_const_t from, size_t from_x, size_t from_y,
                                          size_t width, size_t height, cudaMemcpyKind) {
    return copy_2d_arrays(to, to_x, to_y, from, from_x, from_y, width, height, true);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
    return copy_3d(parameters, nullptr, false);
}

cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* parameters) {
    return copy_3d(parameters, nullptr, true);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
    return copy_3d(parameters, &stream, false);
}

cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
    return copy_3d(parameters, &stream, true);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters) {
    return copy_3d_peer(parameters, nullptr, false);
}

cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* parameters) {
    return copy_3d_peer(parameters, nullptr, true);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
    return copy_3d_peer(parameters, &stream, false);
}

cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* parameters,
                                       cudaStream_t stream) {
    return copy_3d_peer(parameters, &stream, true);
}
