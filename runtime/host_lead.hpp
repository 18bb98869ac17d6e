// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How far a program's thread is ahead of the device, by the times that a plan was made with.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/workload.hpp"

namespace libswap {

/// @thread one at a time
class HostLead {
  public:
    /// Work that is issued and not complete, while the thread still counts as near: so much that
    /// it can allocate and map the memory of some operations meanwhile (about 5 ms a GiB).
    static constexpr double kNearUs = 20'000;
    /// An event is wanted each time that so much work has been issued.
    static constexpr double kEventEveryUs = 1'000;

    HostLead() = default;
    explicit HostLead(const cost::Workload& workload);

    /// When operation `op` of the iteration has just been issued, the thread is near once all but
    /// the last so many have completed: those of kNearUs, at least 1.
    std::uint32_t near_ops(cost::OpIndex op) const { return near_ops_[op]; }
    /// An event behind this operation tells how far the device is.
    bool wants_event(cost::OpIndex op) const { return wants_event_[op]; }

  private:
    std::vector<std::uint32_t> near_ops_;
    std::vector<bool> wants_event_;
};

}  // namespace libswap
