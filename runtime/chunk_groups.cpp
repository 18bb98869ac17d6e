// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/chunk_groups.hpp"

#include <algorithm>
#include <bit>

namespace libswap {
namespace {

constexpr std::uint32_t bits(std::uint32_t first, std::uint32_t count) noexcept {
    const std::uint32_t low = count == 32 ? ~0U : (1U << count) - 1;
    return low << first;
}

/// Calls `look(first, length)` for each run of ones.
template <typename Look>
void for_each_run(std::uint32_t mask, Look&& look) {
    std::uint32_t at = 0;
    while (at < 32 && (mask >> at) != 0) {
        const std::uint32_t first = at + static_cast<std::uint32_t>(std::countr_zero(mask >> at));
        const auto length = static_cast<std::uint32_t>(std::countr_one(mask >> first));
        look(first, length);
        at = first + length;
    }
}

}  // namespace

std::uint32_t neighbours(std::span<Chunk* const> chunks, std::size_t from) noexcept {
    const std::uint64_t bytes = kChunkBytes[chunks[from]->size_class];
    std::uint32_t count = 1;
    while (from + count < chunks.size() &&
           chunks[from + count]->alias == chunks[from]->alias + count * bytes &&
           chunks[from + count]->group == chunks[from]->group)
        ++count;
    return count;
}

void ChunkGroups::note_free(ChunkGroup& group) noexcept {
    group.longest_free = 0;
    for_each_run(group.free, [&](std::uint32_t, std::uint32_t length) {
        group.longest_free = std::max(group.longest_free, length);
    });
}

/// The shortest run of at least `count`, else the longest there is.
ChunkGroups::Run ChunkGroups::best_free_run(ChunkClass size_class, std::uint32_t count) noexcept {
    Run best;
    const auto better = [&](std::uint32_t length) {
        if (length < count) return length > best.length && best.length < count;
        return best.length < count || length < best.length;
    };
    for (ChunkGroup* group : groups_[size_class]) {
        if (!better(group->longest_free) && group->longest_free < count) continue;
        for_each_run(group->free, [&](std::uint32_t first, std::uint32_t length) {
            if (better(length)) best = {group, first, length};
        });
        if (best.length == count) break;
    }
    return best;
}

void ChunkGroups::take_run(const Run& run, std::span<Chunk*> out) noexcept {
    for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = &run.group->chunks[run.first + i];
    run.group->free &= ~bits(run.first, static_cast<std::uint32_t>(out.size()));
    note_free(*run.group);
    free_count_[run.group->size_class] -= static_cast<std::uint32_t>(out.size());
}

bool ChunkGroups::take(ChunkClass size_class, std::span<Chunk*> out) noexcept {
    if (free_count_[size_class] < out.size()) return false;
    while (!out.empty()) {
        const Run run = best_free_run(size_class, static_cast<std::uint32_t>(out.size()));
        const std::size_t count = std::min<std::size_t>(run.length, out.size());
        take_run(run, out.first(count));
        out = out.subspan(count);
    }
    return true;
}

void ChunkGroups::give_back(Chunk* chunk) noexcept {
    ChunkGroup& group = *chunk->group;
    group.free |= bits(static_cast<std::uint32_t>(chunk - group.chunks.data()), 1);
    note_free(group);
    ++free_count_[group.size_class];
}

Chunk* ChunkGroups::take_other_class(ChunkClass keep) noexcept {
    ChunkGroup* best = nullptr;
    for (ChunkClass i = 0; i < groups_.size(); ++i) {
        if (i == keep || free_count_[i] == 0) continue;
        for (ChunkGroup* group : groups_[i])
            if (group->free != 0 &&
                (!best || std::popcount(group->free) < std::popcount(best->free)))
                best = group;
        break;
    }
    if (!best) return nullptr;
    Chunk* chunk = nullptr;
    take_run({best, static_cast<std::uint32_t>(std::countr_zero(best->free)), 1}, {&chunk, 1});
    return chunk;
}

ChunkPlaces ChunkGroups::claim(ChunkClass size_class, std::uint32_t count, bool pieces) noexcept {
    ChunkPlaces best;
    for (ChunkGroup* group : groups_[size_class])
        for_each_run(group->places & ~group->exists,
                     [&](std::uint32_t first, std::uint32_t length) {
                         const bool enough = length >= count;
                         if (!enough && (!pieces || length <= best.count)) return;
                         if (enough && best.count >= count && length >= best.count) return;
                         best = {group, first, length};
                     });
    best.count = std::min(best.count, count);
    // Nobody else's: as if they existed already.
    if (best.group) best.group->exists |= bits(best.first, best.count);
    return best;
}

ChunkPlaces ChunkGroups::add_group(ChunkClass size_class, CUdeviceptr base, std::uint32_t places,
                                   std::uint32_t count, CUcontext context) {
    ChunkGroup* group = nullptr;
    if (!unused_.empty()) {
        group = unused_.back();
        unused_.pop_back();
    } else {
        group = &all_.emplace_back();
    }
    *group = {};
    group->base = base;
    group->size_class = size_class;
    group->context = context;
    group->places = bits(0, places);
    group->exists = bits(0, count);
    groups_[size_class].push_back(group);
    return {group, 0, count};
}

void ChunkGroups::add(const ChunkPlaces& claimed, std::uint32_t index,
                      CUmemGenericAllocationHandle handle) noexcept {
    ChunkGroup& group = *claimed.group;
    const std::uint32_t place = claimed.first + index;
    Chunk& chunk = group.chunks[place];
    chunk = {handle, group.base + place * claimed.bytes(), group.size_class, &group};
    give_back(&chunk);
}

void ChunkGroups::cancel(const ChunkPlaces& claimed, std::uint32_t index) noexcept {
    claimed.group->exists &= ~bits(claimed.first + index, 1);
}

void ChunkGroups::remove(Chunk* chunk) noexcept {
    ChunkGroup& group = *chunk->group;
    chunk->handle = 0;
    group.exists &= ~bits(static_cast<std::uint32_t>(chunk - group.chunks.data()), 1);
}

std::uint64_t ChunkGroups::forget_context(CUcontext context) noexcept {
    std::uint64_t forgotten = 0;
    for (ChunkClass i = 0; i < groups_.size(); ++i)
        std::erase_if(groups_[i], [&](ChunkGroup* group) {
            if (group->context != context) return false;
            const auto gone = static_cast<std::uint32_t>(std::popcount(group->free));
            forgotten += gone * kChunkBytes[i];
            free_count_[i] -= gone;
            group->places &= ~group->free;
            group->exists &= ~group->free;
            group->free = 0;
            group->longest_free = 0;
            if (group->exists != 0) return false;
            unused_.push_back(group);
            return true;
        });
    return forgotten;
}

bool ChunkGroups::is_valid() const noexcept {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        std::uint32_t count = 0;
        for (const ChunkGroup* group : groups_[i]) {
            if (group->size_class != i || (group->free & ~group->exists) != 0 ||
                (group->exists & ~group->places) != 0)
                return false;
            count += static_cast<std::uint32_t>(std::popcount(group->free));
            for (std::uint32_t k = 0; k < kGroupChunks; ++k)
                if ((group->free >> k & 1) != 0 && group->chunks[k].alias == 0) return false;
        }
        if (count != free_count_[i]) return false;
    }
    return true;
}

}  // namespace libswap
