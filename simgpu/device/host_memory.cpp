// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Host memory that devices may use, and what is known about addresses.

#include <sys/mman.h>

#include "simgpu/device/memory_state.hpp"

namespace simgpu {

namespace {

bool overlaps(const std::map<std::uint64_t, HostRange>& ranges, std::uint64_t va,
              std::uint64_t bytes) {
    const auto next = ranges.lower_bound(va);
    if (next != ranges.end() && next->first < va + bytes) return true;
    return next != ranges.begin() && std::prev(next)->first + std::prev(next)->second.bytes > va;
}

}  // namespace

Result<void*> Memory::host_allocate(std::uint64_t bytes, unsigned flags) {
    if (bytes == 0) return failed(CUDA_ERROR_INVALID_VALUE);
    if (bytes > 1ull << 46) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    // Whole 2 MiB pages, because kernels' accesses are checked per page: one that strays stays
    // within the mapping.
    const std::uint64_t whole = round_up(bytes, kPageBytes) + kPageBytes;
    void* raw = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    const auto start = reinterpret_cast<std::uint64_t>(raw);
    const std::uint64_t va = round_up(start, kPageBytes);
    if (va > start) munmap(raw, va - start);
    const std::uint64_t tail = start + whole - (va + whole - kPageBytes);
    if (tail != 0) munmap(reinterpret_cast<void*>(va + whole - kPageBytes), tail);
    State::Guard guard(*state_);
    state_->host_ranges[va] =
        HostRange{bytes, true, flags, state_->next_buffer_id++, whole - kPageBytes};
    return reinterpret_cast<void*>(va);
}

Status Memory::host_free(void* pointer) {
    State::Guard guard(*state_);
    const auto it = state_->host_ranges.find(reinterpret_cast<std::uint64_t>(pointer));
    if (it == state_->host_ranges.end() || !it->second.pinned) return CUDA_ERROR_INVALID_VALUE;
    munmap(pointer, it->second.mapped_bytes);
    state_->host_ranges.erase(it);
    return CUDA_SUCCESS;
}

Status Memory::host_register(void* pointer, std::uint64_t bytes, unsigned flags) {
    const auto va = reinterpret_cast<std::uint64_t>(pointer);
    if (pointer == nullptr || bytes == 0 || va + bytes < va) return CUDA_ERROR_INVALID_VALUE;
    State::Guard guard(*state_);
    if (state_->window.contains(va) || state_->window.contains(va + bytes - 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (overlaps(state_->host_ranges, va, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    state_->host_ranges[va] = HostRange{bytes, false, flags, state_->next_buffer_id++, 0};
    return CUDA_SUCCESS;
}

Status Memory::host_unregister(void* pointer) {
    State::Guard guard(*state_);
    const auto it = state_->host_ranges.find(reinterpret_cast<std::uint64_t>(pointer));
    if (it == state_->host_ranges.end() || it->second.pinned)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    state_->host_ranges.erase(it);
    return CUDA_SUCCESS;
}

PointerInfo Memory::find(std::uint64_t va, int device) const {
    State::Guard guard(*state_);
    auto& state = *state_;
    PointerInfo info;
    if (!state.window.contains(va)) {
        const auto it = state.host_range_at(va);
        if (it == state.host_ranges.end()) return info;
        info.kind = it->second.pinned ? PointerKind::HostPinned : PointerKind::HostRegistered;
        info.location = {Location::Kind::Host, 0};
        info.base = info.range_base = it->first;
        info.bytes = info.range_bytes = it->second.bytes;
        info.buffer_id = it->second.buffer_id;
        info.host_flags = it->second.flags;
        info.device_readable = info.device_writable = true;
        return info;
    }
    const auto range = state.range_at(va);
    if (range == state.ranges.end()) return info;
    info.base = info.range_base = range->first;
    info.bytes = info.range_bytes =
        range->second.use == RangeUse::Plain ? range->second.asked_bytes : range->second.bytes;
    info.buffer_id = range->second.buffer_id;
    const std::uint8_t bits = state.tables[device]->get(state.window.index(va));
    info.device_readable = (bits & kPageRead) != 0;
    info.device_writable = (bits & kPageWrite) != 0;
    const auto mapping = state.mapping_at(va);
    if (mapping == state.mappings.end()) {
        info.kind = PointerKind::Reserved;
        return info;
    }
    info.location = mapping->second.physical->location;
    if (range->second.use == RangeUse::Reservation) {
        info.kind = PointerKind::Vmm;
        info.base = mapping->first;
        info.bytes = mapping->second.bytes;
        info.handle = mapping->second.physical->id;
        info.buffer_id = (1ull << 62) | info.handle;
        return info;
    }
    info.kind = PointerKind::Device;
    if (range->second.use == RangeUse::Plain) {
        // The tail of the last page belongs to nobody.
        return va - range->first < info.bytes ? info : PointerInfo{};
    }
    const auto& pieces = state.slab_at(va)->second.pieces;
    auto piece = pieces.upper_bound(va);
    if (piece == pieces.begin()) return PointerInfo{};
    --piece;
    if (va - piece->first >= piece->second.asked_bytes) return PointerInfo{};
    info.base = info.range_base = piece->first;
    info.bytes = info.range_bytes = piece->second.asked_bytes;
    info.buffer_id = piece->second.buffer_id;
    return info;
}

}  // namespace simgpu
