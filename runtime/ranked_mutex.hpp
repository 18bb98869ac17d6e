// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Locks with ranks. A thread takes locks in rising rank only, and holds none across a driver call;
// both are checked where assertions are on.
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>

namespace libswap {

enum class LockRank : std::uint8_t {
    Devices = 1,  ///< the list of devices
    Graphs,
    Pools,
    ProgramMemory,
    Buffers,  ///< allocation and free of one device
    FreedRanges,
    Pieces,
    AddressSpace,
    Slabs,
    HandlePool,
    Streams,
    EventOrder,
    Edges,
    Functions,
    Learner,
    WorkerQueue,
};

namespace detail {
/// One bit per rank held by this thread.
inline thread_local std::uint32_t held_lock_ranks = 0;
}  // namespace detail

/// True if this thread holds a lock of ours; false where assertions are off.
inline bool holds_any_lock() noexcept { return detail::held_lock_ranks != 0; }

/// A mutex of a rank. Trivially destructible in effect: singletons that hold one are leaked.
template <LockRank kRank>
class RankedMutex {
  public:
    void lock() {
#ifdef LIBSWAP_ASSERTIONS
        assert((detail::held_lock_ranks >> static_cast<unsigned>(kRank)) == 0 &&
               "locks are taken in rising rank");
#endif
        mutex_.lock();
        note(true);
    }
    bool try_lock() {
        if (!mutex_.try_lock()) return false;
        note(true);
        return true;
    }
    void unlock() {
        note(false);
        mutex_.unlock();
    }

  private:
    static void note([[maybe_unused]] bool taken) noexcept {
#ifdef LIBSWAP_ASSERTIONS
        detail::held_lock_ranks ^= std::uint32_t{1} << static_cast<unsigned>(kRank);
#endif
    }

    std::mutex mutex_;
};

}  // namespace libswap
