// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cost/attempts.hpp"
#include "cost/condense.hpp"
#include "cost/covering.hpp"
#include "cost/divide_fetches.hpp"
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
constexpr std::uint64_t kLeastChunkBytes = 16 * kMib;  // of usual parts

constexpr std::size_t kShortIteration = 400;
constexpr std::size_t kShortOfWholeTensors = 1000;  ///< the engine's: rounding costs more there
constexpr std::size_t kKeptPeriods = 3;             ///< of an iteration that repeats itself
constexpr std::size_t kLeastPeriods = 2;            ///< with more it does
constexpr double kSafe = 1.02;                      // what a slower link may cost
constexpr double kAsGood = 1.0005;                  // what being sure of such a link may cost
constexpr double kUnsafe = 1.045;  // or, where it would cost more than this without
constexpr double kNearlyAsGood = 1.003;
constexpr double kAboutAsGood = 1.01;
constexpr double kHopeless = 1.005;      // than the best, by the schedule: not worth a replay
constexpr double kNoSlower = 1.0005;     // worth one with the fetches in either order
constexpr int kComparisons = 2;          // of both orders, before only the better one is replayed
constexpr int kDivisions = 2;            // of late fetches: what is divided makes others late
constexpr double kLimitedShare = 0.975;  // by the link, for prices to do in place of its time
constexpr double kLinkAlone = 1.5;       ///< slowdown from which the link may be all that limits
constexpr double kLinkBound = 1.02;  ///< slowdown from which less to move is worth more than room

class Planner {
  public:
    Planner(const Workload& workload, const Machine& machine, const PlanRequest& request)
        : workload_(workload), machine_(machine), request_(request) {}

    /// `hedging`: for a link that is slower than it will be.
    tl::expected<PlanResult, PlanError> run(bool hedging = false) {
        if (workload_.op_count() == 0) {
            return tl::unexpected(
                PlanError{PlanError::Reason::NoOperations, 0, 0, "the workload has no operations"});
        }
        if (auto error = operation_too_big()) return tl::unexpected(std::move(*error));
        axis_ = axis_of(workload_);
        if (!is_short()) condensed_ = condense(workload_, kKeptPeriods);
        repeats_ = condensed_ || (!is_short() && condense(workload_, kLeastPeriods));
        peak_bytes_ = workload_.peak_bytes();
        if (!try_plans(small_tensor_bytes()) && !try_plans(0)) return tl::unexpected(*error_);
        divide_fetches();
        complete(*best_);
        if (!hedging) hedge();
        return std::move(*best_);
    }

  private:
    void complete(PlanResult& result) const {
        result.compute_us = axis_.back();
        result.peak_bytes = peak_bytes_;
    }

    /// Where the link is not what limits, many plans are as good. One made for a slower link still
    /// is when the link turns out slower, or operations shorter, than expected.
    void hedge() {
        if (best_->plan.actions.empty() || link_bound()) return;
        for (const double speed : {0.8, 0.9}) {
            if (spent_ms_ + effort_ms(kAttempts[0]) > limit_ms() || late()) return;
            Machine slow = machine_;
            slow.link.to_host.gbps *= speed;
            slow.link.to_device.gbps *= speed;
            slow.link.to_host_duplex_gbps *= speed;
            slow.link.to_device_duplex_gbps *= speed;
            PlanRequest request = request_;
            request.on_better = nullptr;
            request.effort_ms = (limit_ms() - spent_ms_) * request_.effort_ms / limit_ms();
            Planner planner(workload_, slow, request);
            auto made = planner.run(true);
            spent_ms_ += planner.spent_ms_;
            if (!made) continue;
            const auto as_it_is =
                replay(workload_, slow, request_.budget_bytes, best_->plan, {.max_iterations = 12});
            const double slow_us = made->predicted.iteration_us;
            if (as_it_is && as_it_is->iteration_us <= kSafe * slow_us) return;
            const bool unsafe = !as_it_is || as_it_is->iteration_us > kUnsafe * slow_us;
            const double as_good = unsafe ? kNearlyAsGood : kAsGood;
            auto replayed = replay(workload_, machine_, request_.budget_bytes, made->plan,
                                   {.timeline = true, .max_iterations = 12});
            if (!replayed || replayed->iteration_us > as_good * best_->predicted.iteration_us) {
                continue;
            }
            made->predicted = std::move(*replayed);
            best_ = std::move(*made);
            if (request_.on_better) request_.on_better(*best_);
            return;
        }
    }

    /// Where the link is the limit, it had better not wait for room for all of a fetch.
    void divide_fetches() {
        if (request_.whole_tensors) return;
        for (int round = 0; round < kDivisions && link_bound() && !late(); ++round) {
            auto divided = divide_late_fetches(
                workload_, machine_, best_->plan,
                {.budget_bytes = request_.budget_bytes, .part_bytes = request_.part_bytes});
            double us = 0;
            if (!divided || !keep(std::move(*divided), best_->host_bytes, us)) return;
        }
    }

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

    static std::vector<double> axis_of(const Workload& workload) {
        std::vector<double> axis(1, 0.0);
        for (std::size_t i = 0; i < workload.op_count(); ++i) {
            axis.push_back(axis.back() + workload.op(i).duration_us);
        }
        return axis;
    }

    /// Small tensors cost more latency than they bring room.
    std::uint64_t small_tensor_bytes() const {
        if (request_.min_tensor_bytes > 0) return request_.min_tensor_bytes;
        return std::min(kMib, peak_bytes_ / 2000);
    }

    bool try_plans(std::uint64_t min_bytes) {
        const GapTable table = find_gaps(workload_, min_bytes);
        if (condensed_) condensed_table_ = find_gaps(condensed_->workload, min_bytes);
        chunk_bytes_ = std::max(kLeastChunkBytes, peak_bytes_ / 500);
        schedule_.fine = repeats_ && request_.whole_tensors;
        solved_ = nullptr;
        schedule_.budget_bytes = request_.budget_bytes;
        schedule_.part_bytes = std::max<std::uint64_t>(1, request_.part_bytes);
        if (is_long() ? try_long(table) : try_usual(table)) return true;
        furthest_ = false;
        headroom_bytes_ = 0;
        headroom_per_us_ = 0;
        if (!best_) {
            try_selection(table, {}, false);
        } else if (!is_long() && link_bound() && spent_ms_ + schedule_ms() <= limit_ms() &&
                   !late()) {
            spent_ms_ += schedule_ms();
            try_selection(table, best_fluid_, true);
        }
        if (is_short() && !good_enough()) try_more(table);
        return best_.has_value();
    }

    std::span<const Attempt> usual_attempts() const {
        if (repeats_ && !request_.whole_tensors) return kRepeatingAttempts;
        if (condensed_) return kRepeatingWholeAttempts;
        return kAttempts;
    }

    bool try_usual(const GapTable& table) {
        if (try_each(usual_attempts(), table)) return true;
        if (try_furthest(table)) return true;
        if (is_short()) return false;
        if (link_bound()) return try_each(kFurtherAttempts, table);
        return !request_.whole_tensors && try_each(kSpareAttempts, table);
    }

    bool try_furthest(const GapTable& table) {
        const std::span<const Attempt> all(kFurthestAttempts);
        if (try_each(all.first(1), table)) return true;
        if (!furthest_ || !best_ || scheduled_us_ > kAboutAsGood * best_->predicted.iteration_us) {
            return false;
        }
        return try_each(all.subspan(1), table);
    }

    /// Iterations in which single tensors do not count, and that do not repeat themselves.
    bool try_long(const GapTable& table) {
        const std::span<const Attempt> first(kAttempts.data(), 1);
        if (try_each(first, table)) return true;
        if (try_furthest(table)) return true;
        if (link_bound()) return try_each(kLongAttempts, table);
        return try_each(std::span(kAttempts).subspan(1), table) || try_each(kSpareAttempts, table);
    }

    bool is_long() const { return !repeats_ && !is_short() && !request_.whole_tensors; }

    /// True once a plan is good enough.
    bool try_each(std::span<const Attempt> attempts, const GapTable& table) {
        for (const Attempt& attempt : attempts) {
            // Amounts that are rounded to whole tensors are not exact anyway.
            if (attempt.exact && request_.whole_tensors) continue;
            if (attempt.covering > 0 && !link_is_all()) continue;
            if (best_ && !affordable(attempt)) continue;
            if (try_attempt(table, table, attempt)) return true;
        }
        return false;
    }

    /// About what an attempt takes on one core, ms.
    double effort_ms(const Attempt& attempt) const {
        const auto ops = static_cast<double>(workload_.op_count());
        const double slots = std::min(static_cast<double>(attempt.slots), ops);
        const double schedules_ms = (is_short() && !attempt.furthest ? 2 : 1) * schedule_ms();
        const double own_ms = schedules_ms + (attempt.covering > 0 ? 4e-3 * ops : 0);
        if (attempt.furthest || (solved_ && solved_->same_fluid(attempt))) return own_ms;
        return 2.3e-5 * slots * slots * slots + 0.037 * slots + 1e-4 * ops + own_ms;
    }
    /// A fit to 2,000 attempts on 80 workloads, with a sixth added; iterations that repeat
    /// themselves take more than it says.
    double schedule_ms() const {
        const double ops = 1e-3 * static_cast<double>(workload_.op_count());
        const double actions = best_ ? 1e-3 * static_cast<double>(best_->plan.actions.size()) : 0;
        if (schedule_.fine) return 2.7 * ops + 7.8 * actions;
        const double usual_ms = 0.4 + 1.1 * ops + 3.8 * actions;
        return repeats_ ? 1.3 * usual_ms : usual_ms;
    }
    /// Of late fetches, in the end.
    double division_ms() const {
        if (request_.whole_tensors || !link_bound()) return 0;
        return kDivisions * 0.4 * schedule_ms();
    }

    double limit_ms() const {
        constexpr double kUsualIteration = 5000;
        const auto ops = static_cast<double>(workload_.op_count());
        return request_.effort_ms * std::max(1.0, ops / kUsualIteration);
    }

    /// Leaves what the last schedule takes, where one comes after all attempts.
    bool affordable(const Attempt& attempt) const {
        const double last_ms = division_ms() + (is_long() ? 0 : schedule_ms());
        return spent_ms_ + effort_ms(attempt) + last_ms <= limit_ms() && !late();
    }

    bool late() const { return best_ && std::chrono::steady_clock::now() >= request_.deadline; }

    bool link_bound() const {
        return best_ && best_->predicted.iteration_us > kLinkBound * axis_.back();
    }

    /// Does the link limit from end to end, by the fluid solved last?
    bool link_is_all() const {
        return best_ && best_->predicted.iteration_us > kLinkAlone * axis_.back() &&
               fluid_.limited_share > kLimitedShare;
    }

    bool is_short() const {
        return workload_.op_count() <=
               (request_.whole_tensors ? kShortOfWholeTensors : kShortIteration);
    }

    /// `as_seen`: the gaps as the fluid sees them. True once a plan is good enough.
    bool try_attempt(const GapTable& table, const GapTable& as_seen, const Attempt& attempt) {
        spent_ms_ += effort_ms(attempt);
        const double headroom = attempt.headroom * static_cast<double>(request_.budget_bytes);
        headroom_bytes_ = attempt.trim ? 0 : static_cast<std::uint64_t>(headroom);
        const double chunk = attempt.chunks * static_cast<double>(chunk_bytes_);
        headroom_per_us_ = attempt.spare_pace * 1e3 * machine_.link.to_device.gbps;
        if (attempt.spare_part > 0) {
            headroom_bytes_ =
                static_cast<std::uint64_t>(attempt.spare_part * static_cast<double>(chunk_bytes_));
        }
        schedule_.chunk_bytes =
            attempt.small_parts ? kSmallChunkBytes : static_cast<std::uint64_t>(chunk);
        schedule_.units = attempt.units;
        if (request_.whole_tensors) schedule_.chunk_bytes = kWholeTensor;
        furthest_ = attempt.furthest;
        furthest_least_bytes_ = attempt.large ? kLeastChunkBytes : 0;
        if (furthest_) {
            try_selection(table, {}, attempt.trim);
            return good_enough();
        }
        if (!solved_ || !solved_->same_fluid(attempt)) {
            FluidOptions options;
            options.budget_bytes = request_.budget_bytes - static_cast<std::uint64_t>(headroom);
            options.slots = attempt.slots;
            options.caution = attempt.caution;
            options.chunk_bytes = chunk_bytes_;
            options.copies_in_advance = request_.copies_in_advance;
            options.strict = attempt.strict || workload_.op_count() <= kShortIteration;
            options.exact = attempt.exact;
            options.headroom_bytes =
                static_cast<std::uint64_t>(attempt.exact_part * static_cast<double>(chunk_bytes_));
            options.headroom_per_us = attempt.exact_pace * 1e3 * machine_.link.to_device.gbps;
            options.largest_first = attempt.largest;
            fluid_ = fluid_of(as_seen, options, attempt.whole);
            solved_ = &attempt;
        }
        if (fluid_.away.empty()) return false;
        if (attempt.covering > 0) return try_covering(table, attempt);
        if (is_short() && best_) try_selection(table, fluid_, true);
        if (try_selection(table, fluid_, attempt.trim)) best_fluid_ = fluid_;
        return good_enough();
    }

    /// With the fluid's prices and early copies, but other gaps.
    bool try_covering(const GapTable& table, const Attempt& attempt) {
        FluidResult covering;
        const double headroom = attempt.covering * static_cast<double>(request_.budget_bytes);
        covering.early = fluid_.early;
        covering.away = cover(workload_, machine_, table, fluid_.evictions_limit,
                              {.budget_bytes = request_.budget_bytes,
                               .headroom_bytes = static_cast<std::uint64_t>(headroom)});
        if (!covering.away.empty() && try_selection(table, covering, attempt.trim)) {
            best_fluid_ = std::move(covering);
        }
        return good_enough();
    }

    FluidResult fluid_of(const GapTable& as_seen, const FluidOptions& options, bool whole) const {
        if (!condensed_ || whole) return solve_fluid(workload_, machine_, as_seen, axis_, options);
        const Workload& small = condensed_->workload;
        const FluidResult fluid =
            solve_fluid(small, machine_, condensed_table_, axis_of(small), options);
        if (fluid.away.empty()) return fluid;
        return expand(fluid, workload_, *condensed_, as_seen, condensed_table_);
    }

    void try_more(const GapTable& table) {
        const GapTable apart = each_by_itself(table);
        for (const Attempt& attempt : kMoreAttempts) {
            if (attempt.apart && apart.content_count == table.content_count) continue;
            if (attempt.small_parts && (request_.whole_tensors || peak_bytes_ >= kLargePeakBytes)) {
                continue;
            }
            if (!affordable(attempt)) continue;
            if (try_attempt(table, attempt.apart ? apart : table, attempt)) return;
        }
        if (late()) return;
        headroom_per_us_ = 0;
        for (const double headroom : {0.0, 0.05, 0.15}) {
            headroom_bytes_ =
                static_cast<std::uint64_t>(headroom * static_cast<double>(request_.budget_bytes));
            for (const bool trim : {false, true}) try_selection(table, {}, trim);
        }
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

    /// As fast as with memory without limit.
    bool good_enough() const {
        return best_ && best_->predicted.iteration_us <= axis_.back() * (1 + 1e-6);
    }

    /// Completes a selection, schedules it and keeps the plan if it is the best so far.
    bool try_selection(const GapTable& table, const FluidResult& fluid, bool trim) {
        SelectionOptions options;
        options.budget_bytes = request_.budget_bytes;
        options.headroom_bytes = headroom_bytes_;
        options.headroom_per_us = headroom_per_us_;
        options.host_limit_bytes = request_.host_limit_bytes;
        options.whole_tensors = request_.whole_tensors;
        options.part_bytes = schedule_.part_bytes;
        options.begin_with = fluid.away;
        options.furthest_next_use = furthest_;
        options.furthest_least_bytes = furthest_least_bytes_;
        options.trim = trim;
        schedule_.early_bytes = fluid.early;
        const auto away = select_gaps(workload_, machine_, table, axis_, options);
        if (!away) {
            report(away.error());
            return false;
        }
        Schedule made = schedule(workload_, machine_, table, *away, schedule_);
        scheduled_us_ = made.last_round_us;
        const auto absent = absent_bytes(table, *away);
        const std::uint64_t host_bytes = *std::max_element(absent.begin(), absent.end());
        const double slower = best_ ? made.last_round_us / best_->predicted.iteration_us : 1;
        if (slower > kHopeless) return false;
        const bool both = slower <= kNoSlower || compared_ < kComparisons;
        double as_issued_us = 0;
        double by_place_us = 0;
        bool better = false;
        if (both || as_issued_wins_ >= 0) {
            better |= keep(std::move(made.plan), host_bytes, as_issued_us);
        }
        if (both || as_issued_wins_ < 0) {
            better |= keep(std::move(made.by_place), host_bytes, by_place_us);
        }
        if (both && as_issued_us != by_place_us) {
            ++compared_;
            as_issued_wins_ += as_issued_us < by_place_us ? 1 : -1;
        }
        return better;
    }

    /// Replays a plan and keeps it if it is the best so far. `us`: of its iteration.
    bool keep(Plan plan, std::uint64_t host_bytes, double& us) {
        us = std::numeric_limits<double>::infinity();
        auto replayed = replay(workload_, machine_, request_.budget_bytes, plan,
                               {.timeline = true, .max_iterations = 12});
        if (!replayed) {
            const ReplayError& failed = replayed.error();
            const auto reason = failed.short_bytes > 0 ? PlanError::Reason::OperationTooBig
                                                       : PlanError::Reason::BadWorkload;
            error_ = PlanError{reason, failed.op, request_.budget_bytes + failed.short_bytes,
                               failed.message};
            return false;
        }
        us = replayed->iteration_us;
        if (best_ && best_->predicted.iteration_us <= us) return false;
        best_ = PlanResult{
            .plan = std::move(plan), .predicted = std::move(*replayed), .host_bytes = host_bytes};
        if (request_.on_better) {
            complete(*best_);
            request_.on_better(*best_);
        }
        return true;
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
    double spent_ms_ = 0;
    std::uint64_t headroom_bytes_ = 0;        ///< of the attempt under way
    double headroom_per_us_ = 0;              ///< likewise
    bool furthest_ = false;                   ///< likewise
    std::uint64_t furthest_least_bytes_ = 0;  ///< likewise
    double scheduled_us_ = 0;                 ///< what the last schedule takes
    int compared_ = 0;                        ///< plans replayed with both orders of fetches
    int as_issued_wins_ = 0;                  ///< of those, less those faster by place
    std::vector<double> axis_;
    std::optional<Condensed> condensed_;  ///< what the fluid is made for, where it repeats itself
    GapTable condensed_table_;
    bool repeats_ = false;  ///< if too seldom to be condensed
    ScheduleOptions schedule_;
    FluidResult fluid_;                ///< solved last
    const Attempt* solved_ = nullptr;  ///< by which attempt; null: none of this table's
    FluidResult best_fluid_;           ///< that the best plan began with
    std::optional<PlanResult> best_;
    std::optional<PlanError> error_;
};

}  // namespace

tl::expected<PlanResult, PlanError> make_plan(const Workload& workload, const Machine& machine,
                                              const PlanRequest& request) {
    return Planner(workload, machine, request).run();
}

}  // namespace libswap::cost
