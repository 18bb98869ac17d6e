// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What an operation names: which blocks an address of its parameters stands for.

#include <algorithm>
#include <utility>

#include "runtime/call_roles.hpp"
#include "runtime/device.hpp"
#include "runtime/extents.hpp"

namespace libswap {
namespace {

/// Buffers of less than this part of the budget move as wholes.
constexpr std::uint64_t kPartOfBudget = 8;

/// Whether a launch may change what its parameter `word` points at: what the library says that
/// makes the launch, or what earlier launches of the function were seen to do.
bool may_change(const Operation& op, std::uint64_t address, std::uint64_t base,
                std::uint32_t word) noexcept {
    if (const CallRoles* const call = CallRoles::current())
        if (const auto role = call->role_of(address, base); role != CallRoles::Role::Unknown)
            return role == CallRoles::Role::Written;
    return !op.function || !op.function->leaves_alone(word);
}

}  // namespace

void Device::name_address(Operation& op, std::uint64_t address) {
    const std::uint32_t word = op.words++;
    const PageTag tag = space_.find(address);
    if (tag == 0) return;
    ++op.addresses;
    name_tagged(op, tag, address, word);
}

void Device::name_tagged(Operation& op, PageTag tag, std::uint64_t address, std::uint32_t word) {
    op.names_ours = true;
    if (tag & kSlabTag) {
        if (!edges_.any()) return;
        SlabPiece piece;
        if (slabs_.find((tag & ~kSlabTag) - 1, address, &piece))
            name_table(op, piece.base, piece.bytes);
        return;
    }
    Block& block = blocks_.block(tag - 1);
    Buffer& buffer = blocks_.buffer(block.buffer);
    const bool changes = may_change(op, address, buffer.base, word);
    BlockSpan span{0, buffer.count};
    if (op.by_parts && moves_in_parts(buffer)) {
        const auto told = told_part(buffer, address);
        span = told ? *told : named_part(op, buffer, block, address, word);
    }
    name_span(op, buffer, span, changes);
    if (op.by_parts && op.operands_named.size() < Trials::kMaxWatches && op.function &&
        op.function->worth_a_look(word))
        op.operands_named.push_back({tag - 1, chunk_at(block, address), word});
    if (edges_.any()) name_table(op, buffer.base, buffer.span_bytes);
}

std::uint8_t Device::chunk_at(const Block& block, std::uint64_t address) noexcept {
    const std::uint64_t chunk = (address - block.base) / kChunkBytes[block.run().size_class];
    return static_cast<std::uint8_t>(std::min<std::uint64_t>(chunk, block.run().count - 1));
}

bool Device::moves_in_parts(const Buffer& buffer) const noexcept {
    return buffer.count >= kFewestParts && buffer.span_bytes >= budget_bytes_ / kPartOfBudget &&
           host_pool_.kind() == HandlePool::Kind::Host &&
           !buffer.whole.load(std::memory_order_relaxed);
}

BlockSpan Device::named_part(Operation& op, Buffer& buffer, Block& block, std::uint64_t address,
                             std::uint32_t word) {
    note_cut(block, address);
    NamedPart part{block.buffer, {}, address, 0, word};
    part.span = believed_extent(blocks_, buffer, blocks_.index_of(block) - buffer.first, address,
                                &part.next);
    const BlockSpan span = part.span;
    if (span.count != buffer.count) op.parts.push_back(part);
    // From here on what was never named may have been written all the same.
    if (span.count != buffer.count && !buffer.in_parts.load(std::memory_order_relaxed) &&
        !buffer.in_parts.exchange(true))
        for (std::uint32_t i = 0; i < buffer.count; ++i)
            blocks_.block(buffer.first + i).fresh.store(false);
    return span;
}

void Device::name_span(Operation& op, const Buffer& buffer, BlockSpan span, bool changes) {
    const BufferIndex index = blocks_.block(buffer.first).buffer;
    const std::uint64_t bit = std::uint64_t{1} << index % 64;
    if (!(op.buffers_seen & bit)) {
        op.buffers_seen |= bit;
        append_span(op, buffer, index, span, changes);
        return;
    }
    // Blocks that an earlier span has named keep their place.
    std::uint32_t next = span.first;
    while (next < span.end()) {
        std::uint32_t end = span.end();
        std::uint32_t covered = next;
        for (const NamedSpan& named : op.spans) {
            if (named.buffer != index || named.span.end() <= next) continue;
            if (named.span.first > next) {
                end = std::min(end, named.span.first);
                continue;
            }
            covered = std::min(named.span.end(), span.end());
            if (changes)
                for (std::uint32_t i = next; i < covered; ++i)
                    op.changes[named.place + i - named.span.first] = 1;
            break;
        }
        if (covered > next) {
            next = covered;
            continue;
        }
        append_span(op, buffer, index, {next, end - next}, changes);
        next = end;
    }
}

void Device::append_span(Operation& op, const Buffer& buffer, BufferIndex index, BlockSpan span,
                         bool changes) {
    op.spans.push_back({index, span, static_cast<std::uint32_t>(op.blocks.size())});
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
        op.blocks.push_back(buffer.first + i);
        op.changes.push_back(changes);
    }
}

void Device::name_range(Operation& op, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t end = address + std::max<std::uint64_t>(bytes, 1);
    for (std::uint64_t at = address; at < end;) {
        const PageTag tag = space_.find(at);
        if (tag == 0) return;
        op.names_ours = true;
        if (tag & kSlabTag) {
            at = at / kPageBytes * kPageBytes + kPageBytes;
            continue;
        }
        const Block& block = blocks_.block(tag - 1);
        name_span(op, blocks_.buffer(block.buffer),
                  {tag - 1 - blocks_.buffer(block.buffer).first, 1}, true);
        if (at >= block.base + block.bytes()) return;  // the gap behind a buffer
        at = block.base + block.bytes();
    }
}

bool Device::all_on_host(const Operation& op) noexcept {
    return std::all_of(op.blocks.begin(), op.blocks.end(), [&](BlockIndex index) {
        return blocks_.block(index).cell.load().state() == Residency::Host;
    });
}

void Device::name_table(Operation& op, std::uint64_t base, std::uint64_t bytes) {
    if (std::find(op.tables.begin(), op.tables.end(), base) != op.tables.end()) return;
    op.tables.push_back(base);
    // Collected first: naming a target looks for its edges in turn, and collects behind these.
    const std::size_t first = op.targets.size();
    edges_.for_each(base, bytes, [&](std::uint64_t target) { op.targets.push_back(target); });
    const std::size_t end = op.targets.size();
    // What a table points at may be any part of it, and is changed as far as anybody knows.
    const bool by_parts = std::exchange(op.by_parts, false);
    for (std::size_t i = first; i < end; ++i) {
        const std::uint64_t target = op.targets[i];
        if (const PageTag tag = space_.find(target); tag != 0)
            name_tagged(op, tag, target, UINT32_MAX);
        else
            op.foreign.push_back(target);
    }
    op.targets.resize(first);
    op.by_parts = by_parts;
}

void Device::name_globals(Operation& op) {
    if (!any_globals_.load(std::memory_order_relaxed) || !edges_.any()) return;
    for (std::size_t i = 0;; ++i) {
        std::pair<std::uint64_t, std::uint64_t> global;
        {
            std::lock_guard lock(buffers_mutex_);
            if (i >= globals_.size()) return;
            global = globals_[i];
        }
        name_table(op, global.first, global.second);
    }
}

void Device::name_everything_unmappable(Operation& op) {
    if (host_pool_.kind() == HandlePool::Kind::Pinned) name_everything(op);
}

void Device::name_everything(Operation& op) {
    for (BlockIndex i = 0; i < blocks_.end(); ++i) {
        const Block& block = blocks_.block(i);
        if (block.cell.load().state() == Residency::Free) continue;
        const Buffer& buffer = blocks_.buffer_of(block);
        name_span(op, buffer, {i - buffer.first, 1}, true);
    }
}

void Device::add_global(std::uint64_t base, std::uint64_t bytes) {
    std::lock_guard lock(buffers_mutex_);
    for (const auto& global : globals_)
        if (global.first == base) return;
    globals_.emplace_back(base, bytes);
    any_globals_.store(true);
}

}  // namespace libswap
