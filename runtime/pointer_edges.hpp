// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Pointers that lie in device memory. Small host-to-device copies are looked through; a word that
// is an address of ours makes an edge from where it was written to what it points at. Whoever names
// the table then names its targets.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace libswap {

/// @thread any
class PointerEdges {
  public:
    /// Copies of more bytes than this are not looked through.
    static constexpr std::size_t kMaxPayloadBytes = std::size_t{256} << 10;

    /// `bytes` at `dst` are overwritten: edges from there go. Cheap while there are none at all.
    void overwrite(std::uint64_t dst, std::uint64_t bytes) noexcept;
    /// An edge: the word at `slot` is `target`.
    void add(std::uint64_t slot, std::uint64_t target) noexcept;
    /// A device-to-device copy carries edges along.
    void copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) noexcept;

    /// Any edge there is.
    bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    /// Calls `visit(target)` for the edges from [base, base + bytes).
    template <typename Visit>
    void for_each(std::uint64_t base, std::uint64_t bytes, Visit&& visit) {
        std::shared_lock lock(mutex_);
        for (auto edge = edges_.lower_bound(base);
             edge != edges_.end() && edge->first - base < bytes; ++edge)
            visit(edge->second);
    }

  private:
    std::shared_mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> edges_;  ///< slot -> target
    std::atomic<std::size_t> count_{0};
};

}  // namespace libswap
