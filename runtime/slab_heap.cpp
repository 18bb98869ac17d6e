// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/slab_heap.hpp"

#include <algorithm>

namespace libswap {

std::int64_t SlabHeap::find_run(const Slab& slab, std::uint32_t units) noexcept {
    const std::uint32_t end = slab.claimed_pages * kUnitsPerPage;
    std::uint32_t run = 0;
    for (std::uint32_t unit = slab.first_free; unit < end; ++unit) {
        const std::uint64_t word = slab.used[unit / 64];
        if (unit % 64 == 0 && word == ~std::uint64_t{0}) {
            run = 0;
            unit += 63;
            continue;
        }
        if (unit % 64 == 0 && word == 0 && run + 64 < units) {
            run += 64;
            unit += 63;
            continue;
        }
        run = word >> (unit % 64) & 1 ? 0 : run + 1;
        if (run == units) return std::int64_t{unit} + 1 - units;
    }
    return -1;
}

void SlabHeap::mark(Slab& slab, std::uint32_t first, std::uint32_t units, bool used) noexcept {
    for (std::uint32_t unit = first; unit < first + units;) {
        const std::uint32_t count = std::min(64 - unit % 64, first + units - unit);
        const std::uint64_t bits = ~std::uint64_t{0} >> (64 - count) << (unit % 64);
        if (used)
            slab.used[unit / 64] |= bits;
        else
            slab.used[unit / 64] &= ~bits;
        unit += count;
    }
    if (!used)
        slab.first_free = std::min(slab.first_free, first);
    else if (slab.first_free == first)
        slab.first_free = first + units;
}

std::uint64_t SlabHeap::take(std::uint64_t bytes, CUcontext context, Pool* pool) noexcept {
    const auto units = static_cast<std::uint32_t>(rounded(bytes) / kUnitBytes);
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_) {
        if (slab->free_units < units) continue;
        const std::int64_t found = find_run(*slab, units);
        if (found < 0) continue;
        const auto first = static_cast<std::uint32_t>(found);
        mark(*slab, first, units, true);
        slab->free_units -= units;
        slab->pieces[first] = {units, static_cast<std::uint32_t>(bytes), context, pool};
        used_bytes_ += bytes;
        return slab->base + first * kUnitBytes;
    }
    return 0;
}

SlabHeap::Claim SlabHeap::claim(std::uint64_t bytes) noexcept {
    const auto units = static_cast<std::uint32_t>(rounded(bytes) / kUnitBytes);
    std::lock_guard lock(mutex_);
    if (slabs_.empty()) return {};
    Slab& slab = *slabs_.back();
    // What is free at the end of the mapped part counts.
    const std::uint32_t end = slab.claimed_pages * kUnitsPerPage;
    std::uint32_t tail = 0;
    while (tail < end && !(slab.used[(end - tail - 1) / 64] >> ((end - tail - 1) % 64) & 1)) ++tail;
    const std::uint32_t missing = units > tail ? units - tail : 0;
    const std::uint32_t pages =
        std::max<std::uint32_t>((missing + kUnitsPerPage - 1) / kUnitsPerPage, 1);
    if (slab.claimed_pages + pages > kSlabBytes / kPageBytes) return {};
    const Claim claim{static_cast<std::uint32_t>(slabs_.size() - 1),
                      slab.base + slab.claimed_pages * kPageBytes, pages};
    slab.claimed_pages += pages;
    return claim;
}

void SlabHeap::publish(const Claim& claim) noexcept {
    std::lock_guard lock(mutex_);
    Slab& slab = *slabs_[claim.slab];
    const auto first = static_cast<std::uint32_t>((claim.base - slab.base) / kUnitBytes);
    mark(slab, first, claim.pages * kUnitsPerPage, false);
    slab.mapped_pages += claim.pages;
    mapped_bytes_.fetch_add(claim.pages * kPageBytes, std::memory_order_relaxed);
    slab.free_units += claim.pages * kUnitsPerPage;
}

std::uint32_t SlabHeap::add_slab(std::uint64_t base) {
    auto slab = std::make_unique<Slab>();
    slab->base = base;
    slab->used.fill(~std::uint64_t{0});
    std::lock_guard lock(mutex_);
    slabs_.push_back(std::move(slab));
    return static_cast<std::uint32_t>(slabs_.size() - 1);
}

void SlabHeap::drop(Slab& slab, std::uint32_t first) noexcept {
    const std::uint32_t units = slab.pieces[first].units;
    mark(slab, first, units, false);
    slab.free_units += units;
    used_bytes_ -= slab.pieces[first].asked;
    slab.pieces[first] = {};
}

bool SlabHeap::free(std::uint32_t index, std::uint64_t base) noexcept {
    std::lock_guard lock(mutex_);
    if (index >= slabs_.size()) return false;
    Slab& slab = *slabs_[index];
    const std::uint64_t offset = base - slab.base;
    if (offset % kUnitBytes || slab.pieces[offset / kUnitBytes].units == 0) return false;
    drop(slab, static_cast<std::uint32_t>(offset / kUnitBytes));
    return true;
}

bool SlabHeap::end(std::uint32_t index, std::uint64_t base, SlabPiece* piece) noexcept {
    std::lock_guard lock(mutex_);
    if (index >= slabs_.size()) return false;
    Slab& slab = *slabs_[index];
    const std::uint64_t offset = base - slab.base;
    if (offset % kUnitBytes || slab.pieces[offset / kUnitBytes].asked == 0) return false;
    Piece& ended = slab.pieces[offset / kUnitBytes];
    *piece = {base, ended.asked, ended.context, ended.pool};
    used_bytes_ -= ended.asked;
    ended.asked = 0;
    ended.context = nullptr;  // outlives it, until its stream has passed the free
    return true;
}

void SlabHeap::begin_again(std::uint32_t index, const SlabPiece& piece) noexcept {
    std::lock_guard lock(mutex_);
    Slab& slab = *slabs_[index];
    Piece& begun = slab.pieces[(piece.base - slab.base) / kUnitBytes];
    begun.asked = static_cast<std::uint32_t>(piece.bytes);
    begun.context = piece.context;
    begun.pool = piece.pool;
    used_bytes_ += piece.bytes;
}

bool SlabHeap::find(std::uint32_t index, std::uint64_t address, SlabPiece* piece) noexcept {
    std::lock_guard lock(mutex_);
    if (index >= slabs_.size()) return false;
    const Slab& slab = *slabs_[index];
    // A piece is at most a page long.
    const auto unit = static_cast<std::int64_t>((address - slab.base) / kUnitBytes);
    for (std::int64_t at = unit; at >= 0 && at > unit - std::int64_t{kUnitsPerPage}; --at) {
        const Piece& found = slab.pieces[static_cast<std::size_t>(at)];
        if (found.units == 0) continue;
        *piece = {slab.base + static_cast<std::uint64_t>(at) * kUnitBytes, found.asked,
                  found.context, found.pool};
        return address - piece->base < piece->bytes;
    }
    return false;
}

void SlabHeap::purge(CUcontext context) noexcept {
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_)
        for (std::uint32_t unit = 0; unit < slab->claimed_pages * kUnitsPerPage; ++unit)
            if (slab->pieces[unit].units && slab->pieces[unit].context == context)
                drop(*slab, unit);
}

std::uint64_t SlabHeap::used_bytes() noexcept {
    std::lock_guard lock(mutex_);
    return used_bytes_;
}

bool SlabHeap::is_valid() noexcept {
    std::lock_guard lock(mutex_);
    for (auto& slab : slabs_) {
        std::uint32_t used = 0;
        std::uint32_t free = 0;
        const std::uint32_t end = slab->claimed_pages * kUnitsPerPage;
        for (std::uint32_t unit = 0; unit < end;) {
            const std::uint32_t length = slab->pieces[unit].units;
            for (std::uint32_t i = 0; i < std::max(length, 1u); ++i) {
                const bool bit = slab->used[(unit + i) / 64] >> ((unit + i) % 64) & 1;
                if (length && !bit) return false;
                free += !bit;
            }
            used += length;
            unit += std::max(length, 1u);
        }
        for (std::uint32_t unit = 0; unit < slab->first_free; ++unit)
            if (!(slab->used[unit / 64] >> (unit % 64) & 1)) return false;
        if (free != slab->free_units || used + free != slab->mapped_pages * kUnitsPerPage)
            return false;
    }
    return true;
}

}  // namespace libswap
