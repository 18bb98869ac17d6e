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

bool SeenNumbers::may_change(std::uint64_t key, std::uint64_t numbers) noexcept {
    if (numbers == kChanging) numbers = 1;
    Entry* place = &entries_[(key >> 8) % kEntries];
    for (std::size_t i = 0; i < kProbes; ++i) {
        Entry& entry = entries_[((key >> 8) + i) % kEntries];
        const std::uint64_t there = entry.key.load(std::memory_order_acquire);
        if (there == key) {
            const std::uint64_t seen = entry.numbers.load(std::memory_order_relaxed);
            if (seen == numbers) return false;
            entry.numbers.store(kChanging, std::memory_order_relaxed);
            return true;
        }
        if (there != 0) continue;
        place = &entry;
        break;
    }
    // Where all places are taken, another one is forgotten, and new again. Two threads that write
    // one place leave numbers that are not the key's: it counts as changing then.
    place->numbers.store(numbers, std::memory_order_relaxed);
    place->key.store(key, std::memory_order_release);
    return true;
}

}  // namespace libswap
