// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory that the program has from the driver itself and that we leave alone: we only know how much
// there is and where, because it counts against the budget of its device or the limit of the host.

#pragma once

#include <cstdint>
#include <map>

#include <tsl/robin_map.h>

#include "runtime/ranked_mutex.hpp"

namespace libswap {

class Device;

/// Where memory lies, for the accounts.
enum class MemoryPlace : std::uint8_t {
    Device,   ///< in device memory, until it is freed
    Managed,  ///< moves between host and device as the driver sees fit
    Host      ///< pinned
};

struct ProgramAllocation {
    std::uint64_t bytes = 0;
    MemoryPlace place = MemoryPlace::Device;
    Device* device = nullptr;  ///< whose context it is of; null where that is not swapped
};

/// Every change says what memory came (`allocated`) or went (`freed`), for the caller to account.
/// @thread any
class ProgramMemory {
  public:
    /// `key` is what it will be freed by: an address or a handle. One that is known already (a
    /// free that we did not see) is replaced, and given in `replaced`.
    void add(std::uint64_t key, const ProgramAllocation& allocation, ProgramAllocation* replaced);
    /// False if nothing is known by that key.
    bool remove(std::uint64_t key, ProgramAllocation* freed);
    /// All that was allocated in contexts of a device went with its primary context.
    template <typename Visit>
    void remove_of(const Device* device, Visit&& visit) {
        std::lock_guard lock(mutex_);
        for (auto at = known_.begin(); at != known_.end();) {
            if (at->second.device != device) {
                ++at;
                continue;
            }
            visit(at->second);
            at = known_.erase(at);
        }
    }

    // Physical memory of the virtual memory calls lives until its last handle is released and its
    // last mapping is gone.
    void handle_created(std::uint64_t handle, const ProgramAllocation& allocation);
    void handle_retained(std::uint64_t handle);
    /// True if that freed it.
    bool handle_released(std::uint64_t handle, ProgramAllocation* freed);
    void mapped(std::uint64_t base, std::uint64_t handle);
    /// Calls `visit(ProgramAllocation)` for what that freed.
    template <typename Visit>
    void unmapped(std::uint64_t base, std::uint64_t bytes, Visit&& visit) {
        std::lock_guard lock(mutex_);
        for (auto at = mappings_.lower_bound(base);
             at != mappings_.end() && at->first - base < bytes; at = mappings_.erase(at)) {
            ProgramAllocation freed;
            if (drop(at->second, &freed)) visit(freed);
        }
    }

  private:
    struct Physical {
        ProgramAllocation allocation;
        std::uint32_t uses = 0;  ///< handles and mappings
    };
    bool drop(std::uint64_t serial, ProgramAllocation* freed);

    RankedMutex<LockRank::ProgramMemory> mutex_;
    tsl::robin_map<std::uint64_t, ProgramAllocation> known_;
    // A handle's number may come again while the memory it named is still mapped.
    tsl::robin_map<std::uint64_t, std::uint64_t> handles_;  ///< to serials
    tsl::robin_map<std::uint64_t, Physical> physical_;      ///< by serial
    std::map<std::uint64_t, std::uint64_t> mappings_;       ///< base to serials
    std::uint64_t next_serial_ = 1;
};

}  // namespace libswap
