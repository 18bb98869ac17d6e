// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory freed in stream order. It still belongs to its pool, is mapped, and may be in use until
// the stream has passed the free. An allocation of the same size on the same stream has it at once;
// on another one, when that stream's work is ordered behind the free or the free is known to be
// done.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/pool_table.hpp"
#include "runtime/ranked_mutex.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

struct Buffer;

struct FreedRange {
    Pool* pool = nullptr;
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;     ///< rounded; what its pool counts as reserved
    std::uint64_t size_key = 0;  ///< ranges of one key can take each other's place
    Buffer* buffer = nullptr;    ///< null: a piece of a slab
    Use freed;                   ///< the place of the free in its stream
};

/// @thread any
class FreedRanges {
  public:
    void put(const FreedRange& range);

    /// Takes the latest range of a pool and key that `fits`, those of `stream` before others.
    /// `fits` is called under a lock: no driver call.
    template <typename Fits>
    bool take(const Pool* pool, std::uint64_t size_key, StreamIndex stream, FreedRange* out,
              Fits&& fits) {
        if (empty()) return false;
        std::lock_guard lock(mutex_);
        const auto found = ranges_.find({pool, size_key});
        if (found == ranges_.end()) return false;
        std::vector<FreedRange>& list = found->second;
        std::size_t best = list.size();
        for (std::size_t i = list.size(); i-- > 0;) {
            const bool same_stream = list[i].freed.stream() == stream;
            if (!same_stream && best != list.size()) continue;
            if (!fits(list[i])) continue;
            best = i;
            if (same_stream) break;
        }
        if (best == list.size()) return false;
        remove(list, best, out);
        return true;
    }

    /// Takes any range that `fits` (called under a lock: no driver call).
    template <typename Fits>
    bool take_any(FreedRange* out, Fits&& fits) {
        if (empty()) return false;
        std::lock_guard lock(mutex_);
        for (auto& [key, list] : ranges_)
            for (std::size_t i = 0; i < list.size(); ++i)
                if (fits(list[i])) {
                    remove(list, i, out);
                    return true;
                }
        return false;
    }

    /// There is a range of this pool and key, whether it may be taken or not.
    bool has(const Pool* pool, std::uint64_t size_key);
    /// The last free on each stream that has any here.
    void last_frees(std::vector<Use>* out);
    bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  private:
    void remove(std::vector<FreedRange>& list, std::size_t index, FreedRange* out) noexcept {
        *out = list[index];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
        count_.fetch_sub(1, std::memory_order_relaxed);
    }

    RankedMutex<LockRank::FreedRanges> mutex_;
    std::map<std::pair<const Pool*, std::uint64_t>, std::vector<FreedRange>> ranges_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace libswap
