// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream-ordered allocation and memory pools, as programs see them.

#include "runtime/engine_impl.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// What is allocated or freed there is ours to order: the stream exists, and is not captured.
bool orders_here(const Driver& driver, Device& device, CUcontext context, CUstream stream) {
    if (!device.capturing() && (is_special(stream) || device.streams().knows(context, stream)))
        return true;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/// Adds our part to an amount that the driver told of its own.
void add_our_amounts(const Pool& pool, CUmemPool_attribute attribute, void* value) noexcept {
    const auto add = [&](const Counters::Count& count) {
        *static_cast<cuuint64_t*>(value) += count.load();
    };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            return add(pool.used_bytes);
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            return add(pool.used_high);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            return add(pool.reserved_bytes);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            return add(pool.reserved_high);
        default:
            return;
    }
}

/// The driver has taken this value.
void follow_setting(Pool& pool, CUmemPool_attribute attribute, const void* value) noexcept {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            pool.follows_events.store(*static_cast<const int*>(value) != 0);
            return;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            pool.opportunistic.store(*static_cast<const int*>(value) != 0);
            return;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            pool.release_threshold.store(*static_cast<const cuuint64_t*>(value));
            return;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            pool.used_high.store(pool.used_bytes.load());
            return;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            pool.reserved_high.store(pool.reserved_bytes.load());
            return;
        default:
            return;
    }
}

}  // namespace

CUresult Engine::mem_alloc_async(CUdeviceptr* ptr, std::size_t bytes, const CUmemoryPool* from,
                                 CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        if (!ptr || bytes == 0) return real();
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, true);
        if (!device) return real();
        // Captured, it becomes a node of the graph, and the memory is the graph's.
        const bool ordered = orders_here(impl_->driver, *device, context, stream);
        Pool* pool = nullptr;
        if (ordered)
            pool = from ? impl_->pools.find(*from) : impl_->pools.current(device->ordinal());
        if (pool && pool->ours && pool->device == device->ordinal()) {
            const CUresult result = device->pool_alloc(ptr, bytes, context, stream, *pool);
            if (result != CUDA_ERROR_NOT_READY) return result;
            Counters::add(device->counters().fallbacks);
        }
        const CUresult result = impl_->with_room(device, bytes, real);
        const bool on_host = pool && pool->on_host;
        if (result == CUDA_SUCCESS && ordered)
            real_allocated(*ptr, bytes, on_host ? MemoryPlace::Host : MemoryPlace::Device);
        return result;
    });
}

CUresult Engine::mem_free_async(CUdeviceptr ptr, CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        Device* const owner = impl_->owner(ptr);
        if (!owner) {
            const CUresult result = real();
            if (result == CUDA_SUCCESS) real_freed(ptr);
            return result;
        }
        CUcontext context = nullptr;
        (void)impl_->current(&context, false);
        // The driver's own answer: the stream does not exist, or is captured, where only memory of
        // graphs may be freed.
        if (!context || !orders_here(impl_->driver, *owner, context, stream)) return real();
        return owner->pool_free(ptr, context, stream);
    });
}

CUresult Engine::pool_create(CUmemoryPool* pool, const CUmemPoolProps* properties,
                             RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        if (result == CUDA_SUCCESS && pool && properties) impl_->pools.created(*pool, *properties);
        return result;
    });
}

CUresult Engine::pool_destroy(CUmemoryPool handle, RealCall real) noexcept {
    return guarded([&] {
        Pool* pool = impl_->pools.find(handle);
        const CUresult result = real();
        if (result != CUDA_SUCCESS || !pool) return result;
        impl_->pools.destroyed(handle);
        // What was freed goes as streams pass the frees; what lives stays good until it is freed.
        pool->release_threshold.store(0);
        if (Device* device = impl_->device(pool->device)) device->trim_pool(*pool, 0);
        return result;
    });
}

CUresult Engine::pool_trim(CUmemoryPool handle, std::size_t keep_bytes, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        Pool* pool = result == CUDA_SUCCESS ? impl_->pools.find(handle) : nullptr;
        if (!pool) return result;
        if (Device* device = impl_->device(pool->device)) device->trim_pool(*pool, keep_bytes);
        return result;
    });
}

CUresult Engine::pool_get_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value,
                                    RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        Pool* pool = result == CUDA_SUCCESS ? impl_->pools.find(handle) : nullptr;
        if (pool && value) add_our_amounts(*pool, attribute, value);
        return result;
    });
}

CUresult Engine::pool_set_attribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                    const void* value, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        Pool* pool = result == CUDA_SUCCESS ? impl_->pools.find(handle) : nullptr;
        if (pool && value) follow_setting(*pool, attribute, value);
        return result;
    });
}

CUresult Engine::pool_set_access(CUmemoryPool handle, const CUmemAccessDesc* access,
                                 std::size_t count, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        Pool* pool = result == CUDA_SUCCESS ? impl_->pools.find(handle) : nullptr;
        Device* device = pool && pool->ours ? impl_->device(pool->device) : nullptr;
        if (!device || !access) return result;
        // Taken away again, access stays: that a program relies on a fault is not to be expected.
        for (std::size_t i = 0; i < count; ++i)
            if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                device->add_peer(access[i].location.id);
        return result;
    });
}

CUresult Engine::pool_export_pointer(CUdeviceptr ptr, RealCall real) noexcept {
    // Pools that we serve are not shareable, and the driver refuses their memory as well.
    return guarded([&] { return impl_->owner(ptr) ? CUDA_ERROR_INVALID_VALUE : real(); });
}

CUresult Engine::set_current_pool(RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        impl_->pools.current_changed();
        return result;
    });
}

}  // namespace libswap
