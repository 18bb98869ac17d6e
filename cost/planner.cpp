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
/// Below this peak, smaller parts are tried too.
constexpr std::uint64_t kLargePeakBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kSmallChunkBytes = 4 * kMib;

/// How the fluid is solved. All are tried: which is best depends on the workload.
struct Attempt {
    std::size_t slots;
    double caution;
};
constexpr std::array<Attempt, 3> kAttempts{{{48, 1.0}, {32, 0.75}, {48, 0.5}}};
/// For short iterations, where a plan is the matter of a few milliseconds and single tensors count.
constexpr std::size_t kShortIteration = 400;
constexpr std::size_t kShortOfWholeTensors = 1000;  ///< the engine's: rounding costs more there
constexpr std::array<Attempt, 4> kMoreAttempts{{{64, 1.0}, {64, 0.5}, {24, 1.0}, {32, 0.25}}};
constexpr double kLinkBound = 1.02;  ///< slowdown from which less to move is worth more than room

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
        chunk_bytes_ = std::max(16 * kMib, peak_bytes_ / 500);
        schedule_.budget_bytes = request_.budget_bytes;
        schedule_.chunk_bytes = request_.whole_tensors ? kWholeTensor : chunk_bytes_;
        schedule_.part_bytes = std::max<std::uint64_t>(1, request_.part_bytes);
        if (try_fluids(table, table, kAttempts, false)) return true;
        if (!best_) {
            try_selection(table, {}, false);
        } else if (best_->predicted.iteration_us > kLinkBound * axis_.back()) {
            try_selection(table, best_fluid_, true);
        }
        const std::size_t few = request_.whole_tensors ? kShortOfWholeTensors : kShortIteration;
        if (workload_.op_count() <= few && !good_enough()) try_more(table);
        return best_.has_value();
    }

    /// `as_seen`: the gaps as the fluid sees them. True once a plan is good enough.
    bool try_fluids(const GapTable& table, const GapTable& as_seen,
                    std::span<const Attempt> attempts, bool trim_too) {
        for (const Attempt& attempt : attempts) {
            FluidResult fluid = solve_fluid(workload_, machine_, as_seen, axis_,
                                            {request_.budget_bytes, attempt.slots, attempt.caution,
                                             chunk_bytes_, request_.copies_in_advance});
            if (fluid.away.empty()) continue;
            if (trim_too) try_selection(table, fluid, true);
            if (try_selection(table, fluid, false)) best_fluid_ = std::move(fluid);
            if (good_enough()) return true;
        }
        return false;
    }

    void try_more(const GapTable& table) {
        if (try_fluids(table, table, kMoreAttempts, true)) return;
        const GapTable apart = each_by_itself(table);
        if (apart.content_count != table.content_count) {
            if (try_fluids(table, apart, kAttempts, true)) return;
            if (try_fluids(table, apart, kMoreAttempts, true)) return;
        }
        for (const bool trim : {false, true}) try_selection(table, {}, trim);
        if (request_.whole_tensors || peak_bytes_ >= kLargePeakBytes) return;
        schedule_.chunk_bytes = kSmallChunkBytes;
        try_fluids(table, table, kAttempts, true);
    }

    /// As if every use wrote. Rounded to whole tensors, what that overlooks can be worth less than
    /// what contents with several gaps lose.
    static GapTable each_by_itself(GapTable table) {
        table.content_count = static_cast<std::uint32_t>(table.gaps.size());
        table.always_clean.assign(table.content_count, false);
        table.written.clear();
        for (std::uint32_t g = 0; g < table.content_count; ++g) {
            table.gaps[g].content = g;
            table.written.push_back(table.gaps[g].from);
        }
        return table;
    }

    /// Within 0.05 % of memory without limit.
    bool good_enough() const {
        return best_ && best_->predicted.iteration_us <= axis_.back() * 1.0005;
    }

    /// Completes a selection, schedules it and keeps the plan if it is the best so far.
    bool try_selection(const GapTable& table, const FluidResult& fluid, bool trim) {
        SelectionOptions options;
        options.budget_bytes = request_.budget_bytes;
        options.host_limit_bytes = request_.host_limit_bytes;
        options.whole_tensors = request_.whole_tensors;
        options.part_bytes = schedule_.part_bytes;
        options.begin_with = fluid.away;
        options.trim = trim;
        schedule_.early_bytes = fluid.early;
        const auto away = select_gaps(workload_, machine_, table, axis_, options);
        if (!away) {
            report(away.error());
            return false;
        }
        PlanResult result;
        result.plan = schedule(workload_, machine_, table, *away, schedule_);
        auto replayed = replay(workload_, machine_, request_.budget_bytes, result.plan,
                               {.timeline = true, .max_iterations = 12});
        if (!replayed) {
            const ReplayError& failed = replayed.error();
            const auto reason = failed.short_bytes > 0 ? PlanError::Reason::OperationTooBig
                                                       : PlanError::Reason::BadWorkload;
            error_ = PlanError{reason, failed.op, request_.budget_bytes + failed.short_bytes,
                               failed.message};
            return false;
        }
        result.predicted = std::move(*replayed);
        result.host_bytes = most_absent(table, *away);
        if (best_ && best_->predicted.iteration_us <= result.predicted.iteration_us) return false;
        best_ = std::move(result);
        return true;
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
    std::uint64_t chunk_bytes_ = 0;
    std::vector<double> axis_;
    ScheduleOptions schedule_;
    FluidResult best_fluid_;  ///< that the best plan began with
    std::optional<PlanResult> best_;
    std::optional<PlanError> error_;
};

}  // namespace

tl::expected<PlanResult, PlanError> make_plan(const Workload& workload, const Machine& machine,
                                              const PlanRequest& request) {
    return Planner(workload, machine, request).run();
}

}  // namespace libswap::cost
