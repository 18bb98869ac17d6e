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
    /// Each time that a fetch was divided in the last iteration replayed: see
    /// ReplayOptions::divide_least_bytes.
    std::vector<Division> divisions;
    std::vector<FetchTime> fetch_times;  ///< per action of the plan, where asked for
};

/// What a ReplayDirector sees before an operation starts.
class ReplayView {
  public:
    virtual ~ReplayView() = default;
    virtual double now_us() const = 0;
    /// Until the fetches that are queued have arrived, without waits; at least this if many are.
    virtual double fetch_backlog_us() const = 0;
    /// Until those of them have arrived that the next operation needs; 0 if there are none.
    virtual double needed_backlog_us() const = 0;
    /// Until the copies out that are queued have gone; at least this if many are.
    virtual double eviction_backlog_us() const = 0;
    /// Is part of the tensor still on its way out? Its fetch would hold up all behind it.
    virtual bool is_leaving(TensorIndex tensor) const = 0;
};

/// Issues actions while a replay runs, beside those of the plan: how schedules are built.
class ReplayDirector {
  public:
    virtual ~ReplayDirector() = default;
    /// Op has ended. Appends evictions, which come after those of the plan.
    virtual void ended(OpIndex /*op*/, const ReplayView& /*view*/,
                       std::vector<Action>& /*actions*/) {}
    /// Once op - 1 has ended, before op starts. Appends fetches (at op) and copies (after op - 1).
    virtual void before(OpIndex op, const ReplayView& view, std::vector<Action>& actions) = 0;
    /// The operation starts, with `leaving_bytes` of memory evicted but not yet free.
    virtual void started(OpIndex op, double now_us, std::uint64_t leaving_bytes) = 0;
};

struct ReplayOptions {
    bool timeline = false;
    bool fetch_times = false;
    int max_iterations =
        64;                  ///< what has not settled by then counts by the mean of the second half
    int min_iterations = 4;  ///< the first starts cold, and the pipeline has to fill
    ReplayDirector* director = nullptr;  ///< not owned
    /// Unless 0, where the link would idle until a fetch of the plan has room or is mapped, a part
    /// of it goes first: of so many bytes or more, and a multiple of the unit. For
    /// divide_late_fetches.
    std::uint64_t divide_least_bytes = 0;
    std::uint64_t divide_unit_bytes = 1;
};

/// Replays `plan` on one compute stream, two copy directions, the memory ledger and the remaps
/// until its iterations repeat. Agrees with shared/referee on machines of its form, and refuses
/// what it refuses.
/// @thread any
tl::expected<ReplayResult, ReplayError> replay(const Workload& workload, const Machine& machine,
                                               std::uint64_t budget_bytes, const Plan& plan,
                                               const ReplayOptions& options = {});

}  // namespace libswap::cost
