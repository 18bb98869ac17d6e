// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

namespace simgpu::driver {

/// What cuMemAdvise and cuMemPrefetchAsync said of some addresses.
struct Hints {
    bool read_mostly = false;
    CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, {0}};
    CUmemLocation prefetched{CU_MEM_LOCATION_TYPE_INVALID, {0}};
    std::set<int> accessed_by;  ///< Device ordinals; CU_DEVICE_CPU for the host.

    bool operator==(const Hints& other) const;
};

/// Hints by range of addresses. @thread any
class RangeHints {
  public:
    /// Calls `change(hints)` for every part of the range that has hints of its own.
    template <typename Change>
    void change(std::uint64_t base, std::uint64_t bytes, Change&& change) {
        std::lock_guard lock(mutex_);
        cut(base);
        cut(base + bytes);
        fill(base, base + bytes);
        for (auto it = ranges_.lower_bound(base); it != ranges_.end() && it->first < base + bytes;
             ++it) {
            change(it->second.hints);
        }
    }

    /// Calls `see(hints)` for every part of the range; parts that were never named have none.
    template <typename See>
    void for_each(std::uint64_t base, std::uint64_t bytes, See&& see) {
        change(base, bytes, [&](const Hints& hints) { see(hints); });
    }

    /// The memory is gone.
    void forget(std::uint64_t base, std::uint64_t bytes);

  private:
    struct Range {
        std::uint64_t end = 0;
        Hints hints;
    };
    void cut(std::uint64_t at);
    void fill(std::uint64_t begin, std::uint64_t end);

    std::mutex mutex_;
    std::map<std::uint64_t, Range> ranges_;  ///< By their begin; they do not overlap.
};

RangeHints& range_hints();

}  // namespace simgpu::driver
