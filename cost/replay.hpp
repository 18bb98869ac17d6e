// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// Why a plan cannot be executed as it stands.
struct ReplayError {
    OpIndex op = 0;
    TensorIndex tensor = kNoTensor;
    std::uint64_t short_bytes = 0;
    std::string message;
};

/// A steady iteration under a plan.
struct ReplayResult {
    double iteration_us = 0;
    double to_host_bytes = 0;
    double to_device_bytes = 0;
    std::uint64_t peak_used_bytes = 0;
    std::uint64_t host_bytes = 0;  ///< most that host copies held at once
    /// Of the last iteration replayed, from its start, where asked for: when each operation began,
    /// and the end of the last one.
    std::vector<double> op_start_us;
};

struct ReplayOptions {
    bool timeline = false;
    int max_iterations =
        64;  ///< what has not settled by then counts by the mean of the second half
};

/// Replays `plan` on one compute stream, two copy directions, the memory ledger and the remaps
/// until its iterations repeat. Agrees with shared/referee on machines of its form, and refuses
/// what it refuses.
/// @thread any
tl::expected<ReplayResult, ReplayError> replay(const Workload& workload, const Machine& machine,
                                               std::uint64_t budget_bytes, const Plan& plan,
                                               const ReplayOptions& options = {});

}  // namespace libswap::cost
