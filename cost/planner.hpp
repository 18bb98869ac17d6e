// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <tl/expected.hpp>

#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/replay.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct PlanResult;

struct PlanRequest {
    std::uint64_t budget_bytes = 0;               ///< for tensors and workspace of the iteration
    std::uint64_t host_limit_bytes = UINT64_MAX;  ///< for host copies, persistent ones included
    /// Move whole tensors only. For the engine, where each tensor is a block.
    bool whole_tensors = false;
    /// Parts of tensors are multiples of this (the last part excepted). Ignored with whole_tensors.
    std::uint64_t part_bytes = 1;
    /// May copy to the host what stays on the device for now.
    bool copies_in_advance = true;
    /// Tensors smaller than this stay on the device while budget allows.
    std::uint64_t min_tensor_bytes = 0;
    /// About how long it may go on looking for better plans, in processor time of one core, more in
    /// proportion above 5,000 operations; a first plan is made anyway. The same request gets the
    /// same plan.
    double effort_ms = 100;
    /// No attempt begins later than this, once there is a plan. With it, the plan depends on how
    /// fast the machine is.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    /// Called with each plan that is better than those before, from within make_plan.
    std::function<void(const PlanResult&)> on_better{};
};

/// Why there is no plan.
struct PlanError {
    enum class Reason {
        OperationTooBig,
        HostTooSmall,
        NoOperations,
        BadWorkload,  ///< for example an operation reads what nothing has written
    };
    Reason reason = Reason::NoOperations;
    OpIndex op = 0;                ///< the operation that does not fit
    std::uint64_t need_bytes = 0;  ///< what it, or the host side, needs
    std::string message;           ///< one line
};

struct PlanResult {
    Plan plan;  ///< empty: everything fits
    ReplayResult predicted;
    double compute_us = 0;         ///< the iteration with memory without limit
    std::uint64_t peak_bytes = 0;  ///< of the workload
    std::uint64_t host_bytes = 0;  ///< host copies that the plan needs at once
};

/// Chooses what leaves in which gap, when it goes and when it comes back. Deterministic, but for a
/// deadline.
/// @thread any; takes milliseconds to a tenth of a second
tl::expected<PlanResult, PlanError> make_plan(const Workload& workload, const Machine& machine,
                                              const PlanRequest& request);

}  // namespace libswap::cost
