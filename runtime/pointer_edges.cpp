// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/pointer_edges.hpp"

#include <algorithm>
#include <mutex>

namespace libswap {
namespace {

constexpr std::size_t kPointerBytes = 8;

/// A word that is hit in part is no pointer any more.
bool hits(const Rows& dst, std::uint64_t slot) noexcept {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < kPointerBytes; ++i)
        if (dst.find(slot + i, 1, &offset)) return true;
    return false;
}

}  // namespace

void PointerEdges::overwrite(const Rows& dst) noexcept {
    if (!any()) return;
    std::unique_lock lock(mutex_);
    const std::uint64_t first = dst.base >= kPointerBytes ? dst.base - kPointerBytes + 1 : 0;
    const auto end = edges_.lower_bound(dst.base + dst.span_bytes());
    for (auto edge = edges_.lower_bound(first); edge != end;)
        edge = hits(dst, edge->first) ? edges_.erase(edge) : std::next(edge);
    count_.store(edges_.size(), std::memory_order_relaxed);
}

void PointerEdges::add(std::uint64_t slot, std::uint64_t target) noexcept {
    std::unique_lock lock(mutex_);
    const auto [first, last] = edges_.equal_range(slot);
    if (std::any_of(first, last, [&](const auto& edge) { return edge.second == target; })) return;
    edges_.emplace(slot, target);
    count_.store(edges_.size(), std::memory_order_relaxed);
}

void PointerEdges::carried(const Rows& dst, const Rows& src, std::vector<Edge>* edges) const {
    if (!any()) return;
    std::shared_lock lock(mutex_);
    const auto end = edges_.lower_bound(src.base + src.span_bytes());
    for (auto edge = edges_.lower_bound(src.base); edge != end; ++edge) {
        std::size_t offset = 0;
        if (src.find(edge->first, kPointerBytes, &offset))
            edges->emplace_back(dst.at(offset), edge->second);
    }
}

void PointerEdges::copy(const Rows& dst, const Rows& src) noexcept {
    if (!any()) return;
    std::vector<Edge> edges;
    carried(dst, src, &edges);
    overwrite(dst);
    for (const auto& [slot, target] : edges) add(slot, target);
}

bool PointerEdges::add_copies(const Rows& dst, const Rows& src) noexcept {
    std::vector<Edge> edges;
    carried(dst, src, &edges);
    const std::size_t before = count_.load(std::memory_order_relaxed);
    for (const auto& [slot, target] : edges) add(slot, target);
    return count_.load(std::memory_order_relaxed) != before;
}

}  // namespace libswap
