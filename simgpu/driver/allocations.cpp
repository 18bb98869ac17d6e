// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/allocations.hpp"

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/graph_memory.hpp"
#include "simgpu/driver/pools.hpp"
#include "simgpu/driver/program_ranges.hpp"
#include "simgpu/driver/range_hints.hpp"

namespace simgpu::driver {

void Allocations::add(const Allocation& allocation) {
    forget_program_ranges(allocation.base, allocation.bytes);
    std::lock_guard lock(mutex_);
    by_base_[allocation.base] = allocation;
}

std::optional<Allocation> Allocations::take(std::uint64_t base) {
    std::lock_guard lock(mutex_);
    auto it = by_base_.find(base);
    if (it == by_base_.end()) return std::nullopt;
    Allocation found = it->second;
    by_base_.erase(it);
    return found;
}

std::optional<Allocation> Allocations::at(std::uint64_t base) const {
    std::lock_guard lock(mutex_);
    auto it = by_base_.find(base);
    if (it == by_base_.end()) return std::nullopt;
    return it->second;
}

std::optional<Allocation> Allocations::containing(std::uint64_t va) const {
    std::lock_guard lock(mutex_);
    auto it = by_base_.upper_bound(va);
    if (it == by_base_.begin()) return std::nullopt;
    --it;
    if (va - it->first >= it->second.bytes) return std::nullopt;
    return it->second;
}

bool Allocations::set_sync_memops(std::uint64_t va, bool value) {
    std::lock_guard lock(mutex_);
    auto it = by_base_.upper_bound(va);
    if (it == by_base_.begin()) return false;
    --it;
    if (va - it->first >= it->second.bytes) return false;
    it->second.sync_memops = value;
    return true;
}

std::vector<Allocation> Allocations::of_context(const Context& context) const {
    std::lock_guard lock(mutex_);
    std::vector<Allocation> found;
    for (const auto& [base, allocation] : by_base_) {
        if (allocation.context == &context) found.push_back(allocation);
    }
    return found;
}

Allocations& allocations() {
    static auto* table = new Allocations;  // leaked: calls may come after static destructors
    return *table;
}

CUresult free_device_memory(CUdeviceptr va) {
    auto allocation = allocations().at(va);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    switch (allocation->kind) {
        case Allocation::Kind::Device:
            // Taken out first: the address may be handed out again as soon as it is free.
            allocations().take(va);
            return machine().free(va);
        case Allocation::Kind::Managed:
            static_cast<void>(allocation->context->device().synchronize());
            allocations().take(va);
            range_hints().forget(va, allocation->bytes);
            return machine().host_free(reinterpret_cast<void*>(va));
        case Allocation::Kind::Pool:
            static_cast<void>(allocation->context->device().synchronize());
            return allocation->pool->free_now(va);
        case Allocation::Kind::Graph:
            static_cast<void>(allocation->context->device().synchronize());
            return allocation->graph_memory->free();
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult free_host_memory(void* pointer) {
    auto allocation = allocations().at(reinterpret_cast<std::uint64_t>(pointer));
    if (!allocation || allocation->kind != Allocation::Kind::HostPinned)
        return CUDA_ERROR_INVALID_VALUE;
    // The driver waits for work that may use the memory.
    static_cast<void>(allocation->context->device().synchronize());
    allocations().take(allocation->base);
    return machine().host_free(pointer);
}

void release_allocations_of(Context& context) {
    for (const Allocation& allocation : allocations().of_context(context)) {
        if (allocation.kind == Allocation::Kind::HostRegistered) {
            allocations().take(allocation.base);
            static_cast<void>(
                machine().memory().host_unregister(reinterpret_cast<void*>(allocation.base)));
        } else if (allocation.kind == Allocation::Kind::HostPinned) {
            static_cast<void>(free_host_memory(reinterpret_cast<void*>(allocation.base)));
        } else {
            static_cast<void>(free_device_memory(allocation.base));
        }
    }
}

}  // namespace simgpu::driver
