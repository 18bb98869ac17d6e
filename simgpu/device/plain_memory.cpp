// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Plain allocations: whole pages for big ones, shared pages for small ones.

#include <algorithm>
#include <cstring>

#include "simgpu/device/memory_state.hpp"

namespace simgpu {

namespace {

constexpr std::uint64_t kSmallAlignment = 512;
constexpr std::uint64_t kSmallLimit = 1u << 20;

}  // namespace

Result<std::uint64_t> Memory::State::allocate_pages(int device, std::uint64_t bytes, RangeUse use) {
    const std::uint64_t whole = round_up(bytes, kPageBytes);
    const std::uint64_t va = find_space(whole, kPageBytes);
    if (va == 0) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    const auto physical = store.create(whole, Location{Location::Kind::Device, device});
    if (physical == nullptr) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    if (!attach(va, physical)) {
        store.drop_if_unused(physical);
        return failed(CUDA_ERROR_OUT_OF_MEMORY);
    }
    grant_plain(va, whole, device);
    ranges[va] = Range{whole, use, bytes, next_buffer_id++};
    return va;
}

void Memory::State::free_pages(std::uint64_t va) {
    detach(va);
    ranges.erase(va);
}

Result<std::uint64_t> Memory::State::allocate_small(int device, std::uint64_t bytes) {
    const std::uint64_t need = round_up(bytes, kSmallAlignment);
    const auto take = [&](Slab& slab) -> std::uint64_t {
        for (auto space = slab.spaces.begin(); space != slab.spaces.end(); ++space) {
            if (space->second < need) continue;
            const auto [va, room] = *space;
            slab.spaces.erase(space);
            if (room > need) slab.spaces[va + need] = room - need;
            slab.pieces[va] = Slab::Piece{need, bytes, next_buffer_id++};
            return va;
        }
        return 0;
    };
    for (auto& [base, slab] : slabs) {
        if (slab.device != device) continue;
        const std::uint64_t va = take(slab);
        if (va == 0) continue;
        // A page never used gets its fill as a whole later.
        if (!config.without_data && chunk_at(va)->filled)
            std::memset(window.host(va), config.fill_byte, need);
        return va;
    }
    const auto page = allocate_pages(device, kPageBytes, RangeUse::Slab);
    if (!page) return page;
    Slab& slab = slabs[*page];
    slab.device = device;
    slab.spaces[*page] = kPageBytes;
    return take(slab);
}

bool Memory::State::free_small(std::uint64_t va) {
    const auto slab = slab_at(va);
    if (slab == slabs.end()) return false;
    const auto piece = slab->second.pieces.find(va);
    if (piece == slab->second.pieces.end()) return false;
    auto& spaces = slab->second.spaces;
    std::uint64_t bytes = piece->second.bytes;
    slab->second.pieces.erase(piece);
    auto next = spaces.lower_bound(va);
    if (next != spaces.end() && next->first == va + bytes) {
        bytes += next->second;
        next = spaces.erase(next);
    }
    if (next != spaces.begin() && std::prev(next)->first + std::prev(next)->second == va) {
        std::prev(next)->second += bytes;
    } else {
        spaces[va] = bytes;
    }
    if (slab->second.pieces.empty()) {
        const std::uint64_t base = slab->first;
        slabs.erase(slab);
        free_pages(base);
    }
    return true;
}

Result<std::uint64_t> Memory::allocate(int device, std::uint64_t bytes) {
    if (bytes == 0) return failed(CUDA_ERROR_INVALID_VALUE);
    if (device < 0 || device >= state_->config.device_count)
        return failed(CUDA_ERROR_INVALID_DEVICE);
    State::Guard guard(*state_);
    if (bytes > state_->window.bytes()) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    if (bytes < kSmallLimit) return state_->allocate_small(device, bytes);
    return state_->allocate_pages(device, bytes, RangeUse::Plain);
}

Status Memory::free(std::uint64_t va) {
    State::Guard guard(*state_);
    const auto range = state_->ranges.find(va);
    if (range != state_->ranges.end() && range->second.use == RangeUse::Plain) {
        state_->free_pages(va);
        return CUDA_SUCCESS;
    }
    return state_->free_small(va) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void Memory::set_peer_access(int device, int owner, bool granted) {
    State::Guard guard(*state_);
    state_->peers[owner][device] = granted;
    for (const auto& [va, range] : state_->ranges) {
        if (range.use == RangeUse::Reservation) continue;
        if (state_->mappings.at(va).physical->location.id == owner)
            state_->grant_plain(va, range.bytes, owner);
    }
}

}  // namespace simgpu
