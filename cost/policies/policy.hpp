// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "cost/planner.hpp"

namespace libswap::cost {

/// Ways to choose what is swapped: ours, and those that it is compared with. Each rival's header
/// says what is from its source and what had to be decided.
enum class PolicyKind : std::uint8_t {
    Libswap,      ///< planner.hpp
    Lru,          ///< demand paging, least recently used out
    Belady,       ///< demand paging, furthest next use out
    Vdnn,         ///< policies/vdnn.hpp
    Tflms,        ///< policies/tflms.hpp
    Capuchin,     ///< policies/capuchin.hpp
    SwapAdvisor,  ///< policies/swap_advisor.hpp
    DeepUm,       ///< policies/deepum.hpp
    G10,          ///< policies/g10.hpp
};

struct PolicyResult {
    PlanResult result;
    /// What the policy settled on, or why it fell back on demand paging; one line, may be empty.
    std::string note;
};

/// All of them, ours first.
std::span<const PolicyKind> all_policies();

/// The name that --policy takes.
std::string_view policy_name(PolicyKind kind);
std::optional<PolicyKind> find_policy(std::string_view name);

/// A plan by the policy, replayed. Deterministic. Of the request, rivals know the budget, the host
/// limit, and whether tensors move whole; a plan over the host limit is an error, as their sources
/// know of no such limit.
/// @thread any; takes milliseconds, seconds where the policy searches
tl::expected<PolicyResult, PlanError> make_policy_plan(PolicyKind kind, const Workload& workload,
                                                       const Machine& machine,
                                                       const PlanRequest& request);

}  // namespace libswap::cost
