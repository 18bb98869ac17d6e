// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream-ordered allocation.

#include "simgpu/cudart/allocation_note.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

CUmemoryPool driver_pool(cudaMemPool_t pool) { return reinterpret_cast<CUmemoryPool>(pool); }

CUmemoryPool* driver_pool(cudaMemPool_t* pool) { return reinterpret_cast<CUmemoryPool*>(pool); }

cudaError_t allocate(void** pointer, size_t bytes, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return noted(pointer, bytes,
                     call(CUDART_DRIVER_ON(per_thread, cuMemAllocAsync, 11020, 11020),
                          reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream));
    });
}

cudaError_t allocate_from(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                          bool per_thread) {
    return on_context([&] {
        return noted(
            pointer, bytes,
            call(CUDART_DRIVER_ON(per_thread, cuMemAllocFromPoolAsync, 11020, 11020),
                 reinterpret_cast<CUdeviceptr*>(pointer), bytes, driver_pool(pool), stream));
    });
}

cudaError_t release(void* pointer, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        note_allocation(pointer, 0);
        return call(CUDART_DRIVER_ON(per_thread, cuMemFreeAsync, 11020, 11020),
                    device_pointer(pointer), stream);
    });
}

}  // namespace

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
    return allocate(pointer, bytes, stream, false);
}

cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
    return allocate(pointer, bytes, stream, true);
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    return allocate_from(pointer, bytes, pool, stream, false);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
    return allocate_from(pointer, bytes, pool, stream, true);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    return release(pointer, stream, false);
}

cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
    return release(pointer, stream, true);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuDeviceGetDefaultMemPool, 11020), driver_pool(pool), device);
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuDeviceGetMemPool, 11020), driver_pool(pool), device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuDeviceSetMemPool, 11020), device, driver_pool(pool)); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolCreate, 11020), driver_pool(pool),
                    reinterpret_cast<const CUmemPoolProps*>(properties));
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuMemPoolDestroy, 11020), driver_pool(pool)); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuMemPoolTrimTo, 11020), driver_pool(pool), keep_bytes); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolSetAttribute, 11020), driver_pool(pool),
                    static_cast<CUmemPool_attribute>(attribute), value);
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolGetAttribute, 11020), driver_pool(pool),
                    static_cast<CUmemPool_attribute>(attribute), value);
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolSetAccess, 11020), driver_pool(pool),
                    reinterpret_cast<const CUmemAccessDesc*>(access), count);
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolGetAccess, 11020),
                    reinterpret_cast<CUmemAccess_flags*>(flags), driver_pool(pool),
                    reinterpret_cast<CUmemLocation*>(location));
    });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
    return on_context([&] {
        return call(
            CUDART_DRIVER(cuMemGetDefaultMemPool, 13000), reinterpret_cast<CUmemoryPool*>(pool),
            reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type));
    });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                              cudaMemAllocationType type) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemGetMemPool, 13000), reinterpret_cast<CUmemoryPool*>(pool),
                    reinterpret_cast<CUmemLocation*>(location),
                    static_cast<CUmemAllocationType>(type));
    });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                              cudaMemPool_t pool) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemSetMemPool, 13000),
                    reinterpret_cast<CUmemLocation*>(location),
                    static_cast<CUmemAllocationType>(type), driver_pool(pool));
    });
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type, unsigned flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolExportToShareableHandle, 11020), handle,
                    driver_pool(pool), static_cast<CUmemAllocationHandleType>(type), flags);
    });
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type, unsigned flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolImportFromShareableHandle, 11020),
                    reinterpret_cast<CUmemoryPool*>(pool), handle,
                    static_cast<CUmemAllocationHandleType>(type), flags);
    });
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolExportPointer, 11020),
                    reinterpret_cast<CUmemPoolPtrExportData*>(data), device_pointer(pointer));
    });
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData* data) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemPoolImportPointer, 11020),
                    reinterpret_cast<CUdeviceptr*>(pointer), driver_pool(pool),
                    reinterpret_cast<CUmemPoolPtrExportData*>(data));
    });
}
