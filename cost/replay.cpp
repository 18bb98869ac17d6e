// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/replay.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cost/action_table.hpp"
#include "cost/replay_history.hpp"
#include "cost/transfers.hpp"

namespace libswap::cost {

namespace {

/// Event by event, the same decisions as the referee's replay.
class Replay : private ReplayView {
  public:
    Replay(const Workload& workload, const Machine& machine, std::uint64_t budget_bytes,
           const Plan& plan, const ReplayOptions& options)
        : work_(workload),
          options_(options),
          plan_(plan),
          after_(workload.op_count(), plan, false),
          at_(workload.op_count(), plan, true),
          transfers_(workload, machine, budget_bytes),
          history_(options.min_iterations, options.max_iterations),
          starts_(workload.op_count() + 1) {
        if (options.fetch_times) transfers_.note_fetch_times(plan.actions.size());
        if (options.divide_least_bytes > 0) {
            transfers_.divide_late_fetches(options.divide_least_bytes, options.divide_unit_bytes);
        }
    }

    tl::expected<ReplayResult, ReplayError> run() {
        while (!history_.settled() && !error_) {
            start_everything();
            if (error_) break;
            if (!advance()) stuck();
        }
        if (error_) return tl::unexpected(std::move(*error_));
        return result();
    }

  private:
    void fail(TensorIndex tensor, std::int64_t short_bytes, std::string message) {
        if (error_) return;
        error_ = ReplayError{static_cast<OpIndex>(index_), tensor,
                             static_cast<std::uint64_t>(std::max<std::int64_t>(0, short_bytes)),
                             std::move(message)};
    }

    // -- what can begin now --

    void start_everything() {
        announce();
        start_op();
        transfers_.claim_memory(index_, running_, now_);
        transfers_.start_engines();
    }

    void announce() {
        while (announced_ < static_cast<std::int64_t>(index_)) {
            ++announced_;
            for (const Action* a : at_.at(static_cast<std::size_t>(announced_))) {
                const auto place = static_cast<std::uint32_t>(a - plan_.actions.data());
                transfers_.fetch(a->tensor, a->bytes, place);
            }
            if (options_.director != nullptr) ask_director();
        }
    }

    void ask_director() {
        directed_.clear();
        options_.director->before(static_cast<OpIndex>(index_), *this, directed_);
        for (const Action& a : directed_) {
            if (a.kind == ActionKind::In) {
                transfers_.fetch(a.tensor, a.bytes);
            } else {
                evict(a);
            }
        }
    }

    double now_us() const override { return now_; }
    double fetch_backlog_us() const override { return transfers_.fetch_backlog_us(); }
    double needed_backlog_us() const override { return transfers_.needed_backlog_us(index_); }
    double eviction_backlog_us() const override { return transfers_.eviction_backlog_us(); }
    bool is_leaving(TensorIndex tensor) const override { return transfers_.is_leaving(tensor); }

    void start_op() {
        if (running_ || !transfers_.can_start(index_)) return;
        if (const TensorIndex unwritten = transfers_.start(index_); unwritten != kNoTensor) {
            return fail(unwritten, 0,
                        fmt::format("operation {} reads tensor {}, which nothing has written",
                                    index_, work_.tensors()[unwritten].id));
        }
        starts_[index_] = now_;
        if (options_.director != nullptr) {
            options_.director->started(static_cast<OpIndex>(index_), now_,
                                       static_cast<std::uint64_t>(transfers_.leaving_bytes()));
        }
        running_ = true;
        left_us_ = work_.op(index_).duration_us;
    }

    // -- what ends next --

    bool advance() {
        double dt = transfers_.next_event_us(now_);
        if (running_) dt = std::min(dt, left_us_);
        dt = std::max(dt, 0.0);
        if (dt == std::numeric_limits<double>::infinity()) return false;
        now_ += dt;
        transfers_.advance(dt, now_);
        if (running_) {
            left_us_ -= dt;
            if (left_us_ <= CopyEngine::kEpsilonUs) end_op();
        }
        return true;
    }

    void end_op() {
        running_ = false;
        transfers_.end(index_);
        for (const Action* a : after_.at(index_)) evict(*a);
        if (options_.director != nullptr) {
            directed_.clear();
            options_.director->ended(static_cast<OpIndex>(index_), *this, directed_);
            for (const Action& a : directed_) evict(a);
        }
        if (++index_ == work_.op_count()) end_iteration();
    }

    void evict(const Action& a) {
        const std::int64_t id = work_.tensors()[a.tensor].id;
        switch (transfers_.evict(a, now_)) {
            case Transfers::Refusal::BeingFetched:
                return fail(
                    a.tensor, 0,
                    fmt::format("tensor {} is evicted after operation {} while it is being fetched",
                                id, index_));
            case Transfers::Refusal::NoHostCopy:
                return fail(
                    a.tensor, 0,
                    fmt::format("tensor {} is dropped after operation {} without a valid host copy",
                                id, index_));
            case Transfers::Refusal::None:
                break;
        }
    }

    /// The first iteration starts cold: what the plan fetches one iteration earlier, or never,
    /// comes when it is missed.
    void stuck() {
        const std::vector<TensorIndex> absent = transfers_.absent(index_);
        if (history_.empty() && transfers_.fetch_first(absent)) return;
        const std::int64_t short_bytes =
            std::max<std::int64_t>(0, transfers_.takes(index_) - transfers_.free_bytes());
        fail(absent.empty() ? kNoTensor : absent.front(), short_bytes,
             fmt::format("operation {} ({}) can never start: {} tensors are away, short of memory "
                         "by {} bytes",
                         index_, work_.name(index_), absent.size(), short_bytes));
    }

    // -- iterations --

    void end_iteration() {
        starts_[index_] = now_;
        index_ = 0;
        announced_ = -1;
        if (options_.timeline) timeline_ = starts_;
        began_us_ = std::exchange(ended_us_, now_);
        divisions_ = transfers_.take_divisions();
        StateHash state;
        transfers_.add_state(state, now_);
        history_.add({now_, static_cast<double>(transfers_.to_host_bytes()),
                      static_cast<double>(transfers_.to_device_bytes())},
                     state.value());
    }

    ReplayResult result() const {
        const ReplayHistory::End steady = history_.steady();
        ReplayResult r;
        r.iteration_us = steady.now_us;
        r.to_host_bytes = steady.to_host_bytes;
        r.to_device_bytes = steady.to_device_bytes;
        r.peak_used_bytes = static_cast<std::uint64_t>(transfers_.peak_used_bytes());
        r.host_bytes = static_cast<std::uint64_t>(transfers_.host_peak_bytes());
        r.op_start_us = timeline_;
        for (double& start : r.op_start_us) start -= timeline_.front();
        r.divisions = divisions_;
        r.fetch_times = transfers_.fetch_times();
        for (FetchTime& time : r.fetch_times) time.arrived_us -= began_us_;
        return r;
    }

    const Workload& work_;
    const ReplayOptions& options_;
    const Plan& plan_;
    ActionTable after_;
    ActionTable at_;
    Transfers transfers_;
    ReplayHistory history_;
    double now_ = 0;
    double began_us_ = 0;  ///< the last iteration that has ended
    double ended_us_ = 0;  ///< likewise
    std::size_t index_ = 0;
    std::int64_t announced_ = -1;
    bool running_ = false;
    double left_us_ = 0;
    std::vector<Action> directed_;
    std::vector<double> starts_;
    std::vector<double> timeline_;
    std::vector<Division> divisions_;
    std::optional<ReplayError> error_;
};

bool in_range(const Workload& workload, const Plan& plan) {
    return std::all_of(plan.actions.begin(), plan.actions.end(), [&](const Action& a) {
        return a.op < workload.op_count() && a.tensor < workload.tensors().size();
    });
}

}  // namespace

tl::expected<ReplayResult, ReplayError> replay(const Workload& workload, const Machine& machine,
                                               std::uint64_t budget_bytes, const Plan& plan,
                                               const ReplayOptions& options) {
    if (workload.op_count() == 0) {
        return tl::unexpected(ReplayError{.message = "the workload has no operations"});
    }
    if (!in_range(workload, plan)) {
        return tl::unexpected(
            ReplayError{.message = "an action names an unknown tensor or operation"});
    }
    return Replay(workload, machine, budget_bytes, plan, options).run();
}

}  // namespace libswap::cost
