// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/block_table.hpp"

#include <new>

namespace libswap {

void Block::publish(Use use) noexcept {
    for (auto& slot : uses) {
        std::uint64_t old = slot.load(std::memory_order_relaxed);
        for (;;) {
            if (old != 0 && Use{old}.stream() != use.stream()) break;
            if (old >= use.raw) return;
            if (slot.compare_exchange_weak(old, use.raw, std::memory_order_acq_rel)) return;
        }
    }
    many_streams.store(true, std::memory_order_release);
}

void Block::reset_uses() noexcept {
    for (auto& slot : uses) slot.store(0, std::memory_order_relaxed);
    many_streams.store(false, std::memory_order_relaxed);
}

BlockTable::BlockTable() : blocks_(kMaxBlocks), buffers_(kMaxBlocks) {}

BlockTable::~BlockTable() {
    for (BufferIndex i = 0; i < buffer_end_; ++i) delete buffers_[i];
}

Buffer* BlockTable::add(std::uint64_t base, std::uint64_t asked_bytes,
                        const std::vector<ChunkRun>& runs) {
    const auto count = static_cast<std::uint32_t>(runs.size());
    std::lock_guard lock(mutex_);
    BlockIndex first = kNoBlock;
    if (auto found = free_runs_.find(count); found != free_runs_.end() && !found->second.empty()) {
        first = found->second.back();
        found->second.pop_back();
    } else {
        first = end_.load(std::memory_order_relaxed);
        if (first + count > kMaxBlocks) return nullptr;
        for (BlockIndex i = first; i < first + count; ++i) new (&blocks_[i]) Block;
        end_.store(first + count, std::memory_order_release);
    }
    BufferIndex index = buffer_end_;
    if (!free_buffers_.empty()) {
        index = free_buffers_.back();
        free_buffers_.pop_back();
    } else {
        buffers_[buffer_end_++] = new Buffer;
    }
    Buffer& buffer = *buffers_[index];
    buffer.base = base;
    buffer.asked_bytes = asked_bytes;
    buffer.first = first;
    buffer.count = count;
    buffer.span_bytes = 0;
    buffer.context = nullptr;
    buffer.sync_memops = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        Block& block = blocks_[first + i];
        block.base = base + buffer.span_bytes;
        block.chunks = runs[i];
        block.buffer = index;
        block.alone = count == 1;
        buffer.span_bytes += runs[i].bytes();
    }
    return &buffer;
}

void BlockTable::remove(Buffer* buffer) noexcept {
    std::lock_guard lock(mutex_);
    const BufferIndex index = blocks_[buffer->first].buffer;
    free_runs_[buffer->count].push_back(buffer->first);
    free_buffers_.push_back(index);
}

void BlockTable::name_anew(Block& block) noexcept {
    Buffer& owner = buffer_of(block);
    owner.in_parts.store(false, std::memory_order_relaxed);
    owner.shifts.store(false, std::memory_order_relaxed);
    owner.whole.store(false, std::memory_order_relaxed);
    block.first_cut.store(0, std::memory_order_relaxed);
    block.last_cut.store(0, std::memory_order_relaxed);
    block.evictions = 0;
    block.arriving.store(nullptr, std::memory_order_relaxed);
    block.given_out_bytes.store(0, std::memory_order_relaxed);
    name_next_life(block);
}

void BlockTable::name_next_life(Block& block) noexcept {
    block.given_back.store(false, std::memory_order_relaxed);
    block.id.store(++block.births << kIndexBits | index_of(block), std::memory_order_release);
}

Block* BlockTable::find(std::uint64_t id) noexcept {
    const auto index = static_cast<BlockIndex>(id & ((std::uint64_t{1} << kIndexBits) - 1));
    if (index >= end() || blocks_[index].id.load(std::memory_order_acquire) != id) return nullptr;
    return &blocks_[index];
}

bool BlockTable::is_valid() noexcept {
    for (BlockIndex i = 0; i < end(); ++i) {
        Block& block = blocks_[i];
        const ResidencyWord word = block.cell.load();
        if (!word.is_valid()) return false;
        if (block.busy.load() || word.remapping()) continue;
        // Between the load and these reads the worker may have begun something: look again then.
        const bool fits = word.state() == Residency::Resident ? block.has_device()
                          : word.state() == Residency::Host   ? !block.has_device()
                                                              : true;
        if (!fits && block.cell.load().raw == word.raw && !block.busy.load()) return false;
    }
    return true;
}

}  // namespace libswap
