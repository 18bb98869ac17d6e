// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The program's memory pools. Their handles are the driver's, which keeps their settings too; what
// is allocated from those that we serve is ours, so the driver's pools stay empty, and the amounts
// are counted here.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <tsl/robin_map.h>

#include "runtime/counters.hpp"
#include "runtime/driver.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

/// A pool of one device. Never deleted: buffers and freed ranges point at it.
struct Pool {
    CUmemoryPool handle = nullptr;
    int device = 0;
    /// We serve it: plain memory of a device, not shareable. Others pass through.
    bool ours = false;
    bool on_host = false;         ///< its memory is pinned host memory
    std::uint64_t max_bytes = 0;  ///< 0: no limit of its own

    Counters::Count used_bytes{0};  ///< as asked for
    Counters::Count used_high{0};
    Counters::Count reserved_bytes{0};  ///< used or freed in stream order and not released, rounded
    Counters::Count reserved_high{0};
    /// Freed memory beyond this many reserved bytes is released when the program synchronises.
    std::atomic<std::uint64_t> release_threshold{0};
    // Memory freed on another stream may be used again, if that stream's work is ...
    std::atomic<bool> follows_events{true};  ///< ... ordered before by the program's events
    std::atomic<bool> opportunistic{true};   ///< ... known to be done

    void count_use(std::uint64_t asked, std::uint64_t span) noexcept;
    void count_free(std::uint64_t asked) noexcept { Counters::subtract(used_bytes, asked); }
    void count_release(std::uint64_t span) noexcept { Counters::subtract(reserved_bytes, span); }
};

/// All pools of the process. @thread any
class PoolTable {
  public:
    explicit PoolTable(const Driver& driver) noexcept : driver_(driver) {}

    /// The pool of a handle, looked at the first time; null if it is none that we know how to
    /// serve (an imported one, say).
    Pool* find(CUmemoryPool handle);
    /// The pool that a device's stream-ordered allocations come from now, or null.
    Pool* current(int device);
    /// After cuMemPoolCreate.
    void created(CUmemoryPool handle, const CUmemPoolProps& properties);
    /// After cuMemPoolDestroy: the handle may come again for another pool.
    void destroyed(CUmemoryPool handle);
    /// After a device's current pool was set.
    void current_changed() noexcept;

  private:
    static constexpr int kMaxDevices = 64;

    Pool* add(CUmemoryPool handle, int device, bool ours);
    void read_settings(Pool& pool) noexcept;

    const Driver& driver_;
    RankedMutex<LockRank::Pools> mutex_;
    tsl::robin_map<CUmemoryPool, Pool*> live_;
    std::vector<std::unique_ptr<Pool>> all_;
    std::atomic<Pool*> current_[kMaxDevices] = {};
};

}  // namespace libswap
