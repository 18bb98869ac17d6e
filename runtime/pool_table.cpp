// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/pool_table.hpp"

namespace libswap {

void Pool::count_use(std::uint64_t asked, std::uint64_t span) noexcept {
    Counters::add(used_bytes, asked);
    Counters::raise(used_high, used_bytes.load());
    Counters::add(reserved_bytes, span);
    Counters::raise(reserved_high, reserved_bytes.load());
}

Pool* PoolTable::add(CUmemoryPool handle, int device, bool ours) {
    auto pool = std::make_unique<Pool>();
    pool->handle = handle;
    pool->device = device;
    pool->ours = ours;
    std::lock_guard lock(mutex_);
    const auto [place, fresh] = live_.insert({handle, pool.get()});
    if (!fresh) return place->second;
    all_.push_back(std::move(pool));
    return all_.back().get();
}

void PoolTable::read_settings(Pool& pool) noexcept {
    if (!driver_.cuMemPoolGetAttribute) return;
    const auto flag = [&](CUmemPool_attribute attribute, std::atomic<bool>* out) {
        int value = 1;
        if (driver_.cuMemPoolGetAttribute(pool.handle, attribute, &value) == CUDA_SUCCESS)
            out->store(value != 0);
    };
    flag(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &pool.follows_events);
    flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &pool.opportunistic);
    cuuint64_t threshold = 0;
    if (driver_.cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
        CUDA_SUCCESS)
        pool.release_threshold.store(threshold);
}

Pool* PoolTable::find(CUmemoryPool handle) {
    if (!handle) return nullptr;
    {
        std::lock_guard lock(mutex_);
        if (const auto found = live_.find(handle); found != live_.end()) return found->second;
    }
    // Not made by a call that we saw: a device's own one, or from another process.
    int count = 0;
    if (!driver_.cuDeviceGetDefaultMemPool || driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return nullptr;
    for (int device = 0; device < count; ++device) {
        CUmemoryPool own = nullptr;
        if (driver_.cuDeviceGetDefaultMemPool(&own, device) != CUDA_SUCCESS || own != handle)
            continue;
        Pool* pool = add(handle, device, true);
        read_settings(*pool);
        return pool;
    }
    return nullptr;
}

Pool* PoolTable::current(int device) {
    if (device < 0 || device >= kMaxDevices) return nullptr;
    if (Pool* pool = current_[device].load(std::memory_order_acquire)) return pool;
    CUmemoryPool handle = nullptr;
    if (!driver_.cuDeviceGetMemPool || driver_.cuDeviceGetMemPool(&handle, device) != CUDA_SUCCESS)
        return nullptr;
    Pool* pool = find(handle);
    current_[device].store(pool, std::memory_order_release);
    return pool;
}

void PoolTable::created(CUmemoryPool handle, const CUmemPoolProps& properties) {
    // A `usage` may ask for memory of a special kind.
    const bool plain = properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                       properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                       properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                       properties.usage == 0;
    Pool* pool = add(handle, properties.location.id, plain);
    pool->on_host = properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    pool->max_bytes = properties.maxSize;
    read_settings(*pool);
}

void PoolTable::destroyed(CUmemoryPool handle) {
    {
        std::lock_guard lock(mutex_);
        live_.erase(handle);
    }
    current_changed();
}

void PoolTable::current_changed() noexcept {
    for (auto& pool : current_) pool.store(nullptr, std::memory_order_release);
}

}  // namespace libswap
