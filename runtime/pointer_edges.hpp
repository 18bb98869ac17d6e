// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Pointers that lie in device memory. Small host-to-device copies are looked through; a word that
// is an address of ours makes an edge from where it was written to what it points at. Whoever names
// the table then names its targets. Copies take edges along, between devices too: there is one
// table of them for all devices of a process.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "runtime/rows.hpp"

namespace libswap {

/// @thread any
class PointerEdges {
  public:
    /// Copies of more bytes than this are not looked through.
    static constexpr std::size_t kMaxPayloadBytes = std::size_t{256} << 10;

    /// The memory is overwritten: edges from there go. Cheap while there are none at all.
    void overwrite(const Rows& dst) noexcept;
    void overwrite(std::uint64_t dst, std::uint64_t bytes) noexcept {
        overwrite(Rows::range(dst, bytes));
    }
    /// An edge: the word at `slot` is `target`, or one of several, where it is not known which was
    /// written last.
    void add(std::uint64_t slot, std::uint64_t target) noexcept;
    /// A copy between devices or within one carries edges along. Both sides have rows of the same
    /// shape.
    void copy(const Rows& dst, const Rows& src) noexcept;
    /// As copy, but the edges that there are at `dst` stay too. True if there are more now.
    bool add_copies(const Rows& dst, const Rows& src) noexcept;

    using Edge = std::pair<std::uint64_t, std::uint64_t>;  ///< slot and target
    /// Appends the edges of `src`, as a copy would make them at `dst`.
    void carried(const Rows& dst, const Rows& src, std::vector<Edge>* edges) const;

    /// Any edge there is.
    bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    /// Calls `visit(target)` for the edges from [base, base + bytes).
    template <typename Visit>
    void for_each(std::uint64_t base, std::uint64_t bytes, Visit&& visit) const {
        std::shared_lock lock(mutex_);
        for (auto edge = edges_.lower_bound(base);
             edge != edges_.end() && edge->first - base < bytes; ++edge)
            visit(edge->second);
    }

  private:
    mutable std::shared_mutex mutex_;
    std::multimap<std::uint64_t, std::uint64_t> edges_;  ///< slot -> target
    std::atomic<std::size_t> count_{0};
};

}  // namespace libswap
