// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/reach.hpp"

namespace libswap {

bool counts_elements(std::uint64_t tensor_bytes, std::int64_t number) noexcept {
    if (number <= 0) return false;
    for (unsigned shift = 0; shift <= 4; ++shift) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(number) << shift;
        if (bytes <= tensor_bytes && tensor_bytes - bytes < kSameTensorBytes) return true;
    }
    return false;
}

void NumbersHash::add(std::uint64_t place, std::int64_t value) noexcept {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(value) + place * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
    all = (std::rotl(all, 5) ^ mixed ^ mixed >> 32) * 0x9fb21c651e98df25;
    each ^= (mixed >> 60) << (4 * (count_++ % 16));
}

bool NumbersHash::differs_in_one(const NumbersHash& other) const noexcept {
    std::uint64_t difference = each ^ other.each;
    if (difference == 0) return true;
    difference >>= std::countr_zero(difference) / 4 * 4;
    return difference >> 4 == 0;
}

bool SeenNumbers::may_have_index(std::uint64_t key, const NumbersHash& numbers) noexcept {
    const std::uint64_t all = numbers.all == kHasIndex ? 1 : numbers.all;
    Entry* place = &entries_[(key >> 8) % kEntries];
    for (std::size_t i = 0; i < kProbes; ++i) {
        Entry& entry = entries_[((key >> 8) + i) % kEntries];
        const std::uint64_t there = entry.key.load(std::memory_order_acquire);
        if (there == key) {
            const std::uint64_t seen = entry.all.load(std::memory_order_relaxed);
            if (seen == all) return false;
            NumbersHash first;
            first.each = entry.each.load(std::memory_order_relaxed);
            if (seen != kHasIndex && !numbers.differs_in_one(first)) return false;
            entry.all.store(kHasIndex, std::memory_order_relaxed);
            return true;
        }
        if (there != 0) continue;
        place = &entry;
        break;
    }
    // Where all places are taken, another one is forgotten, and new again.
    place->all.store(all, std::memory_order_relaxed);
    place->each.store(numbers.each, std::memory_order_relaxed);
    place->key.store(key, std::memory_order_release);
    return true;
}

}  // namespace libswap
