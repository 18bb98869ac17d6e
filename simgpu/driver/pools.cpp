// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/pools.hpp"

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/graph_memory.hpp"
#include "simgpu/driver/handle_table.hpp"

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

}  // namespace

Pools::Pools(Gpu& gpu)
    : gpu_(gpu), default_(std::make_shared<Pool>(gpu, true, 0)), current_(default_.get()) {
    all_pools().add(default_);
    live_pools().add(default_);
}

CUresult Pools::create(const CUmemPoolProps& properties, CUmemoryPool* out) {
    auto pool = std::make_shared<Pool>(gpu_, false, properties.maxSize);
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
    pool->abandon();
    pool->release(0, false);
    return CUDA_SUCCESS;
}

bool Pools::give_back() {
    bool any = false;
    for (const auto& pool : all_pools().all()) {
        if (&pool->gpu() == &gpu_) any |= pool->release(0, true);
    }
    return any;
}

void release_after_wait() {
    if (Pool::all_bytes() == 0) return;
    for (const auto& pool : all_pools().all()) pool->release_above_threshold();
}

bool make_room(Gpu& gpu) {
    const bool pools = gpu.pools->give_back();
    return trim_graph_memory(gpu) || pools;
}

}  // namespace simgpu::driver
