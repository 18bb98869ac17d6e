// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/selection.hpp"

#include <algorithm>

namespace libswap::cost {

namespace {

class Selection {
  public:
    Selection(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const double> op_start_us, const SelectionOptions& options)
        : tensors_(workload.tensors()),
          machine_(machine),
          table_(table),
          start_(op_start_us),
          options_(options),
          ops_(static_cast<OpIndex>(workload.op_count())),
          away_(table.gaps.size()),
          on_host_(table.content_count),
          over_(ops_),
          absent_(ops_),
          over_time_(ops_ + 1) {
        for (OpIndex k = 0; k < ops_; ++k) {
            over_[k] = static_cast<std::int64_t>(table.live_bytes[k]) -
                       static_cast<std::int64_t>(options.budget_bytes);
        }
        for (std::size_t g = 0; g < table.gaps.size(); ++g) {
            const Gap& gap = table.gaps[g];
            if (table.always_clean[gap.content]) on_host_[gap.content] = bytes(gap);
        }
        for (std::size_t g = 0; g < options.begin_with.size(); ++g) begin_with(g);
    }

    tl::expected<std::vector<std::uint64_t>, SelectionError> run() {
        for (;;) {
            const auto worst = std::max_element(over_.begin(), over_.end());
            if (*worst <= 0) return std::move(away_);
            const auto op = static_cast<OpIndex>(worst - over_.begin());
            sum_over_time();
            if (!take_best(op)) {
                return tl::unexpected(
                    SelectionError{op, static_cast<std::uint64_t>(*worst), host_full_});
            }
        }
    }

  private:
    std::uint64_t bytes(const Gap& gap) const { return tensors_[gap.tensor].bytes; }

    bool covers(const Gap& gap, OpIndex op) const {
        return (gap.from < op && op < gap.to) || (gap.from < op + ops_ && op + ops_ < gap.to);
    }

    template <typename Visit>
    void each_op(const Gap& gap, Visit visit) const {
        for (OpIndex k = gap.from + 1; k < gap.to; ++k) visit(k < ops_ ? k : k - ops_);
    }

    void begin_with(std::size_t g) {
        const std::uint64_t whole = bytes(table_.gaps[g]);
        std::uint64_t amount = options_.begin_with[g];
        if (options_.whole_tensors) {
            amount = amount > whole / 2 ? whole : 0;
        } else {
            amount = std::min(whole, (amount + options_.part_bytes - 1) / options_.part_bytes *
                                         options_.part_bytes);
        }
        amount = std::min(amount, options_.whole_tensors && host_room(table_.gaps[g]) < whole
                                      ? 0
                                      : host_room(table_.gaps[g]));
        if (amount > 0) apply(g, amount);
    }

    void sum_over_time() {
        for (OpIndex k = 0; k < ops_; ++k) {
            over_time_[k + 1] = over_time_[k] + (over_[k] > 0 ? start_[k + 1] - start_[k] : 0);
        }
    }

    double time(const std::vector<double>& sums, OpIndex op) const {
        return op <= ops_ ? sums[op] : sums[ops_] + sums[op - ops_];
    }

    /// Time over budget that a gap covers, less what its transfers take at its ends.
    double relief_us(const Gap& gap) const {
        return time(over_time_, gap.to) - time(over_time_, gap.from + 1);
    }

    double gap_us(const Gap& gap) const {
        const auto at = [&](OpIndex op) {
            return op <= ops_ ? start_[op] : start_[ops_] + start_[op - ops_];
        };
        return at(gap.to) - at(gap.from + 1);
    }

    double score(std::size_t g) const {
        const Gap& gap = table_.gaps[g];
        const std::uint64_t whole = bytes(gap);
        const double in_us = machine_.link.transfer_us(Direction::ToDevice, whole, false);
        const double out_us = on_host_[gap.content] > away_[g]
                                  ? 0
                                  : machine_.link.transfer_us(Direction::ToHost, whole, false);
        const double link_us = in_us + out_us;
        // What cannot leave and come back within the gap keeps the device waiting.
        const double late_us = std::max(0.0, link_us - gap_us(gap));
        return (relief_us(gap) + 1e-3) * static_cast<double>(whole) / (link_us + 3 * late_us);
    }

    bool take_best(OpIndex op) {
        double best_score = -1;
        std::size_t best = 0;
        for (std::size_t g = 0; g < table_.gaps.size(); ++g) {
            if (away_[g] == bytes(table_.gaps[g]) || !covers(table_.gaps[g], op)) continue;
            const double s = score(g);
            if (s <= best_score || host_room(table_.gaps[g]) < unit(g)) continue;
            best_score = s;
            best = g;
        }
        if (best_score < 0) return false;
        take(best);
        return true;
    }

    std::uint64_t unit(std::size_t g) const {
        const std::uint64_t left = bytes(table_.gaps[g]) - away_[g];
        return options_.whole_tensors ? left : std::min(left, options_.part_bytes);
    }

    std::uint64_t host_room(const Gap& gap) {
        if (options_.host_limit_bytes == UINT64_MAX) return UINT64_MAX;
        std::uint64_t most = 0;
        each_op(gap, [&](OpIndex k) { most = std::max(most, absent_[k]); });
        const std::uint64_t room =
            most >= options_.host_limit_bytes ? 0 : options_.host_limit_bytes - most;
        host_full_ |= room < bytes(gap);
        return room;
    }

    void take(std::size_t g) {
        const Gap& gap = table_.gaps[g];
        std::int64_t most = 0;
        each_op(gap, [&](OpIndex k) { most = std::max(most, over_[k]); });
        const std::uint64_t left = bytes(gap) - away_[g];
        std::uint64_t amount = left;
        if (!options_.whole_tensors) {
            const std::uint64_t unit = options_.part_bytes;
            const std::uint64_t want = (static_cast<std::uint64_t>(most) + unit - 1) / unit * unit;
            amount = std::min({left, want, std::max(unit, host_room(gap) / unit * unit)});
        }
        apply(g, amount);
    }

    void apply(std::size_t g, std::uint64_t amount) {
        const Gap& gap = table_.gaps[g];
        away_[g] += amount;
        on_host_[gap.content] = std::max(on_host_[gap.content], away_[g]);
        each_op(gap, [&](OpIndex k) {
            over_[k] -= static_cast<std::int64_t>(amount);
            absent_[k] += amount;
        });
    }

    const std::vector<Tensor>& tensors_;
    const Machine& machine_;
    const GapTable& table_;
    std::span<const double> start_;
    const SelectionOptions& options_;
    OpIndex ops_;
    std::vector<std::uint64_t> away_;
    std::vector<std::uint64_t> on_host_;  ///< per content: what some gap already copies
    std::vector<std::int64_t> over_;      ///< bytes over budget at each operation
    std::vector<std::uint64_t> absent_;
    std::vector<double> over_time_;  ///< prefix sums of the time over budget
    bool host_full_ = false;
};

}  // namespace

tl::expected<std::vector<std::uint64_t>, SelectionError> select_gaps(
    const Workload& workload, const Machine& machine, const GapTable& table,
    std::span<const double> op_start_us, const SelectionOptions& options) {
    return Selection(workload, machine, table, op_start_us, options).run();
}

}  // namespace libswap::cost
