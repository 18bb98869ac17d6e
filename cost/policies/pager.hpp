// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory as a real system manages it under a policy: what the policy advises is done where it fits,
// what is missing is fetched at its use, and what does not fit makes room by evicting victims.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "cost/plan.hpp"
#include "cost/planner.hpp"
#include "cost/policies/use_table.hpp"

namespace libswap::cost {

/// What a policy wants, per operation. Advice that does not fit is not an error: a fetch without
/// room waits until there is some or its use comes, an eviction of what is away does nothing.
struct Advice {
    explicit Advice(std::size_t ops) : copy_after(ops), evict_after(ops), fetch_at(ops) {}
    std::vector<std::vector<TensorIndex>> copy_after;   ///< copy to the host, and keep
    std::vector<std::vector<TensorIndex>> evict_after;  ///< leave once the operation has ended
    std::vector<std::vector<TensorIndex>> fetch_at;     ///< fetch when the operation is next
};

enum class VictimOrder : std::uint8_t {
    LeastRecentlyUsed,
    FurthestNextUse,       ///< Belady's
    LeastRecentlyFetched,  ///< or created
};

struct PagerOptions {
    std::uint64_t budget_bytes = 0;
    VictimOrder order = VictimOrder::LeastRecentlyUsed;
    /// Without it, what does not fit under the advice alone is an error.
    bool evict_on_demand = true;
    /// The iteration begins with all that lives across it on the device.
    bool begin_resident = false;
    /// Advised fetches make room for themselves; only then is `look_ahead` read.
    bool fetches_evict = false;
    /// What the next so many operations use makes no room for an advised fetch.
    OpIndex look_ahead = 0;
    /// Victims leave in pages of this; kWholeTensor: whole.
    std::uint64_t page_bytes = kWholeTensor;
    /// Per tensor: its pool. A request takes victims of its own pool first. Empty: one pool.
    std::span<const std::uint32_t> pools = {};
};

struct PagedPlan {
    Plan plan;
    std::vector<std::uint64_t>
        used_bytes;  ///< while each operation runs, fetches under way included
    std::size_t demand_evictions = 0;
    std::size_t demand_fetches = 0;
};

/// A plan for the steady iteration in which, at every operation, memory fits the budget with every
/// issued eviction counted as gone and every issued fetch as present; so no replay of it gets
/// stuck.
tl::expected<PagedPlan, PlanError> page(const UseTable& table, const Advice& advice,
                                        const PagerOptions& options);

}  // namespace libswap::cost
