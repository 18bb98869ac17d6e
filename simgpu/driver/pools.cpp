// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/pools.hpp"

#include <vector>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

namespace {

/// All pools ever made, so that one that is destroyed while memory of it lives stays valid.
HandleTable<Pool>& all_pools() {
    static auto* table = new HandleTable<Pool>;  // leaked: calls may come after static destructors
    return *table;
}

/// Pools that handles may name.
HandleTable<Pool>& live_pools() {
    static auto* table = new HandleTable<Pool>;  // leaked likewise
    return *table;
}

void raise(std::atomic<std::uint64_t>& high, std::uint64_t value) {
    std::uint64_t seen = high.load();
    while (seen < value && !high.compare_exchange_weak(seen, value)) {
    }
}

}  // namespace

CUresult Pool::allocate(CUdeviceptr* out, std::size_t bytes, const StreamRef& stream) {
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    reap(false);
    auto va = machine().memory().allocate(gpu_.ordinal, bytes);
    if (!va && va.error() == CUDA_ERROR_OUT_OF_MEMORY && gpu_.pools->give_back()) {
        va = machine().memory().allocate(gpu_.ordinal, bytes);
    }
    if (!va) return va.error();
    allocations().add({*va, bytes, Allocation::Kind::Pool, stream.context, this});
    raise(used_high_, used_ += bytes);
    raise(reserved_high_, reserved_ += bytes);
    *out = *va;
    return CUDA_SUCCESS;
}

CUresult Pool::free_async(CUdeviceptr va, const StreamRef& stream) {
    auto passed = stream.context->device().create_event(CU_EVENT_DISABLE_TIMING);
    SIMGPU_TRY(stream.stream->record(*passed));
    auto allocation = allocations().take(va);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    used_ -= allocation->bytes;
    std::lock_guard lock(mutex_);
    freed_.push_back({va, allocation->bytes, std::move(passed)});
    return CUDA_SUCCESS;
}

CUresult Pool::free_now(CUdeviceptr va) {
    auto allocation = allocations().take(va);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    used_ -= allocation->bytes;
    give_back({va, allocation->bytes, nullptr});
    return CUDA_SUCCESS;
}

void Pool::give_back(const Freed& freed) {
    static_cast<void>(machine().memory().free(freed.va));
    reserved_ -= freed.bytes;
}

bool Pool::reap(bool wait) {
    // Moved out, so that no lock is held while waiting.
    std::deque<Freed> candidates;
    {
        std::lock_guard lock(mutex_);
        candidates.swap(freed_);
    }
    std::deque<Freed> kept;
    bool any = false;
    for (Freed& freed : candidates) {
        CUresult status = wait ? freed.passed->synchronize() : freed.passed->query();
        if (status == CUDA_ERROR_NOT_READY) {
            kept.push_back(std::move(freed));
        } else {
            give_back(freed);
            any = true;
        }
    }
    if (!kept.empty()) {
        std::lock_guard lock(mutex_);
        for (Freed& freed : kept) freed_.push_back(std::move(freed));
    }
    return any;
}

CUresult Pool::get(CUmemPool_attribute attribute, void* value) const {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            *static_cast<int*>(value) = follow_events_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            *static_cast<int*>(value) = opportunistic_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            *static_cast<int*>(value) = internal_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            *static_cast<cuuint64_t*>(value) = threshold_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            *static_cast<cuuint64_t*>(value) = reserved_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            *static_cast<cuuint64_t*>(value) = reserved_high_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            *static_cast<cuuint64_t*>(value) = used_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            *static_cast<cuuint64_t*>(value) = used_high_;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult Pool::set(CUmemPool_attribute attribute, const void* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            follow_events_ = *static_cast<const int*>(value);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            opportunistic_ = *static_cast<const int*>(value);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            internal_ = *static_cast<const int*>(value);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            threshold_ = *static_cast<const cuuint64_t*>(value);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            // High marks may only be set back.
            if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
            if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
                used_high_ = used_.load();
            } else {
                reserved_high_ = reserved_.load();
            }
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

Pools::Pools(Gpu& gpu)
    : gpu_(gpu), default_(std::make_shared<Pool>(gpu, true)), current_(default_.get()) {
    all_pools().add(default_);
    live_pools().add(default_);
}

CUresult Pools::create(CUmemoryPool* out) {
    auto pool = std::make_shared<Pool>(gpu_, false);
    *out = reinterpret_cast<CUmemoryPool>(pool.get());
    all_pools().add(pool);
    live_pools().add(pool);
    return CUDA_SUCCESS;
}

std::shared_ptr<Pool> Pools::find(CUmemoryPool handle) { return live_pools().find(handle); }

CUresult Pools::destroy(CUmemoryPool handle) {
    auto pool = find(handle);
    if (pool == nullptr || pool->is_default()) return CUDA_ERROR_INVALID_VALUE;
    live_pools().remove(handle);
    Pools& pools = *pool->gpu().pools;
    if (&pools.current() == pool.get()) pools.set_current(pools.standard());
    return CUDA_SUCCESS;
}

void Pools::reap() {
    for (const auto& pool : all_pools().all()) {
        if (&pool->gpu() == &gpu_) pool->reap(false);
    }
}

bool Pools::give_back() {
    bool any = false;
    for (const auto& pool : all_pools().all()) {
        if (&pool->gpu() == &gpu_) any |= pool->reap(true);
    }
    return any;
}

namespace {

CUresult allocate_async(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, bool from_pool,
                        CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    SIMGPU_TRY(find_stream(stream, default_stream, ref));
    if (!from_pool) return ref.context->gpu.pools->current().allocate(out, bytes, ref);
    auto found = Pools::find(pool);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return found->allocate(out, bytes, ref);
}

CUresult free_async(CUdeviceptr va, CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    SIMGPU_TRY(find_stream(stream, default_stream, ref));
    auto allocation = allocations().at(va);
    if (!allocation || !allocation->on_device()) return CUDA_ERROR_INVALID_VALUE;
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
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Gpu* gpu = nullptr;
    SIMGPU_TRY(find_gpu(properties->location.id, gpu));
    return gpu->pools->create(out);
}

CUresult find_pool(CUmemoryPool handle, std::shared_ptr<Pool>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = Pools::find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTSZ(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream), {
    return driver::allocate_async(out, bytes, nullptr, false, stream, default_stream);
})
SIMGPU_CALL_PTSZ(cuMemAllocFromPoolAsync,
                 (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
                 { return driver::allocate_async(out, bytes, pool, true, stream, default_stream); })
SIMGPU_CALL_PTSZ(cuMemFreeAsync, (CUdeviceptr va, CUstream stream),
                 { return driver::free_async(va, stream, default_stream); })
SIMGPU_CALL(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps* properties),
            { return driver::create_pool(out, properties); })
SIMGPU_CALL(cuMemPoolDestroy, (CUmemoryPool pool), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return driver::Pools::destroy(pool);
})
SIMGPU_CALL(cuMemPoolTrimTo, (CUmemoryPool handle, size_t), {
    std::shared_ptr<driver::Pool> pool;
    SIMGPU_TRY(driver::find_pool(handle, pool));
    pool->reap(false);
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuMemPoolGetAttribute,
            (CUmemoryPool handle, CUmemPool_attribute attribute, void* value), {
                std::shared_ptr<driver::Pool> pool;
                SIMGPU_TRY(driver::find_pool(handle, pool));
                pool->reap(false);
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
                if (flags == nullptr || location == nullptr ||
                    location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
                    return CUDA_ERROR_INVALID_VALUE;
                }
                *flags = location->id == pool->gpu().ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                             : CU_MEM_ACCESS_FLAGS_PROT_NONE;
                return CUDA_SUCCESS;
            })
SIMGPU_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device),
            { return driver::pool_of_device(out, device, false); })
SIMGPU_CALL(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice device),
            { return driver::pool_of_device(out, device, true); })
SIMGPU_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool handle), {
    driver::Gpu* gpu = nullptr;
    std::shared_ptr<driver::Pool> pool;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    SIMGPU_TRY(driver::find_pool(handle, pool));
    if (&pool->gpu() != gpu) return CUDA_ERROR_INVALID_VALUE;
    gpu->pools->set_current(*pool);
    return CUDA_SUCCESS;
})
