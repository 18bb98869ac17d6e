// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects. The structures differ from the driver's in how they name formats and
// flags; the values of the enumerations are the same.

#include <cstring>

#include "simgpu/cudart/channel.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC));

cudaError_t driver_resource(const cudaResourceDesc& given, CUDA_RESOURCE_DESC* out) {
    *out = {};
    out->resType = static_cast<CUresourcetype>(given.resType);
    out->flags = given.flags;
    ArrayFormat format{};
    cudaError_t error = cudaSuccess;
    switch (given.resType) {
        case cudaResourceTypeArray:
            out->res.array.hArray = reinterpret_cast<CUarray>(given.res.array.array);
            break;
        case cudaResourceTypeMipmappedArray:
            out->res.mipmap.hMipmappedArray =
                reinterpret_cast<CUmipmappedArray>(given.res.mipmap.mipmap);
            break;
        case cudaResourceTypeLinear:
            error = driver_format(given.res.linear.desc, &format);
            out->res.linear = {device_pointer(given.res.linear.devPtr), format.format,
                               format.channels, given.res.linear.sizeInBytes};
            break;
        case cudaResourceTypePitch2D:
            error = driver_format(given.res.pitch2D.desc, &format);
            out->res.pitch2D = {device_pointer(given.res.pitch2D.devPtr),
                                format.format,
                                format.channels,
                                given.res.pitch2D.width,
                                given.res.pitch2D.height,
                                given.res.pitch2D.pitchInBytes};
            break;
        default:
            return cudaErrorInvalidValue;
    }
    return error;
}

void runtime_resource(const CUDA_RESOURCE_DESC& given, cudaResourceDesc* out) {
    *out = {};
    out->resType = static_cast<cudaResourceType>(given.resType);
    out->flags = given.flags;
    if (given.resType == CU_RESOURCE_TYPE_ARRAY) {
        out->res.array.array = reinterpret_cast<cudaArray_t>(given.res.array.hArray);
    } else if (given.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
        out->res.mipmap.mipmap =
            reinterpret_cast<cudaMipmappedArray_t>(given.res.mipmap.hMipmappedArray);
    } else if (given.resType == CU_RESOURCE_TYPE_LINEAR) {
        const auto& linear = given.res.linear;
        out->res.linear = {reinterpret_cast<void*>(linear.devPtr),
                           runtime_channel({linear.format, linear.numChannels}),
                           linear.sizeInBytes};
    } else {
        const auto& pitched = given.res.pitch2D;
        out->res.pitch2D = {reinterpret_cast<void*>(pitched.devPtr),
                            runtime_channel({pitched.format, pitched.numChannels}), pitched.width,
                            pitched.height, pitched.pitchInBytes};
    }
}

CUDA_TEXTURE_DESC driver_texture(const cudaTextureDesc& given) {
    CUDA_TEXTURE_DESC out{};
    for (int i = 0; i < 3; ++i) {
        out.addressMode[i] = static_cast<CUaddress_mode>(given.addressMode[i]);
    }
    out.filterMode = static_cast<CUfilter_mode>(given.filterMode);
    out.flags =
        (given.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0U) |
        (given.normalizedCoords != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0U) |
        (given.sRGB != 0 ? CU_TRSF_SRGB : 0U) |
        (given.disableTrilinearOptimization != 0 ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0U) |
        (given.seamlessCubemap != 0 ? CU_TRSF_SEAMLESS_CUBEMAP : 0U);
    out.maxAnisotropy = given.maxAnisotropy;
    out.mipmapFilterMode = static_cast<CUfilter_mode>(given.mipmapFilterMode);
    out.mipmapLevelBias = given.mipmapLevelBias;
    out.minMipmapLevelClamp = given.minMipmapLevelClamp;
    out.maxMipmapLevelClamp = given.maxMipmapLevelClamp;
    std::memcpy(out.borderColor, given.borderColor, sizeof out.borderColor);
    return out;
}

cudaTextureDesc runtime_texture(const CUDA_TEXTURE_DESC& given) {
    cudaTextureDesc out{};
    const auto flag = [&](unsigned which) { return (given.flags & which) != 0 ? 1 : 0; };
    for (int i = 0; i < 3; ++i) {
        out.addressMode[i] = static_cast<cudaTextureAddressMode>(given.addressMode[i]);
    }
    out.filterMode = static_cast<cudaTextureFilterMode>(given.filterMode);
    out.readMode =
        flag(CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    out.normalizedCoords = flag(CU_TRSF_NORMALIZED_COORDINATES);
    out.sRGB = flag(CU_TRSF_SRGB);
    out.disableTrilinearOptimization = flag(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
    out.seamlessCubemap = flag(CU_TRSF_SEAMLESS_CUBEMAP);
    out.maxAnisotropy = given.maxAnisotropy;
    out.mipmapFilterMode = static_cast<cudaTextureFilterMode>(given.mipmapFilterMode);
    out.mipmapLevelBias = given.mipmapLevelBias;
    out.minMipmapLevelClamp = given.minMipmapLevelClamp;
    out.maxMipmapLevelClamp = given.maxMipmapLevelClamp;
    std::memcpy(out.borderColor, given.borderColor, sizeof out.borderColor);
    return out;
}

/// The format of the texels; arrays tell their own.
cudaError_t texel_format(const CUDA_RESOURCE_DESC& given, ArrayFormat* format) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    cudaError_t error = cudaSuccess;
    CUarray array = given.resType == CU_RESOURCE_TYPE_ARRAY ? given.res.array.hArray : nullptr;
    switch (given.resType) {
        case CU_RESOURCE_TYPE_LINEAR:
            *format = {given.res.linear.format, given.res.linear.numChannels};
            return cudaSuccess;
        case CU_RESOURCE_TYPE_PITCH2D:
            *format = {given.res.pitch2D.format, given.res.pitch2D.numChannels};
            return cudaSuccess;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            error = call(CUDART_DRIVER(cuMipmappedArrayGetLevel, 5000), &array,
                         given.res.mipmap.hMipmappedArray, 0U);
            break;
        default:
            break;
    }
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuArray3DGetDescriptor, 3020), &shape, array);
    }
    *format = {shape.Format, shape.NumChannels};
    return error;
}

/// The runtime alone refuses what no texture unit computes: parts of one from 32-bit integers, and
/// means of integers.
cudaError_t check_reads(const CUDA_RESOURCE_DESC& resource, const cudaTextureDesc& texture) {
    ArrayFormat format{};
    const cudaError_t error = texel_format(resource, &format);
    if (error != cudaSuccess) {
        return error;
    }
    const bool floats = format.format == CU_AD_FORMAT_FLOAT || format.format == CU_AD_FORMAT_HALF;
    const bool words =
        format.format == CU_AD_FORMAT_UNSIGNED_INT32 || format.format == CU_AD_FORMAT_SIGNED_INT32;
    const bool parts_of_one = texture.readMode == cudaReadModeNormalizedFloat;
    if (words && parts_of_one) {
        return cudaErrorInvalidNormSetting;
    }
    if (!floats && !parts_of_one && texture.filterMode == cudaFilterModeLinear) {
        return cudaErrorInvalidFilterSetting;
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view) {
    return on_context([&] {
        CUDA_RESOURCE_DESC of{};
        cudaError_t error = resource == nullptr || texture == nullptr
                                ? cudaErrorInvalidValue
                                : driver_resource(*resource, &of);
        // A view has a format of its own.
        if (error == cudaSuccess && view == nullptr) {
            error = check_reads(of, *texture);
        }
        if (error != cudaSuccess) {
            return error;
        }
        const CUDA_TEXTURE_DESC how = driver_texture(*texture);
        return call(CUDART_DRIVER(cuTexObjectCreate, 5000), object, &of, &how,
                    reinterpret_cast<const CUDA_RESOURCE_VIEW_DESC*>(view));
    });
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
    return on_context([&] { return call(CUDART_DRIVER(cuTexObjectDestroy, 5000), object); });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* out, cudaTextureObject_t object) {
    return on_context([&] {
        CUDA_RESOURCE_DESC told{};
        const cudaError_t error =
            out == nullptr ? cudaErrorInvalidValue
                           : call(CUDART_DRIVER(cuTexObjectGetResourceDesc, 5000), &told, object);
        if (error == cudaSuccess) {
            runtime_resource(told, out);
        }
        return error;
    });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* out, cudaTextureObject_t object) {
    return on_context([&] {
        CUDA_TEXTURE_DESC told{};
        const cudaError_t error =
            out == nullptr ? cudaErrorInvalidValue
                           : call(CUDART_DRIVER(cuTexObjectGetTextureDesc, 5000), &told, object);
        if (error == cudaSuccess) {
            *out = runtime_texture(told);
        }
        return error;
    });
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* out,
                                                 cudaTextureObject_t object) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuTexObjectGetResourceViewDesc, 5000),
                    reinterpret_cast<CUDA_RESOURCE_VIEW_DESC*>(out), object);
    });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
    return on_context([&] {
        CUDA_RESOURCE_DESC of{};
        const cudaError_t error =
            resource == nullptr ? cudaErrorInvalidValue : driver_resource(*resource, &of);
        return error == cudaSuccess ? call(CUDART_DRIVER(cuSurfObjectCreate, 5000), object, &of)
                                    : error;
    });
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
    return on_context([&] { return call(CUDART_DRIVER(cuSurfObjectDestroy, 5000), object); });
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* out, cudaSurfaceObject_t object) {
    return on_context([&] {
        CUDA_RESOURCE_DESC told{};
        const cudaError_t error =
            out == nullptr ? cudaErrorInvalidValue
                           : call(CUDART_DRIVER(cuSurfObjectGetResourceDesc, 5000), &told, object);
        if (error == cudaSuccess) {
            runtime_resource(told, out);
        }
        return error;
    });
}
