// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

#include "interposer/array_shapes.hpp"

// Memory that the driver gives the program itself, and calls for which it may take some for itself.

namespace libswap {
namespace {

constexpr auto kDevice = MemoryPlace::Device;
constexpr auto kManaged = MemoryPlace::Managed;
constexpr auto kHost = MemoryPlace::Host;

/// A call that allocates `bytes` of the device, known by `*key` afterwards.
template <class Key>
CUresult allocation(Engine& engine, const Key* key, std::size_t bytes, MemoryPlace place,
                    RealCall real) noexcept {
    static_assert(sizeof(Key) == sizeof(std::uint64_t));
    const CUresult result = engine.driver_allocates(bytes, real);
    if (result == CUDA_SUCCESS && key) {
        std::uint64_t value;
        __builtin_memcpy(&value, key, sizeof value);
        engine.real_allocated(value, bytes, place);
    }
    return result;
}

CUresult release(Engine& engine, const void* key, CUresult result) noexcept {
    if (result == CUDA_SUCCESS) engine.real_freed(reinterpret_cast<std::uintptr_t>(key));
    return result;
}

CUresult registration(Engine& engine, const void* address, std::size_t bytes,
                      CUresult result) noexcept {
    if (result == CUDA_SUCCESS)
        engine.real_allocated(reinterpret_cast<std::uintptr_t>(address), bytes, kHost);
    return result;
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags),
             (address, bytes, flags), return allocation(engine, address, bytes, kManaged, real);)

LIBSWAP_HOOK(cuMemAllocHost_v2, (void** address, size_t bytes), (address, bytes),
             return engine.host_alloc(address, bytes, real);)
LIBSWAP_HOOK(cuMemHostAlloc, (void** address, size_t bytes, unsigned flags),
             (address, bytes, flags), return engine.host_alloc(address, bytes, real);)
LIBSWAP_HOOK(cuMemFreeHost, (void* address), (address), return engine.host_free(address, real);)
LIBSWAP_HOOK(cuMemHostRegister, (void* address, size_t bytes, unsigned flags),
             (address, bytes, flags), return registration(engine, address, bytes, real());)
LIBSWAP_HOOK(cuMemHostRegister_v2, (void* address, size_t bytes, unsigned flags),
             (address, bytes, flags), return registration(engine, address, bytes, real());)
LIBSWAP_HOOK(cuMemHostUnregister, (void* address), (address),
             return engine.host_free(address, real);)

LIBSWAP_HOOK(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR* shape),
             (array, shape),
             return allocation(engine, array, shape ? array_bytes(*shape) : 0, kDevice, real);)
LIBSWAP_HOOK(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR* shape),
             (array, shape),
             return allocation(engine, array, shape ? array_bytes(*shape) : 0, kDevice, real);)
LIBSWAP_HOOK(cuArrayDestroy, (CUarray array), (array), return release(engine, array, real());)
LIBSWAP_HOOK(cuMipmappedArrayCreate,
             (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned levels),
             (array, shape, levels),
             return allocation(engine, array, shape ? mipmap_bytes(*shape, levels) : 0, kDevice,
                               real);)
LIBSWAP_HOOK(cuMipmappedArrayDestroy, (CUmipmappedArray array), (array),
             return release(engine, array, real());)

LIBSWAP_HOOK(cuMemCreate,
             (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp* what,
              unsigned long long flags),
             (handle, bytes, what, flags),
             return engine.physical_create(handle, bytes, what, real);)
LIBSWAP_HOOK(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle),
             return engine.physical_release(handle, real);)
LIBSWAP_HOOK(cuMemMap,
             (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
              unsigned long long flags),
             (address, bytes, offset, handle, flags),
             return engine.physical_map(address, handle, real);)
LIBSWAP_HOOK(cuMemUnmap, (CUdeviceptr address, size_t bytes), (address, bytes),
             return engine.physical_unmap(address, bytes, real);)

LIBSWAP_HOOK(cuModuleLoad, (CUmodule * module, const char* path), (module, path),
             return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuModuleLoadData, (CUmodule * module, const void* image), (module, image),
             return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuModuleLoadDataEx,
             (CUmodule * module, const void* image, unsigned count, CUjit_option* options,
              void** values),
             (module, image, count, options, values), return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuModuleLoadFatBinary, (CUmodule * module, const void* image), (module, image),
             return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuLibraryLoadData,
             (CUlibrary * library, const void* image, CUjit_option* jit_options, void** jit_values,
              unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
             (library, image, jit_options, jit_values, jit_count, options, values, count),
             return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuLibraryLoadFromFile,
             (CUlibrary * library, const char* path, CUjit_option* jit_options, void** jit_values,
              unsigned jit_count, CUlibraryOption* options, void** values, unsigned count),
             (library, path, jit_options, jit_values, jit_count, options, values, count),
             return engine.driver_allocates(0, real);)
LIBSWAP_HOOK(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value),
             return engine.driver_allocates(0, real);)
