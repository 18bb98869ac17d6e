// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/live_pieces.hpp"

#include <iterator>

namespace libswap {

void LivePieces::begin(std::uint64_t base, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    forget_locked(base, bytes);
    bytes_.emplace(base, bytes);
}

void LivePieces::end(std::uint64_t base) noexcept {
    const std::lock_guard lock(mutex_);
    bytes_.erase(base);
}

void LivePieces::forget(std::uint64_t base, std::uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    forget_locked(base, bytes);
}

void LivePieces::forget_locked(std::uint64_t base, std::uint64_t bytes) noexcept {
    auto first = bytes_.lower_bound(base);
    if (first != bytes_.begin()) {
        const auto before = std::prev(first);
        if (before->first + before->second > base) first = before;
    }
    bytes_.erase(first, bytes_.lower_bound(base + bytes));
}

std::optional<LivePieces::Piece> LivePieces::find(std::uint64_t address) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto behind = bytes_.upper_bound(address);
    if (behind == bytes_.begin()) return std::nullopt;
    const auto& [base, bytes] = *std::prev(behind);
    if (address - base >= bytes) return std::nullopt;
    return Piece{base, bytes};
}

}  // namespace libswap
