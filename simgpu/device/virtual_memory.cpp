// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Virtual memory management: reservations, handles, mappings, access.

#include <sys/mman.h>

#include "simgpu/device/memory_state.hpp"

namespace simgpu {

Result<std::uint64_t> Memory::reserve(std::uint64_t bytes, std::uint64_t alignment,
                                      std::uint64_t hint) {
    if (!whole_pages(0, bytes)) return failed(CUDA_ERROR_INVALID_VALUE);
    if (alignment == 0) alignment = kPageBytes;
    if ((alignment & (alignment - 1)) != 0) return failed(CUDA_ERROR_INVALID_VALUE);
    if (alignment < kPageBytes) alignment = kPageBytes;
    State::Guard guard(*state_);
    auto& window = state_->window;
    const bool hint_fits = hint % alignment == 0 && window.contains(hint) &&
                           bytes <= window.base() + window.bytes() - hint &&
                           state_->is_free(hint, bytes);
    const std::uint64_t va = hint_fits ? hint : state_->find_space(bytes, alignment);
    if (va == 0) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    state_->ranges[va] = Range{bytes, RangeUse::Reservation, bytes, state_->next_buffer_id++};
    return va;
}

Status Memory::free_range(std::uint64_t va, std::uint64_t bytes) {
    State::Guard guard(*state_);
    const auto it = state_->ranges.find(va);
    if (it == state_->ranges.end() || it->second.use != RangeUse::Reservation ||
        it->second.bytes != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto mapping = state_->mappings.lower_bound(va);
    if (mapping != state_->mappings.end() && mapping->first < va + bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    state_->ranges.erase(it);
    return CUDA_SUCCESS;
}

Result<HandleId> Memory::create(std::uint64_t bytes, Location location) {
    if (!whole_pages(0, bytes)) return failed(CUDA_ERROR_INVALID_VALUE);
    const bool device = location.kind == Location::Kind::Device;
    if (device && (location.id < 0 || location.id >= state_->config.device_count)) {
        return failed(CUDA_ERROR_INVALID_DEVICE);
    }
    State::Guard guard(*state_);
    const auto physical = state_->store.create(bytes, location);
    if (physical == nullptr) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    physical->references = 1;
    return physical->id;
}

Status Memory::release(HandleId handle) {
    State::Guard guard(*state_);
    const auto physical = state_->store.find(handle);
    if (physical == nullptr || physical->references == 0) return CUDA_ERROR_INVALID_VALUE;
    --physical->references;
    state_->store.drop_if_unused(physical);
    return CUDA_SUCCESS;
}

Result<HandleId> Memory::retain(std::uint64_t va) {
    State::Guard guard(*state_);
    const auto range = state_->range_at(va);
    const auto it = state_->mapping_at(va);
    if (it == state_->mappings.end() || range->second.use != RangeUse::Reservation) {
        return failed(CUDA_ERROR_INVALID_VALUE);
    }
    ++it->second.physical->references;
    return it->second.physical->id;
}

Result<Memory::HandleInfo> Memory::handle_info(HandleId handle) const {
    State::Guard guard(*state_);
    const auto physical = state_->store.find(handle);
    if (physical == nullptr || physical->references == 0) return failed(CUDA_ERROR_INVALID_VALUE);
    return HandleInfo{physical->bytes, physical->location};
}

Status Memory::map(std::uint64_t va, std::uint64_t bytes, std::uint64_t offset, HandleId handle) {
    if (!whole_pages(va, bytes) || offset != 0) return CUDA_ERROR_INVALID_VALUE;
    State::Guard guard(*state_);
    const auto physical = state_->store.find(handle);
    if (physical == nullptr || physical->references == 0 || physical->bytes != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto range = state_->range_at(va);
    if (range == state_->ranges.end() || range->second.use != RangeUse::Reservation ||
        bytes > range->second.bytes - (va - range->first)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto next = state_->mappings.lower_bound(va);
    if (next != state_->mappings.end() && next->first < va + bytes) return CUDA_ERROR_INVALID_VALUE;
    if (state_->mapping_at(va) != state_->mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    return state_->attach(va, physical) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

Status Memory::unmap(std::uint64_t va, std::uint64_t bytes) {
    if (!whole_pages(va, bytes)) return CUDA_ERROR_INVALID_VALUE;
    State::Guard guard(*state_);
    const auto range = state_->range_at(va);
    if (range == state_->ranges.end() || range->second.use != RangeUse::Reservation ||
        !state_->covered_exactly(va, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::uint64_t at = va; at < va + bytes;) {
        const std::uint64_t step = state_->mappings.find(at)->second.bytes;
        state_->detach(at);
        at += step;
    }
    return CUDA_SUCCESS;
}

namespace {

bool is_host(const Location& location) { return location.kind != Location::Kind::Device; }

std::uint8_t access_bits(const AccessGrant& grant) {
    return static_cast<std::uint8_t>((grant.readable ? kPageRead : 0) |
                                     (grant.writable ? kPageWrite : 0));
}

int protection(const AccessGrant& grant) {
    return (grant.readable ? PROT_READ : PROT_NONE) | (grant.writable ? PROT_WRITE : PROT_NONE);
}

}  // namespace

Status Memory::set_access(std::uint64_t va, std::uint64_t bytes,
                          std::span<const AccessGrant> grants) {
    if (!whole_pages(va, bytes) || grants.empty()) return CUDA_ERROR_INVALID_VALUE;
    State::Guard guard(*state_);
    auto& state = *state_;
    const auto range = state.range_at(va);
    if (range == state.ranges.end() || range->second.use != RangeUse::Reservation ||
        !state.covered_exactly(va, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& grant : grants) {
        if (!is_host(grant.location)) {
            if (grant.location.id < 0 || grant.location.id >= state.config.device_count) {
                return CUDA_ERROR_INVALID_DEVICE;
            }
            continue;
        }
        // The CPU never gets at device memory.
        for (auto it = state.mappings.find(va);
             it != state.mappings.end() && it->first < va + bytes; ++it) {
            if (!is_host(it->second.physical->location)) return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (auto it = state.mappings.find(va); it != state.mappings.end() && it->first < va + bytes;
         ++it) {
        const auto& physical = *it->second.physical;
        for (const auto& grant : grants) {
            if (!is_host(grant.location)) {
                const std::uint8_t bits =
                    access_bits(grant) | state.location_bits(physical.location);
                if (!grant.readable || !grant.writable) state.revoke(it->first, physical.bytes);
                state.set_bits(it->first, physical.bytes, grant.location.id, bits);
            } else if (!state.config.without_data &&
                       !state.window.open_to_cpu(it->first, physical.bytes, state.store.fd(),
                                                 static_cast<off_t>(physical.offset),
                                                 protection(grant))) {
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
        }
    }
    return CUDA_SUCCESS;
}

Result<unsigned> Memory::get_access(std::uint64_t va, Location location) const {
    State::Guard guard(*state_);
    const auto range = state_->range_at(va);
    if (range == state_->ranges.end() || range->second.use != RangeUse::Reservation ||
        state_->mapping_at(va) == state_->mappings.end()) {
        return failed(CUDA_ERROR_INVALID_VALUE);
    }
    if (is_host(location)) return failed(CUDA_ERROR_INVALID_VALUE);
    if (location.id < 0 || location.id >= state_->config.device_count) {
        return failed(CUDA_ERROR_INVALID_DEVICE);
    }
    const std::uint8_t bits = state_->tables[location.id]->get(state_->window.index(va));
    if ((bits & kPageWrite) != 0) return unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return (bits & kPageRead) != 0 ? unsigned{CU_MEM_ACCESS_FLAGS_PROT_READ}
                                   : unsigned{CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

}  // namespace simgpu
