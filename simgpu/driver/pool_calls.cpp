// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream-ordered allocation.

#include <algorithm>
#include <iterator>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/graph/graph_memory.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {
namespace {

CUresult find_pool(CUmemoryPool handle, std::shared_ptr<Pool>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = Pools::find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult allocate_from(CUdeviceptr* out, std::size_t bytes, Pool& pool, const StreamRef& stream) {
    if (stream.capture == nullptr) return pool.allocate(out, bytes, stream);
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<GraphMemory> memory;
    SIMGPU_TRY(GraphMemory::create(*stream.context, pool.gpu(), bytes, {}, memory));
    *out = memory->va();
    return capture_task(stream, AllocTask{std::move(memory)});
}

CUresult allocate_async(CUdeviceptr* out, std::size_t bytes, CUstream stream,
                        DefaultStream default_stream) {
    StreamRef ref;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    return allocate_from(out, bytes, ref.context->gpu.pools->current(), ref);
}

CUresult allocate_from_pool(CUdeviceptr* out, std::size_t bytes, CUmemoryPool handle,
                            CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    std::shared_ptr<Pool> pool;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    SIMGPU_TRY(find_pool(handle, pool));
    return allocate_from(out, bytes, *pool, ref);
}

CUresult free_async(CUdeviceptr va, CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    if (ref.capture != nullptr) {
        SIMGPU_TRY(check_free_in_capture(ref, va));
        return capture_task(ref, FreeTask{va});
    }
    const auto allocation = allocations().at(va);
    if (!allocation || !allocation->on_device()) return CUDA_ERROR_INVALID_VALUE;
    if (allocation->kind == Allocation::Kind::Graph) return allocation->graph_memory->free();
    if (allocation->kind == Allocation::Kind::Device) {
        // Memory of cuMemAlloc may be freed here too: that waits.
        SIMGPU_TRY(ref->synchronize());
        return free_device_memory(va);
    }
    return allocation->pool->free_async(va, ref);
}

CUresult create_pool(CUmemoryPool* out, const CUmemPoolProps* properties) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || properties == nullptr ||
        properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto& reserved = properties->reserved;
    const bool clear = std::all_of(std::begin(reserved), std::end(reserved),
                                   [](unsigned char byte) { return byte == 0; });
    if (!clear) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Gpu* gpu = nullptr;
    SIMGPU_TRY(find_gpu(properties->location.id, gpu));
    return gpu->pools->create(*properties, out);
}

CUresult pool_of_device(CUmemoryPool* out, CUdevice device, bool current) {
    Gpu* gpu = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_gpu(device, gpu));
    Pool& pool = current ? gpu->pools->current() : gpu->pools->standard();
    *out = reinterpret_cast<CUmemoryPool>(&pool);
    return CUDA_SUCCESS;
}

CUresult set_pool(CUdevice device, CUmemoryPool handle) {
    Gpu* gpu = nullptr;
    std::shared_ptr<Pool> pool;
    SIMGPU_TRY(find_gpu(device, gpu));
    SIMGPU_TRY(find_pool(handle, pool));
    if (&pool->gpu() != gpu) return CUDA_ERROR_INVALID_VALUE;
    gpu->pools->set_current(*pool);
    return CUDA_SUCCESS;
}

/// The calls that name a place and a kind of memory; only devices have pools here.
CUresult device_of_location(const CUmemLocation* location, CUmemAllocationType type,
                            CUdevice& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool on_device =
        type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!on_device) return CUDA_ERROR_NOT_SUPPORTED;
    out = location->id;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTSZ(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream),
                 { return driver::allocate_async(out, bytes, stream, default_stream); })
SIMGPU_CALL_PTSZ(cuMemAllocFromPoolAsync,
                 (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
                 { return driver::allocate_from_pool(out, bytes, pool, stream, default_stream); })
SIMGPU_CALL_PTSZ(cuMemFreeAsync, (CUdeviceptr va, CUstream stream),
                 { return driver::free_async(va, stream, default_stream); })
SIMGPU_CALL(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps* properties),
            { return driver::create_pool(out, properties); })
SIMGPU_CALL(cuMemPoolDestroy, (CUmemoryPool pool), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return driver::Pools::destroy(pool);
})
SIMGPU_CALL(cuMemPoolTrimTo, (CUmemoryPool handle, size_t kept_bytes), {
    std::shared_ptr<driver::Pool> pool;
    SIMGPU_TRY(driver::find_pool(handle, pool));
    pool->release(kept_bytes, false);
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuMemPoolGetAttribute,
            (CUmemoryPool handle, CUmemPool_attribute attribute, void* value), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                return pool->get(attribute, value);
            })
SIMGPU_CALL(cuMemPoolSetAttribute,
            (CUmemoryPool handle, CUmemPool_attribute attribute, void* value), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                return pool->set(attribute, value);
            })
SIMGPU_CALL(cuMemPoolGetAccess,
            (CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation* location), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return pool->get_access(*location, *flags);
            })
SIMGPU_CALL(cuMemPoolSetAccess,
            (CUmemoryPool handle, const CUmemAccessDesc* descriptions, size_t count), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                if (descriptions == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
                return pool->set_access(descriptions, count);
            })
SIMGPU_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device),
            { return driver::pool_of_device(out, device, false); })
SIMGPU_CALL(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice device),
            { return driver::pool_of_device(out, device, true); })
SIMGPU_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool),
            { return driver::set_pool(device, pool); })
SIMGPU_CALL(cuMemGetDefaultMemPool,
            (CUmemoryPool * out, CUmemLocation* location, CUmemAllocationType type), {
                CUdevice device = 0;
                SIMGPU_TRY(driver::device_of_location(location, type, device));
                return driver::pool_of_device(out, device, false);
            })
SIMGPU_CALL(cuMemGetMemPool,
            (CUmemoryPool * out, CUmemLocation* location, CUmemAllocationType type), {
                CUdevice device = 0;
                SIMGPU_TRY(driver::device_of_location(location, type, device));
                return driver::pool_of_device(out, device, true);
            })
SIMGPU_CALL(cuMemSetMemPool,
            (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool), {
                CUdevice device = 0;
                SIMGPU_TRY(driver::device_of_location(location, type, device));
                return driver::set_pool(device, pool);
            })

// Pools are made without a kind of handle to share them by (cuMemPoolCreate): nothing to export.
SIMGPU_CALL(cuMemPoolExportToShareableHandle,
            (void*, CUmemoryPool handle, CUmemAllocationHandleType, unsigned long long), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                return CUDA_ERROR_INVALID_VALUE;
            })
SIMGPU_CALL(cuMemPoolExportPointer, (CUmemPoolPtrExportData*, CUdeviceptr), {
    return driver::initialised() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
})
