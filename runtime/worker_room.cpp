// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Room where none is left: who leaves, and who is refused.

#include <algorithm>

#include "runtime/worker.hpp"

namespace libswap {
namespace {

/// Rounds in which enough memory lay ready and nobody could have it, until they are told so.
constexpr std::uint32_t kMostUnservedRounds = 8;

}  // namespace

Block* Worker::coldest() {
    Block* best = nullptr;
    std::uint64_t oldest = UINT64_MAX;
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        Block& block = parts_.blocks->block(i);
        if (!may_leave(block)) continue;
        const std::uint64_t touched = block.last_touch.load(std::memory_order_relaxed);
        if (touched >= oldest) continue;
        oldest = touched;
        best = &block;
    }
    return best;
}

/// What the program's allocator has back costs nothing but the remap. Of pieces of one size
/// PyTorch's gives out the one with the lowest address, so that the highest is wanted last.
/// `in_use`: where nothing under way uses none of it, what has been used longest ago.
Block* Worker::without_content(bool in_use) {
    Block* highest = nullptr;
    Block* coldest = nullptr;
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        Block& block = parts_.blocks->block(i);
        if (!block.given_back.load(std::memory_order_relaxed) ||
            !block.fresh.load(std::memory_order_relaxed) || !may_leave(block))
            continue;
        if ((!highest || block.base > highest->base) && swap_.users_done(block)) highest = &block;
        if (!coldest || block.last_touch.load() < coldest->last_touch.load()) coldest = &block;
    }
    return highest || !in_use ? highest : coldest;
}

/// Until so much is free or about to be. While a plan is followed: nothing else would leave.
bool Worker::drop_contentless(std::uint64_t wanted_bytes) {
    bool changed = false;
    while (swap_.jobs() < kMaxUnderWay &&
           parts_.device_pool->available_bytes() + swap_.leaving_bytes() < wanted_bytes) {
        Block* const victim = without_content(true);
        if (!victim) break;
        const auto start = evict(*victim, 0);
        if (start == SwapEngine::Start::NotNow) put_off(*victim);
        if (start != SwapEngine::Start::Started) break;
        changed = true;
    }
    return changed;
}

/// It cannot leave now: in the next round others come first.
void Worker::put_off(Block& block) {
    std::uint64_t newest = 0;
    for (BlockIndex i = 0; i < parts_.blocks->end(); ++i)
        newest = std::max(newest, parts_.blocks->block(i).last_touch.load());
    block.last_touch.store(newest);
    block.given_back.store(false);
}

bool Worker::may_leave(const Block& block) const noexcept {
    const ResidencyWord word = block.cell.load();
    return word.state() == Residency::Resident && word.pins() == 0 && !word.remapping() &&
           !block.busy.load() && !block.for_good.load() && block.wanted.load() == 0;
}

/// Nothing may leave now, but an operation that is being issued will be done with something.
bool Worker::may_leave_later() const noexcept {
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        const Block& block = parts_.blocks->block(i);
        if (block.cell.load().state() == Residency::Resident && !block.for_good.load()) return true;
    }
    return false;
}

bool Worker::reclaim_until_enough() {
    bool changed = false;
    while (parts_.device_pool->available_bytes() < needed_bytes_ && host_.reclaim_cached())
        changed = true;
    return changed;
}

bool Worker::make_room() {
    if (needed_bytes_ == 0) {
        unserved_rounds_ = 0;
        return false;
    }
    if (host_.follows_plan()) {
        const bool reclaimed = reclaim_until_enough() | drop_contentless(needed_bytes_);
        if (reclaimed || room_will_come()) return reclaimed;
    }
    bool changed = false;
    bool enough = false;
    bool in_use = false;
    bool stuck = swap_.gave_up();
    while (!stuck && swap_.jobs() < kMaxUnderWay) {
        enough = parts_.device_pool->available_bytes() + swap_.leaving_bytes() >= needed_bytes_;
        if (enough) break;
        if (host_.reclaim_cached()) {
            changed = true;
            continue;
        }
        Block* victim = without_content(false);
        if (!victim) victim = planned_victim();
        if (!victim) victim = coldest();
        if (!victim) {
            stuck = true;
            in_use = may_leave_later();
            break;
        }
        const auto start = evict(*victim, 0);
        if (start == SwapEngine::Start::Started) {
            changed = true;
            continue;
        }
        if (start == SwapEngine::Start::NotNow) put_off(*victim);
        if (start == SwapEngine::Start::NoHostMemory && reclaim_host_memory()) continue;
        stuck = start == SwapEngine::Start::NoHostMemory;
        break;
    }
    // There is enough, all of it lies ready, and serves nobody: chunks of other sizes, of which the
    // driver makes no others.
    const bool idle = swap_.jobs() == 0 && !changed;
    unserved_rounds_ = enough && idle ? unserved_rounds_ + 1 : 0;
    if (unserved_rounds_ >= kMostUnservedRounds) stuck = true;
    if (!stuck || swap_.jobs() != 0) return changed;
    // Nothing leaves and nothing can: what waits is used where it is. Once something was refused,
    // what is there may be enough for the rest.
    if (!demands_.empty()) {
        Demand* last = &demands_.back();
        refuse(*last);
        demands_.pop_back();
        changed = true;
    } else if (!in_use) {
        refuse_memory();
        changed = true;
    }
    return changed;
}

bool Worker::reclaim_host_memory() {
    // Host copies of resident blocks only spare a copy out: the coldest goes last.
    Block* best = nullptr;
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        Block& block = parts_.blocks->block(i);
        if (block.cell.load().state() != Residency::Resident || block.busy.load() ||
            !block.has_host())
            continue;
        if (!best || block.last_touch.load() > best->last_touch.load()) best = &block;
    }
    if (!best) return false;
    best->busy.store(true);
    // Freed meanwhile: its memory goes back by another way.
    const bool still = best->cell.load().state() == Residency::Resident;
    if (still) {
        best->record_valid.store(false);
        parts_.host_pool->give_back(best->host_chunks());
        best->host.fill(nullptr);
    }
    best->busy.store(false);
    return still;
}

}  // namespace libswap
