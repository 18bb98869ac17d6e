// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/pointer_edges.hpp"

#include <mutex>
#include <vector>

namespace libswap {

void PointerEdges::overwrite(std::uint64_t dst, std::uint64_t bytes) noexcept {
    if (!any()) return;
    std::unique_lock lock(mutex_);
    // A word that is hit in part is no pointer any more.
    const std::uint64_t first = dst >= 7 ? dst - 7 : 0;
    edges_.erase(edges_.lower_bound(first), edges_.lower_bound(dst + bytes));
    count_.store(edges_.size(), std::memory_order_relaxed);
}

void PointerEdges::add(std::uint64_t slot, std::uint64_t target) noexcept {
    std::unique_lock lock(mutex_);
    edges_[slot] = target;
    count_.store(edges_.size(), std::memory_order_relaxed);
}

void PointerEdges::copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) noexcept {
    if (!any()) return;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> carried;
    {
        std::shared_lock lock(mutex_);
        for (auto edge = edges_.lower_bound(src);
             edge != edges_.end() && edge->first + 8 <= src + bytes; ++edge)
            carried.emplace_back(edge->first - src + dst, edge->second);
    }
    overwrite(dst, bytes);
    for (const auto& [slot, target] : carried) add(slot, target);
}

}  // namespace libswap
