// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/extents.hpp"

#include <algorithm>

namespace libswap {

void note_cut(Block& block, std::uint64_t address) noexcept {
    const auto cut = static_cast<std::uint32_t>(address - block.base) + 1;
    std::uint32_t first = block.first_cut.load(std::memory_order_relaxed);
    while ((first == 0 || cut < first) &&
           !block.first_cut.compare_exchange_weak(first, cut, std::memory_order_relaxed)) {
    }
    std::uint32_t last = block.last_cut.load(std::memory_order_relaxed);
    while (cut > last &&
           !block.last_cut.compare_exchange_weak(last, cut, std::memory_order_relaxed)) {
    }
}

BlockSpan believed_extent(BlockTable& blocks, const Buffer& buffer, std::uint32_t at,
                          std::uint64_t address, std::uint64_t* next) noexcept {
    const std::uint64_t limit = address + kSameTensorBytes;
    if (next) *next = buffer.base + buffer.asked_bytes;
    for (std::uint32_t i = at; i < buffer.count; ++i) {
        const Block& block = blocks.block(buffer.first + i);
        const std::uint32_t last = block.last_cut.load(std::memory_order_relaxed);
        if (last == 0 || block.base + last - 1 <= limit) continue;
        const std::uint32_t first = block.first_cut.load(std::memory_order_relaxed);
        if (next) *next = block.base + first - 1 > limit ? block.base + first - 1 : 0;
        // A cut at its very beginning leaves a block to the next tensor.
        const bool next_begins_here = i > at && first == 1 && block.base > limit;
        return {at, i - at + (next_begins_here ? 0 : 1)};
    }
    return {at, buffer.count - at};
}

}  // namespace libswap
