// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/selection.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include "cost/range_max.hpp"

namespace libswap::cost {

namespace {

/// Over budget is brought down in steps, so that gaps are judged by what is left to relieve.
constexpr std::array<double, 6> kLevels{0.8, 0.6, 0.4, 0.2, 0.1, 0};

class Selection {
  public:
    Selection(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const double> op_start_us, const SelectionOptions& options)
        : work_(workload),
          tensors_(workload.tensors()),
          machine_(machine),
          table_(table),
          start_(op_start_us),
          options_(options),
          ops_(static_cast<OpIndex>(workload.op_count())),
          away_(table.gaps.size()),
          on_host_(table.content_count),
          over_(initially_over()),
          absent_(std::vector<std::int64_t>(ops_, 0)),
          over_time_(ops_ + 1),
          over_count_(ops_ + 1) {
        for (const Gap& gap : table.gaps) {
            if (table.always_clean[gap.content]) on_host_[gap.content] = bytes(gap);
        }
        for (std::size_t g = 0; g < options.begin_with.size(); ++g) begin_with(g);
    }

    tl::expected<std::vector<std::uint64_t>, SelectionError> run() {
        if (options_.furthest_next_use) take_furthest();
        const auto most = static_cast<double>(over_.max(0, ops_));
        for (const double level : kLevels) relieve(static_cast<std::int64_t>(level * most));
        if (over_.max(0, ops_) > 0) return tl::unexpected(failure());
        if (options_.trim) trim();
        return std::move(away_);
    }

  private:
    std::uint64_t bytes(const Gap& gap) const { return tensors_[gap.tensor].bytes; }

    RangeMax initially_over() const {
        std::vector<std::int64_t> over(ops_);
        for (OpIndex k = 0; k < ops_; ++k) {
            std::uint64_t limit = options_.budget_bytes;
            const std::uint64_t headroom =
                options_.headroom_bytes +
                static_cast<std::uint64_t>(options_.headroom_per_us * work_.op(k).duration_us);
            if (headroom > 0) {
                limit -= std::min(limit, headroom);
                limit = std::max(limit, std::min(options_.budget_bytes, work_.op_bytes(k)));
            }
            over[k] =
                static_cast<std::int64_t>(table_.live_bytes[k]) - static_cast<std::int64_t>(limit);
        }
        return RangeMax(over);
    }

    SelectionError failure() const {
        const std::vector<std::int64_t> over = over_.values();
        const auto worst = std::max_element(over.begin(), over.end());
        return {static_cast<OpIndex>(worst - over.begin()), static_cast<std::uint64_t>(*worst),
                host_full_};
    }

    std::uint64_t whole_parts(std::uint64_t amount) const {
        const std::uint64_t unit = std::max<std::uint64_t>(1, options_.part_bytes);
        return (amount + unit - 1) / unit * unit;
    }

    void begin_with(std::size_t g) {
        const std::uint64_t whole = bytes(table_.gaps[g]);
        std::uint64_t amount = options_.begin_with[g];
        if (amount == 0) return;
        if (options_.whole_tensors) {
            amount = amount > whole / 2 ? whole : 0;
        } else {
            amount = std::min(whole, whole_parts(amount));
        }
        apply(g, std::min(amount, host_room(table_.gaps[g], amount)));
    }

    /// More of a gap, in whole parts: what relieves `over` bytes (above zero), or what is left of
    /// it, as far as the host has room.
    void take(std::uint32_t g, std::int64_t over) {
        const Gap& gap = table_.gaps[g];
        const std::uint64_t left = bytes(gap) - away_[g];
        const std::uint64_t wanted =
            options_.whole_tensors ? left
                                   : std::min(left, whole_parts(static_cast<std::uint64_t>(over)));
        apply(g, host_room(gap, wanted));
    }

    /// Belady's rule. Gaps over the end of the iteration are idle at its begin too.
    void take_furthest() {
        std::vector<std::vector<std::uint32_t>> begun(ops_);
        std::priority_queue<std::pair<OpIndex, std::uint32_t>> idle;  // until when, and which
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            if (bytes(gap) < options_.furthest_least_bytes) continue;
            begun[(gap.from + 1) % ops_].push_back(g);
            if (gap.to > ops_ && gap.from + 1 < ops_) idle.emplace(gap.to - ops_, g);
        }
        for (OpIndex k = 0; k < ops_; ++k) {
            for (const std::uint32_t g : begun[k]) {
                const Gap& gap = table_.gaps[g];
                idle.emplace(gap.from + 1 < ops_ ? gap.to : gap.to - ops_, g);
            }
            for (std::int64_t over = over_.max(k, k + 1); over > 0 && !idle.empty();) {
                const auto [until, g] = idle.top();
                if (until <= k) break;
                take(g, over);
                over = over_.max(k, k + 1);
                if (over > 0) idle.pop();
            }
        }
    }

    /// Takes the gaps that relieve most for their cost, until no operation is over `level` that
    /// any gap could relieve.
    void relieve(std::int64_t level) {
        if (over_.max(0, ops_) <= level) return;
        sum_over_time(level);
        std::vector<std::pair<double, std::uint32_t>> order;
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            if (away_[g] < bytes(gap) && relieves(gap)) order.emplace_back(-score(g), g);
        }
        std::sort(order.begin(), order.end());
        for (const auto& [score, g] : order) {
            const Gap& gap = table_.gaps[g];
            const std::int64_t most = over_.max(gap.from + 1, gap.to) - level;
            if (most > 0) take(g, most);
        }
    }

    /// Gives back what memory turned out to have room for, what costs most for its relief first.
    void trim() {
        std::vector<std::pair<double, std::uint32_t>> order;
        sum_over_time(INT64_MIN);
        for (std::uint32_t g = 0; g < away_.size(); ++g) {
            if (away_[g] > 0) order.emplace_back(score(g), g);
        }
        std::sort(order.begin(), order.end());
        for (const auto& [score, g] : order) {
            const Gap& gap = table_.gaps[g];
            const std::int64_t room = -over_.max(gap.from + 1, gap.to);
            if (room <= 0) continue;
            const std::uint64_t unit = std::max<std::uint64_t>(1, options_.part_bytes);
            std::uint64_t amount = std::min(away_[g], static_cast<std::uint64_t>(room));
            if (amount < away_[g]) amount = options_.whole_tensors ? 0 : amount / unit * unit;
            away_[g] -= amount;
            over_.add(gap.from + 1, gap.to, static_cast<std::int64_t>(amount));
        }
    }

    void sum_over_time(std::int64_t level) {
        const std::vector<std::int64_t> over = over_.values();
        for (OpIndex k = 0; k < ops_; ++k) {
            const bool is_over = over[k] > level;
            over_time_[k + 1] = over_time_[k] + (is_over ? start_[k + 1] - start_[k] : 0);
            over_count_[k + 1] = over_count_[k] + (is_over ? 1 : 0);
        }
    }

    template <typename Value>
    Value up_to(const std::vector<Value>& sums, OpIndex op) const {
        return op <= ops_ ? sums[op] : sums[ops_] + sums[op - ops_];
    }

    /// Is any operation that it covers over the level?
    bool relieves(const Gap& gap) const {
        return up_to(over_count_, gap.to) > up_to(over_count_, gap.from + 1);
    }

    /// Time over the level that a gap covers.
    double relief_us(const Gap& gap) const {
        return up_to(over_time_, gap.to) - up_to(over_time_, gap.from + 1);
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
        const double in_us =
            gap.last ? 0 : machine_.link.transfer_us(Direction::ToDevice, whole, false);
        const double out_us = on_host_[gap.content] > away_[g]
                                  ? 0
                                  : machine_.link.transfer_us(Direction::ToHost, whole, false);
        const double link_us = in_us + out_us;
        // What cannot leave and come back within the gap keeps the device waiting.
        const double late_us = std::max(0.0, link_us - gap_us(gap));
        return (relief_us(gap) + 1e-3) * static_cast<double>(whole) / (link_us + 3 * late_us);
    }

    /// How much of `wanted` the host still holds.
    std::uint64_t host_room(const Gap& gap, std::uint64_t wanted) {
        if (options_.host_limit_bytes >= INT64_MAX || wanted == 0) return wanted;
        const std::int64_t room = static_cast<std::int64_t>(options_.host_limit_bytes) -
                                  absent_.max(gap.from + 1, gap.to);
        if (room >= static_cast<std::int64_t>(wanted)) return wanted;
        host_full_ = true;
        if (room <= 0 || options_.whole_tensors) return 0;
        const std::uint64_t unit = std::max<std::uint64_t>(1, options_.part_bytes);
        return static_cast<std::uint64_t>(room) / unit * unit;
    }

    void apply(std::size_t g, std::uint64_t amount) {
        if (amount == 0) return;
        const Gap& gap = table_.gaps[g];
        away_[g] += amount;
        on_host_[gap.content] = std::max(on_host_[gap.content], away_[g]);
        over_.add(gap.from + 1, gap.to, -static_cast<std::int64_t>(amount));
        if (options_.host_limit_bytes < INT64_MAX) {
            absent_.add(gap.from + 1, gap.to, static_cast<std::int64_t>(amount));
        }
    }

    const Workload& work_;
    const std::vector<Tensor>& tensors_;
    const Machine& machine_;
    const GapTable& table_;
    std::span<const double> start_;
    const SelectionOptions& options_;
    OpIndex ops_;
    std::vector<std::uint64_t> away_;
    std::vector<std::uint64_t> on_host_;  ///< per content: what some gap already copies
    RangeMax over_;                       ///< bytes over budget at each operation
    RangeMax absent_;
    std::vector<double> over_time_;          ///< prefix sums of the time over the level
    std::vector<std::uint32_t> over_count_;  ///< likewise of the operations
    bool host_full_ = false;
};

}  // namespace

tl::expected<std::vector<std::uint64_t>, SelectionError> select_gaps(
    const Workload& workload, const Machine& machine, const GapTable& table,
    std::span<const double> op_start_us, const SelectionOptions& options) {
    return Selection(workload, machine, table, op_start_us, options).run();
}

}  // namespace libswap::cost
