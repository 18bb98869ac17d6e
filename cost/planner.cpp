// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "cost/fluid.hpp"
#include "cost/gaps.hpp"
#include "cost/schedule.hpp"
#include "cost/selection.hpp"

namespace libswap::cost {

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::size_t kSlots = 48;
/// Both are tried: which is better depends on the workload.
constexpr std::array<double, 2> kCautions{0.5, 1.0};

class Planner {
  public:
    Planner(const Workload& workload, const Machine& machine, const PlanRequest& request)
        : workload_(workload), machine_(machine), request_(request) {}

    tl::expected<PlanResult, PlanError> run() {
        if (workload_.op_count() == 0) {
            return tl::unexpected(
                PlanError{PlanError::Reason::NoOperations, 0, 0, "the workload has no operations"});
        }
        if (auto error = operation_too_big()) return tl::unexpected(std::move(*error));
        compute_axis();
        peak_bytes_ = workload_.peak_bytes();
        if (!try_plans(small_tensor_bytes()) && !try_plans(0)) return tl::unexpected(*error_);
        best_->compute_us = axis_.back();
        best_->peak_bytes = peak_bytes_;
        return std::move(*best_);
    }

  private:
    std::optional<PlanError> operation_too_big() const {
        OpIndex worst = 0;
        for (OpIndex i = 0; i < workload_.op_count(); ++i) {
            if (workload_.op_bytes(i) > workload_.op_bytes(worst)) worst = i;
        }
        const std::uint64_t need = workload_.op_bytes(worst);
        if (need <= request_.budget_bytes) return std::nullopt;
        return PlanError{PlanError::Reason::OperationTooBig, worst, need,
                         fmt::format("operation {} ({}) needs {} bytes at once, the budget is {}",
                                     worst, workload_.name(worst), need, request_.budget_bytes)};
    }

    void compute_axis() {
        axis_.assign(1, 0.0);
        for (std::size_t i = 0; i < workload_.op_count(); ++i) {
            axis_.push_back(axis_.back() + workload_.op(i).duration_us);
        }
    }

    /// Small tensors cost more latency than they bring room.
    std::uint64_t small_tensor_bytes() const {
        if (request_.min_tensor_bytes > 0) return request_.min_tensor_bytes;
        return std::min(kMib, peak_bytes_ / 2000);
    }

    bool try_plans(std::uint64_t min_bytes) {
        const GapTable table = find_gaps(workload_, min_bytes);
        const std::uint64_t chunk = std::max(16 * kMib, peak_bytes_ / 500);
        schedule_.budget_bytes = request_.budget_bytes;
        schedule_.chunk_bytes = request_.whole_tensors ? kWholeTensor : chunk;
        schedule_.part_bytes = std::max<std::uint64_t>(1, request_.part_bytes);
        for (const double caution : kCautions) {
            const FluidResult fluid = solve_fluid(workload_, machine_, table, axis_,
                                                  {request_.budget_bytes, kSlots, caution, chunk});
            schedule_.early_bytes = fluid.early;
            if (!fluid.away.empty()) try_selection(table, fluid.away);
            if (good_enough()) return true;
        }
        schedule_.early_bytes = {};
        try_selection(table, {});
        return best_.has_value();
    }

    /// Within 0.05 % of memory without limit.
    bool good_enough() const {
        return best_ && best_->predicted.iteration_us <= axis_.back() * 1.0005;
    }

    /// Completes a selection, schedules it and keeps the plan if it is the best so far.
    void try_selection(const GapTable& table, std::span<const std::uint64_t> begin_with) {
        SelectionOptions options;
        options.budget_bytes = request_.budget_bytes;
        options.host_limit_bytes = request_.host_limit_bytes;
        options.whole_tensors = request_.whole_tensors;
        options.part_bytes = schedule_.part_bytes;
        options.begin_with = begin_with;
        const auto away = select_gaps(workload_, machine_, table, axis_, options);
        if (!away) {
            report(away.error());
            return;
        }
        PlanResult result;
        result.plan = schedule(workload_, machine_, table, *away, schedule_);
        auto replayed = replay(workload_, machine_, request_.budget_bytes, result.plan,
                               {.timeline = true, .max_iterations = 12});
        if (!replayed) {
            error_ = PlanError{PlanError::Reason::OperationTooBig, replayed.error().op,
                               request_.budget_bytes + replayed.error().short_bytes,
                               replayed.error().message};
            return;
        }
        result.predicted = std::move(*replayed);
        result.host_bytes = most_absent(table, *away);
        if (best_ && best_->predicted.iteration_us <= result.predicted.iteration_us) return;
        best_ = std::move(result);
    }

    std::uint64_t most_absent(const GapTable& table, const std::vector<std::uint64_t>& away) const {
        const std::size_t ops = workload_.op_count();
        std::vector<std::uint64_t> change(ops + 1);
        for (std::size_t g = 0; g < away.size(); ++g) {
            const Gap& gap = table.gaps[g];
            change[gap.from + 1] += away[g];  // wraps below zero on the way, not in the sums
            change[gap.to % ops] -= away[g];
            if (gap.to >= ops) change[0] += away[g];
        }
        std::uint64_t now = 0;
        std::uint64_t most = 0;
        for (std::size_t k = 0; k < ops; ++k) most = std::max(most, now += change[k]);
        return most;
    }

    void report(const SelectionError& failed) {
        if (failed.host_full) {
            error_ = PlanError{PlanError::Reason::HostTooSmall, failed.op, failed.over_bytes,
                               fmt::format("at operation {} ({}) {} bytes more would have to be on "
                                           "the host than its limit of {}",
                                           failed.op, workload_.name(failed.op), failed.over_bytes,
                                           request_.host_limit_bytes)};
        } else {
            error_ = PlanError{
                PlanError::Reason::OperationTooBig, failed.op,
                request_.budget_bytes + failed.over_bytes,
                fmt::format("operation {} ({}) needs {} bytes at once, the budget is {}", failed.op,
                            workload_.name(failed.op), request_.budget_bytes + failed.over_bytes,
                            request_.budget_bytes)};
        }
    }

    const Workload& workload_;
    const Machine& machine_;
    const PlanRequest& request_;
    std::uint64_t peak_bytes_ = 0;
    std::vector<double> axis_;
    ScheduleOptions schedule_;
    std::optional<PlanResult> best_;
    std::optional<PlanError> error_;
};

}  // namespace

tl::expected<PlanResult, PlanError> make_plan(const Workload& workload, const Machine& machine,
                                              const PlanRequest& request) {
    return Planner(workload, machine, request).run();
}

}  // namespace libswap::cost
