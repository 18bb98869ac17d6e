// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/slab_heap.hpp"

#include <algorithm>

namespace libswap {

int SlabHeap::find_run(const Slab& slab, unsigned units) noexcept {
    unsigned run = 0;
    for (unsigned unit = 0; unit < kUnits; ++unit) {
        if (unit % 64 == 0 && slab.used[unit / 64] == ~std::uint64_t{0}) {
            run = 0;
            unit += 63;
            continue;
        }
        const bool used = slab.used[unit / 64] >> (unit % 64) & 1;
        run = used ? 0 : run + 1;
        if (run == units) return static_cast<int>(unit + 1 - units);
    }
    return -1;
}

void SlabHeap::mark(Slab& slab, unsigned first, unsigned units, bool used) noexcept {
    for (unsigned unit = first; unit < first + units; ++unit) {
        const std::uint64_t bit = std::uint64_t{1} << (unit % 64);
        if (used)
            slab.used[unit / 64] |= bit;
        else
            slab.used[unit / 64] &= ~bit;
    }
}

std::uint64_t SlabHeap::take(std::uint64_t bytes, CUcontext context) noexcept {
    const auto units = static_cast<unsigned>((bytes + kUnitBytes - 1) / kUnitBytes);
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_) {
        if (slab->free_units < units) continue;
        const int first = find_run(*slab, units);
        if (first < 0) continue;
        mark(*slab, static_cast<unsigned>(first), units, true);
        slab->free_units -= units;
        slab->length[first] = static_cast<std::uint16_t>(units);
        slab->asked[first] = static_cast<std::uint32_t>(bytes);
        slab->context[first] = context;
        used_bytes_ += bytes;
        return slab->base + static_cast<std::uint64_t>(first) * kUnitBytes;
    }
    return 0;
}

std::uint32_t SlabHeap::add_slab(std::uint64_t base, Chunk* chunk) noexcept {
    auto slab = std::make_unique<Slab>();
    slab->base = base;
    slab->chunk = chunk;
    std::lock_guard lock(mutex_);
    slabs_.push_back(std::move(slab));
    return static_cast<std::uint32_t>(slabs_.size() - 1);
}

void SlabHeap::drop(Slab& slab, unsigned first) noexcept {
    const unsigned units = slab.length[first];
    mark(slab, first, units, false);
    slab.free_units += units;
    slab.length[first] = 0;
    used_bytes_ -= slab.asked[first];
}

bool SlabHeap::free(std::uint32_t index, std::uint64_t base) noexcept {
    std::lock_guard lock(mutex_);
    if (index >= slabs_.size()) return false;
    Slab& slab = *slabs_[index];
    const std::uint64_t offset = base - slab.base;
    if (offset % kUnitBytes || slab.length[offset / kUnitBytes] == 0) return false;
    drop(slab, static_cast<unsigned>(offset / kUnitBytes));
    return true;
}

bool SlabHeap::find(std::uint32_t index, std::uint64_t address, SlabPiece* piece) noexcept {
    std::lock_guard lock(mutex_);
    if (index >= slabs_.size()) return false;
    const Slab& slab = *slabs_[index];
    for (int unit = static_cast<int>((address - slab.base) / kUnitBytes); unit >= 0; --unit) {
        if (slab.length[unit] == 0) continue;
        *piece = {slab.base + static_cast<std::uint64_t>(unit) * kUnitBytes, slab.asked[unit],
                  slab.context[unit]};
        return address - piece->base < piece->bytes;
    }
    return false;
}

void SlabHeap::purge(CUcontext context) noexcept {
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_)
        for (unsigned unit = 0; unit < kUnits; ++unit)
            if (slab->length[unit] && slab->context[unit] == context) drop(*slab, unit);
}

std::uint64_t SlabHeap::used_bytes() noexcept {
    std::lock_guard lock(mutex_);
    return used_bytes_;
}

std::uint64_t SlabHeap::slab_bytes() noexcept {
    std::lock_guard lock(mutex_);
    return slabs_.size() * kPageBytes;
}

bool SlabHeap::is_valid() noexcept {
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_) {
        unsigned used = 0;
        for (unsigned unit = 0; unit < kUnits;) {
            const unsigned length = slab->length[unit];
            for (unsigned i = 0; i < std::max(length, 1u); ++i)
                if (static_cast<bool>(slab->used[(unit + i) / 64] >> ((unit + i) % 64) & 1) !=
                    (length != 0))
                    return false;
            used += length;
            unit += std::max(length, 1u);
        }
        if (used + slab->free_units != kUnits) return false;
    }
    return true;
}

}  // namespace libswap
