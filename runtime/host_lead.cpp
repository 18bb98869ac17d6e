// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/host_lead.hpp"

#include <algorithm>

namespace libswap {

HostLead::HostLead(const cost::Workload& workload)
    : near_ops_(workload.op_count()), wants_event_(workload.op_count()) {
    const auto ops = static_cast<std::uint32_t>(workload.op_count());
    // Twice round, so that those before an iteration's first are its last: the window's work is
    // that of `count` operations, up to `op`.
    double window_us = 0;
    double since_event_us = 0;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < 2 * ops; ++i) {
        const std::uint32_t op = i % ops;
        const double us = workload.op(op).duration_us;
        window_us += us;
        ++count;
        while (count > 1 && (window_us > kNearUs || count >= ops)) {
            window_us -= workload.op((i + 1 - count) % ops).duration_us;
            --count;
        }
        near_ops_[op] = count;
        since_event_us += us;
        if (since_event_us < kEventEveryUs) continue;
        since_event_us = 0;
        wants_event_[op] = true;
    }
}

}  // namespace libswap
