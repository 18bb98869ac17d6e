// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Contexts and modules that come and go, and addresses that get out of sight.

namespace libswap {
namespace {

CUresult note_global(Engine& engine, CUresult result, const CUdeviceptr* address,
                     const size_t* bytes) noexcept {
    if (result == CUDA_SUCCESS && address) engine.module_global(*address, bytes ? *bytes : 0);
    return result;
}

CUresult for_good(Engine& engine, std::uint64_t address, RealCall real) noexcept {
    return engine.use_for_good(&address, 1, StayReason::Texture, real);
}

CUresult texture(Engine& engine, const CUDA_RESOURCE_DESC* resource, RealCall real) noexcept {
    if (resource && resource->resType == CU_RESOURCE_TYPE_LINEAR)
        return for_good(engine, resource->res.linear.devPtr, real);
    if (resource && resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        return for_good(engine, resource->res.pitch2D.devPtr, real);
    return real();
}

CUresult descriptor(Engine& engine, const CUtensorMap* map, const void* address,
                    RealCall real) noexcept {
    return engine.tensor_map(map, reinterpret_cast<std::uintptr_t>(address), real);
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK(cuCtxDestroy, (CUcontext context), (context),
             return engine.context_destroy(context, real);)
LIBSWAP_HOOK(cuCtxDestroy_v2, (CUcontext context), (context),
             return engine.context_destroy(context, real);)
LIBSWAP_HOOK(cuDevicePrimaryCtxReset, (CUdevice device), (device),
             return engine.primary_reset(device, real);)
LIBSWAP_HOOK(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device),
             return engine.primary_reset(device, real);)
LIBSWAP_HOOK(cuDevicePrimaryCtxRelease, (CUdevice device), (device),
             return engine.primary_release(device, real);)
LIBSWAP_HOOK(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device),
             return engine.primary_release(device, real);)

LIBSWAP_HOOK(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), (peer, flags),
             return engine.enable_peer(peer, real);)

LIBSWAP_HOOK(cuModuleUnload, (CUmodule module), (module), return engine.module_unload(real);)
LIBSWAP_HOOK(cuLibraryUnload, (CUlibrary library), (library), return engine.module_unload(real);)

LIBSWAP_HOOK(cuModuleGetGlobal_v2,
             (CUdeviceptr * address, size_t* bytes, CUmodule module, const char* name),
             (address, bytes, module, name), return note_global(engine, real(), address, bytes);)

LIBSWAP_HOOK(cuLibraryGetGlobal,
             (CUdeviceptr * address, size_t* bytes, CUlibrary library, const char* name),
             (address, bytes, library, name), return note_global(engine, real(), address, bytes);)

LIBSWAP_HOOK(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr address), (handle, address),
             return engine.ipc_get_mem_handle(handle, address, real);)

LIBSWAP_HOOK(cuMemGetHandleForAddressRange,
             (void* handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
              unsigned long long flags),
             (handle, address, bytes, type, flags),
             return engine.export_range(address, bytes, real);)

LIBSWAP_HOOK(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void* address),
             (handle, address),
             return engine.physical_retain(handle, reinterpret_cast<CUdeviceptr>(address), real);)

LIBSWAP_HOOK(cuMulticastBindAddr,
             (CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address, size_t bytes,
              unsigned long long flags),
             (handle, offset, address, bytes, flags),
             return engine.export_range(address, bytes, real);)

LIBSWAP_HOOK(cuTexObjectCreate,
             (CUtexObject * object, const CUDA_RESOURCE_DESC* resource,
              const CUDA_TEXTURE_DESC* sampling, const CUDA_RESOURCE_VIEW_DESC* view),
             (object, resource, sampling, view), return texture(engine, resource, real);)

LIBSWAP_HOOK(cuTexRefSetAddress_v2,
             (size_t * offset, CUtexref reference, CUdeviceptr address, size_t bytes),
             (offset, reference, address, bytes), return for_good(engine, address, real);)

LIBSWAP_HOOK(cuTexRefSetAddress2D_v2,
             (CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* shape, CUdeviceptr address,
              size_t pitch),
             (reference, shape, address, pitch), return for_good(engine, address, real);)

LIBSWAP_HOOK(cuTexRefSetAddress2D_v3,
             (CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* shape, CUdeviceptr address,
              size_t pitch),
             (reference, shape, address, pitch), return for_good(engine, address, real);)

LIBSWAP_HOOK(cuTensorMapEncodeTiled,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* address,
              const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
              const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
              CUtensorMapFloatOOBfill fill),
             (map, type, rank, address, dimensions, strides, box, element_strides, interleave,
              swizzle, promotion, fill),
             return descriptor(engine, map, address, real);)

LIBSWAP_HOOK(cuTensorMapEncodeIm2col,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* address,
              const cuuint64_t* dimensions, const cuuint64_t* strides, const int* lower,
              const int* upper, cuuint32_t channels, cuuint32_t pixels,
              const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
              CUtensorMapFloatOOBfill fill),
             (map, type, rank, address, dimensions, strides, lower, upper, channels, pixels,
              element_strides, interleave, swizzle, promotion, fill),
             return descriptor(engine, map, address, real);)

LIBSWAP_HOOK(cuTensorMapEncodeIm2colWide,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void* address,
              const cuuint64_t* dimensions, const cuuint64_t* strides, int lower, int upper,
              cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
              CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
              CUtensorMapFloatOOBfill fill),
             (map, type, rank, address, dimensions, strides, lower, upper, channels, pixels,
              element_strides, interleave, mode, swizzle, promotion, fill),
             return descriptor(engine, map, address, real);)

LIBSWAP_HOOK(cuTensorMapReplaceAddress, (CUtensorMap * map, void* address), (map, address),
             return descriptor(engine, map, address, real);)
