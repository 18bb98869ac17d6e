// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/deepum.hpp"

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;

/// At each operation, what the one `degree` later uses; the nearer ones were asked for before.
Advice look_ahead(const Workload& w, OpIndex degree) {
    const std::size_t ops = w.op_count();
    Advice advice(ops);
    for (std::size_t k = 0; k < ops; ++k) {
        for (const Use& use : w.uses((k + degree) % ops)) advice.fetch_at[k].push_back(use.tensor);
    }
    return advice;
}

}  // namespace

RivalResult deepum_plan(const RivalInput& input) {
    std::optional<RivalPlan> best;
    PlanError error;
    for (const OpIndex degree : {8U, 16U, 32U}) {
        const PagerOptions options{.order = VictimOrder::LeastRecentlyFetched,
                                   .fetches_evict = true,
                                   .look_ahead = degree,
                                   .page_bytes = input.page_bytes(kBlockBytes)};
        auto result = run_advice(input, look_ahead(input.workload(), degree), options,
                                 fmt::format("prefetches for {} kernels", degree));
        if (!result) error = result.error();
        keep_faster(best, std::move(result));
    }
    if (!best) return tl::unexpected(error);
    return std::move(*best);
}

}  // namespace libswap::cost
