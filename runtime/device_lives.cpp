// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Contents whose end the program's own allocator tells. A caching allocator keeps what it has of
// the driver, and gives out parts of it: by the driver's calls alone its memory lives for ever, and
// what was freed long ago would be copied to the host and back. Where all that was given out of a
// block has been given back, the block begins a new life, as if the buffer had been freed and
// allocated again: what is there is not copied, and whoever learns the iteration sees another
// block.

#include <algorithm>

#include "runtime/device.hpp"

namespace libswap {
namespace {

/// Up to this part of the budget a launch uses all of a piece. Of a larger one, such as a data set,
/// it is believed to use parts: all of it may be more than there is room for.
constexpr std::uint64_t kUsedPieceOfBudget = 2;

}  // namespace

template <typename Call>
void Device::for_each_block_of(std::uint64_t address, std::uint64_t bytes, const Call& call) {
    const std::uint64_t end = address + bytes;
    while (address < end) {
        Block* const found = block_at(address);
        if (!found) return;
        Block& block = *found;
        const std::uint64_t block_end = block.base + block.bytes();
        const std::uint64_t part_end = std::min(end, block_end);
        if (part_end <= address) return;  // the gap behind a buffer
        call(block, part_end - address);
        address = part_end;
    }
}

/// A graph's memory is given back while it is captured and used whenever it is launched, and who
/// keeps several graphs resets an allocator to what it had earlier.
bool Device::reports_hold() const noexcept {
    return config_.lifetimes && !has_captured_.load(std::memory_order_relaxed);
}

/// With LIBSWAP_FILL a program is to read the same in every run, also of what it never wrote.
bool Device::content_may_end() const noexcept { return reports_hold() && !config_.fill.is_set; }

/// Of a segment of its own an allocator gives out the beginning first. What begins elsewhere lies
/// in memory of somebody else's, such as a pool that a program has given to PyTorch.
bool Device::is_told_of(Buffer& buffer, std::uint64_t address) noexcept {
    auto told = buffer.told.load(std::memory_order_relaxed);
    if (told == Buffer::Told::Unknown) {
        told = address == buffer.base ? Buffer::Told::Yes : Buffer::Told::No;
        buffer.told.store(told, std::memory_order_relaxed);
    }
    return told == Buffer::Told::Yes;
}

void Device::note_piece(std::uint64_t address, std::uint64_t bytes) {
    const Block* const block = block_at(address);
    if (!block) return;
    Buffer& buffer = blocks_.buffer_of(*block);
    if (is_told_of(buffer, address) && buffer.count >= kFewestParts) pieces_.begin(address, bytes);
}

/// Of what its allocator tells of, a launch may use all of the piece that it names an address of,
/// and no more: all of the buffer, where reports do not hold. Nothing where it is too large for
/// that.
std::optional<BlockSpan> Device::told_part(const Buffer& buffer, std::uint64_t address) noexcept {
    if (buffer.told.load(std::memory_order_relaxed) != Buffer::Told::Yes) return std::nullopt;
    LivePieces::Piece used{buffer.base, buffer.span_bytes};
    if (reports_hold()) used = pieces_.find(address).value_or(used);
    if (used.bytes > budget_bytes_ / kUsedPieceOfBudget) return std::nullopt;
    BlockSpan span;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        const Block& block = blocks_.block(buffer.first + i);
        if (block.base >= used.end()) break;
        if (block.base + block.bytes() <= used.base) continue;
        if (span.count++ == 0) span.first = i;
    }
    return span;
}

void Device::content_begins(std::uint64_t address, std::uint64_t bytes) {
    for_each_block_of(address, bytes, [&](Block& block, std::uint64_t part) {
        if (!is_told_of(blocks_.buffer_of(block), address)) return;
        if (block.given_out_bytes.fetch_add(part) != 0 || !block.given_back.exchange(false)) return;
        // From here on anybody may write, also who is not seen to. On the host is what nobody
        // needs, unless what touches the buffer is believed, or somebody was seen to write what
        // he had not named: then it may be written there.
        if (block.cell.load().state() == Residency::Resident ||
            blocks_.buffer_of(block).in_parts.load(std::memory_order_relaxed) ||
            counters_.hidden_functions.load(std::memory_order_relaxed) != 0)
            block.fresh.store(false);
    });
    note_piece(address, bytes);  // may throw: what is given out counts all the same
}

void Device::content_ends(std::uint64_t address, std::uint64_t bytes) {
    pieces_.end(address);
    for_each_block_of(address, bytes, [&](Block& block, std::uint64_t part) {
        std::uint64_t given_out = block.given_out_bytes.load();
        // More than was given out: of this block not all is known.
        do {
            if (given_out < part) return;
        } while (!block.given_out_bytes.compare_exchange_weak(given_out, given_out - part));
        if (given_out == part && content_may_end()) end_content(block);
    });
}

bool Device::has_no_content(std::uint64_t address) noexcept {
    const Block* const block = block_at(address);
    return block && block->given_back.load(std::memory_order_acquire) &&
           block->fresh.load(std::memory_order_acquire);
}

void Device::end_content(Block& block) {
    const std::lock_guard lock(lives_);
    if (block.cell.load().state() == Residency::Free) return;
    edges_.overwrite(block.base, block.bytes());
    if (log_) log_->free(block.id.load());
    note_block_free(block.id.load());
    blocks_.name_next_life(block);
    if (log_) log_->alloc(block.id.load(), block.bytes(), 0);
    block.record_valid.store(false);
    block.fresh.store(true);
    block.given_back.store(true);
    Counters::add(counters_.contents_ended);
}

}  // namespace libswap
