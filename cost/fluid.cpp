// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "cost/content_class.hpp"
#include "cost/linear_program.hpp"

namespace libswap::cost {

namespace {

constexpr double kNeverWorthIt = 30;
constexpr double kNearlyNothing = 1e-3;  // keeps the optimum a point
constexpr double kOverBudget = 30;       // cost of memory that is not there, left to the repair

class Fluid {
  public:
    Fluid(const Workload& workload, const Machine& machine, const GapTable& table,
          std::span<const double> op_start_us, const FluidOptions& options)
        : tensors_(workload.tensors()),
          machine_(machine),
          table_(table),
          start_(op_start_us),
          options_(options),
          ops_(static_cast<OpIndex>(workload.op_count())),
          at_begins_(options.lower_bound || options.exact),
          held_(table.live_bytes),
          turning_(turning_bytes(workload, table)),
          away_(table.gaps.size()) {
        if (options.exact) add_headroom(workload);
        cut_slots();
    }

    FluidResult run() {
        find_needs();
        make_classes();
        double parts = 0;
        double bytes = 0;
        for (const Class& c : classes_) {
            parts += c.parts;
            bytes += c.bytes;
        }
        if (bytes > 0 && !at_begins_) latency_ = latency_share(parts, bytes);
        LinearProgram lp(kRows * slots_);
        add_slots(lp);
        for (Class& c : classes_) add_class(lp, c);
        const auto [x, prices] = lp.solve();
        if (x.empty()) return {};
        FluidResult result;
        for (Class& c : classes_) distribute(c, x);
        find_limits(prices, result);
        result.away = std::move(away_);
        result.iteration_us = start_[ops_];
        for (std::size_t s = 0; s < slots_; ++s) {
            result.iteration_us += x[s * kSlotColumns + Stall] * unit_us();
            if (!options_.copies_in_advance) continue;
            double early = 0;  // of its neighbours too: operations do not keep to slots so well
            for (const std::size_t near : {s + slots_ - 1, s, s + 1}) {
                early = std::max(early, x[near % slots_ * kSlotColumns + Early] * kGb);
            }
            result.early.insert(result.early.end(), first_op_[s + 1] - first_op_[s],
                                static_cast<std::uint64_t>(early));
        }
        return result;
    }

  private:
    /// What limits in each slot, by what a byte more would cost there: of the fetch, beyond the
    /// memory that it takes.
    void find_limits(const std::vector<double>& prices, FluidResult& result) const {
        constexpr double kLimits = 0.5;  // of the link's whole time for a byte
        const LinkForms forms(machine_.link);
        double limited = 0;
        double all = 0;
        for (std::size_t s = 0; s < slots_; ++s) {
            const std::size_t takes = at_begins_ ? s + 1 : s;
            const double room = takes > 0 && takes < slots_ ? prices[row(Absent, takes)] : 0;
            const double fetch = prices[row(Ahead, s)] - room;
            const double evict = -prices[row(Waiting, s)] * forms.out_rate;
            const double weight = std::accumulate(turning_.begin() + first_op_[s],
                                                  turning_.begin() + first_op_[s + 1], 0.0);
            all += weight;
            if (std::max(fetch, evict) > kLimits) limited += weight;
            result.evictions_limit.insert(result.evictions_limit.end(),
                                          first_op_[s + 1] - first_op_[s],
                                          evict > std::max(fetch, kLimits));
        }
        result.limited_share = all > 0 ? limited / all : 0;
    }

    enum Row : std::uint32_t { Waiting, Ahead, Absent, Early_, LinkIn, LinkOut };
    static constexpr std::size_t kRows = 4;  // the rows of the link are a group per slot
    /// Columns of each slot, in this order.
    enum Column : std::uint32_t {
        Wait,
        Early,
        NotEarly,
        Fetched,
        Gone,
        Short,
        Out,
        In,
        Stall,
        SlackIn,
        SlackOut,
        kSlotColumns
    };

    struct Span {
        OpIndex from;  ///< slot from which on it can move out; it is away in the ones after that
        OpIndex due;   ///< slot in which it has to be back at the latest
        OpIndex end;   ///< slot from which on it is not away any more
        bool last;     ///< not fetched
        auto operator<=>(const Span&) const = default;
    };

    struct Class : ContentClass {
        OpIndex written = 0;      ///< slot
        std::vector<Span> spans;  ///< of each gap
        double parts = 0;         ///< transfers each way
    };

    void add_headroom(const Workload& workload) {
        for (OpIndex k = 0; k < ops_; ++k) {
            const double wanted = static_cast<double>(options_.headroom_bytes) +
                                  options_.headroom_per_us * workload.op(k).duration_us;
            const std::uint64_t most =
                options_.budget_bytes - std::min(options_.budget_bytes, workload.op_bytes(k));
            held_[k] += std::min(static_cast<std::uint64_t>(wanted), most);
        }
    }

    std::uint32_t row(Row kind, std::size_t slot) const {
        return static_cast<std::uint32_t>(kind * slots_ + slot % slots_);
    }

    double bytes(std::uint32_t gap) const {
        return static_cast<double>(tensors_[table_.gaps[gap].tensor].bytes);
    }

    /// Slots are windows of equal weight; for a bound each begins where memory is highest in one.
    void cut_slots() {
        const double turning = std::accumulate(turning_.begin(), turning_.end(), 1.0);
        std::vector<double> weight(turning_);
        double sum = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            weight[k] = options_.weights.bytes * weight[k] / turning +
                        options_.weights.time * (start_[k + 1] - start_[k]) / start_[ops_] +
                        options_.weights.operations / ops_;
            sum += weight[k];
        }
        std::vector<bool> begins(ops_ + 1);
        begins[0] = true;
        double before = 0;
        std::size_t last = 0;
        OpIndex first = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            const double middle = before + weight[k] / 2;
            const auto window =
                static_cast<std::size_t>(middle / sum * static_cast<double>(options_.slots));
            if (window != last) {
                begins[begin_of_window(first, k)] = true;
                first = k;
            }
            last = window;
            before += weight[k];
        }
        begins[begin_of_window(first, ops_)] = true;
        slot_of_.resize(ops_);
        for (OpIndex k = 0; k < ops_; ++k) {
            if (begins[k]) first_op_.push_back(k);
            slot_of_[k] = static_cast<OpIndex>(first_op_.size() - 1);
        }
        slots_ = first_op_.size();
        first_op_.push_back(ops_);
    }

    OpIndex begin_of_window(OpIndex first, OpIndex end) const {
        if (!at_begins_) return first;
        const auto live = held_.begin();
        return static_cast<OpIndex>(std::max_element(live + first, live + end) - live);
    }

    OpIndex slot(OpIndex op) const {
        return slot_of_[op % ops_] + op / ops_ * static_cast<OpIndex>(slots_);
    }

    /// Memory of each slot, what gaps over all of it could free included. Where a gap begins or
    /// ends within, its share by `caution` counts as there.
    void find_needs() {
        if (at_begins_) {
            for (std::size_t s = 0; s < slots_; ++s) {
                need_.push_back(static_cast<double>(held_[first_op_[s]]));
            }
            return;
        }
        std::vector<double> inside(ops_ + 1);
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            const double part = (1 - options_.caution) * bytes(g);
            const OpIndex from = span_of(gap).from;
            const OpIndex to = slot(gap.to);
            const auto relieve = [&](OpIndex a, OpIndex b) {
                if (a >= b) return;
                inside[a % ops_] += part;
                const OpIndex end = (b - 1) % ops_ + 1;
                inside[end] -= part;
                if (end <= a % ops_) inside[0] += part;
            };
            const OpIndex begin_end = std::min(gap.to, end_of(from));
            relieve(gap.from + 1, begin_end);
            if (to != from) relieve(std::max(begin_of(to), gap.from + 1), gap.to);
        }
        need_.assign(slots_, 0);
        double relief = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            relief += inside[k];
            double& need = need_[slot_of_[k]];
            need = std::max(need, static_cast<double>(table_.live_bytes[k]) - relief);
        }
    }

    OpIndex begin_of(OpIndex s) const {
        const auto count = static_cast<OpIndex>(slots_);
        return first_op_[s % count] + s / count * ops_;
    }
    OpIndex end_of(OpIndex s) const {
        const auto count = static_cast<OpIndex>(slots_);
        return first_op_[s % count + 1] + s / count * ops_;
    }

    /// The slots of a gap. For a plan, what it moves takes memory in all of the slot in which it
    /// moves; for a bound it takes none in the slot in which it comes in.
    Span span_of(const Gap& gap) const {
        const OpIndex use = slot(gap.to);
        const bool at_begin = first_op_[slot_of_[gap.to % ops_]] == gap.to % ops_;
        const OpIndex due = at_begin ? use - 1 : use;
        if (at_begins_) return {slot(gap.from), due, due + 1, gap.last};
        if (!options_.strict) return {slot(gap.from), use, use, gap.last};
        return {slot(gap.from + 1), due, use, gap.last};
    }
    bool in_program(const Gap& gap) const {
        const Span span = span_of(gap);
        return span.end >= span.from + 2;
    }

    /// Gaps over less than a whole slot, for a bound over no beginning of one, are not in the
    /// program.
    void make_classes() {
        std::map<std::tuple<bool, OpIndex, std::vector<Span>>, std::size_t> known;
        each_content(
            table_, [&](const Gap& gap) { return in_program(gap); },
            [&](std::vector<std::uint32_t> gaps, bool clean) {
                if (!clean) keep_longest(gaps);
                add_content(known, std::move(gaps), clean);
            });
    }

    void keep_longest(std::vector<std::uint32_t>& gaps) const {
        constexpr std::size_t kMostGaps = 12;
        if (gaps.size() <= kMostGaps || options_.lower_bound) return;
        const auto length = [&](std::uint32_t g) {
            return table_.gaps[g].to - table_.gaps[g].from;
        };
        std::stable_sort(gaps.begin(), gaps.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
        gaps.resize(kMostGaps);
        std::sort(gaps.begin(), gaps.end());
    }

    template <typename Known>
    void add_content(Known& known, std::vector<std::uint32_t> gaps, bool clean) {
        std::vector<Span> spans;
        for (const std::uint32_t g : gaps) {
            spans.push_back(span_of(table_.gaps[g]));
        }
        const OpIndex written = clean ? 0 : slot(table_.written[table_.gaps[gaps[0]].content]);
        const auto [found, fresh] = known.try_emplace({clean, written, spans}, classes_.size());
        if (fresh) {
            classes_.emplace_back();
            classes_.back().clean = clean;
            classes_.back().written = written;
            classes_.back().spans = spans;
        }
        Class& c = classes_[found->second];
        const double whole = bytes(gaps[0]);
        c.parts += std::ceil(whole / static_cast<double>(options_.chunk_bytes));
        c.add(std::move(gaps), whole);
    }

    /// Does a stretch of slots, counted on past the end, hold slot 0 of any iteration?
    bool holds_start(OpIndex first, OpIndex end) const {
        const auto count = static_cast<OpIndex>(slots_);
        return first < end && (first % count == 0 || first / count != (end - 1) / count);
    }

    void add_class(LinearProgram& lp, Class& c) {
        // What small transfers lose to latency beyond the average is a cost; the average is in the
        // link's rate.
        const double above = std::max(0.0, latency_share(c.parts, c.bytes) - latency_);
        const double latency = (at_begins_ ? kNearlyNothing : 1) * 0.5 * above;
        const double small = options_.lower_bound ? kNearlyNothing : 1;
        std::vector<GapColumn> gaps;
        for (const auto& [from, due, end, last] : c.spans) {
            GapColumn& gap = gaps.emplace_back();
            gap.cost = latency + small * (1e-3 + 1e-3 / static_cast<double>(end - from));
            gap.dirty_cost = 2 * gap.cost;
            if (!last) gap.terms.emplace_back(row(Ahead, due), -1);
            if (last && row(Absent, end) != row(Absent, 0)) {
                gap.terms.emplace_back(row(Absent, end), -1);
            }
            if (row(Absent, from + 1) != row(Absent, 0))
                gap.terms.emplace_back(row(Absent, from + 1), 1);
            if (holds_start(from + 1, end)) gap.terms.emplace_back(row(Absent, 0), 1);
            gap.dirty_terms.emplace_back(row(Waiting, from), 1);
            add_window(gap.dirty_terms, c.written, from);
        }
        c.add_columns(lp, gaps);
    }

    /// A dirty amount can be copied in advance from its write to the slot before the gap.
    void add_window(LinearProgram::Terms& terms, OpIndex written, OpIndex from) const {
        const auto count = static_cast<OpIndex>(slots_);
        while (from < written) from += count;
        if (from - written >= count) from -= count;
        if (from == written) return;
        if (row(Early_, written) != row(Early_, 0)) terms.emplace_back(row(Early_, written), -1);
        if (row(Early_, from) != row(Early_, 0)) terms.emplace_back(row(Early_, from), 1);
        if (holds_start(written, from)) terms.emplace_back(row(Early_, 0), -1);
    }

    /// Latency of so many transfers over the time that their bytes take.
    double latency_share(double parts, double bytes) const {
        return machine_.link.to_device.setup_us() * parts / (unit_us() * bytes / kGb);
    }

    double unit_us() const { return kGb / (machine_.link.to_device.gbps * 1e3); }

    /// Memory of a slot that has to be away.
    double least_absent(std::size_t s) const {
        return std::max(0.0, need_[s] - static_cast<double>(options_.budget_bytes)) / kGb;
    }

    /// The variables of each slot, and its rows' right sides.
    void add_slots(LinearProgram& lp) const {
        const LinkForms forms(machine_.link);
        const double none = LinearProgram::kUnlimited;
        const double small = 1e-4 * (at_begins_ ? kNearlyNothing : 1);
        for (std::size_t s = 0; s < slots_; ++s) {
            const bool last = s + 1 == slots_;
            const double compute = (start_[first_op_[s + 1]] - start_[first_op_[s]]) / unit_us();
            const double slower = 1 + latency_;
            const LinearProgram::Row link_in = lp.add_group(2);
            const LinearProgram::Row link_out = link_in + 1;
            lp.set_right(link_in, compute);
            lp.set_right(link_out, compute);
            lp.set_right(row(Absent, s), least_absent(s) - (s == 0 ? 0 : least_absent(s - 1)));
            // Memory is in differences from slot to slot, but for slot 0, which has all of it.
            LinearProgram::Terms wait{{row(Waiting, s), -1}, {row(Waiting, s + 1), 1}};
            if (!last) wait.emplace_back(row(Absent, s + 1), -1);
            if (last) wait.emplace_back(row(Absent, 0), -1);
            if (s + 2 < slots_) wait.emplace_back(row(Absent, s + 2), 1);
            if (last && slots_ > 1) wait.emplace_back(row(Absent, 1), 1);
            lp.add_column(small, none, wait);
            LinearProgram::Terms early{
                {row(Waiting, s), 1}, {row(Waiting, s + 1), -1}, {row(Early_, s), 1}};
            if (!last) early.emplace_back(row(Early_, s + 1), -1);
            lp.add_column(options_.copies_in_advance ? small : kNeverWorthIt, none, early);
            LinearProgram::Terms not_early{{row(Early_, s), 1}};
            if (!last) not_early.emplace_back(row(Early_, s + 1), -1);
            lp.add_column(0, none, not_early);
            LinearProgram::Terms ahead{{row(Ahead, s), -1}, {row(Ahead, s + 1), 1}};
            if (at_begins_ ? last : s == 0) ahead.emplace_back(row(Absent, 0), -1);
            lp.add_column(small, none, ahead);
            for (const double sign : {-1.0, 1.0}) {  // absent beyond need, and short of it
                LinearProgram::Terms absent{{row(Absent, s), sign}};
                if (!last) absent.emplace_back(row(Absent, s + 1), -sign);
                lp.add_column(sign > 0 ? kOverBudget : 0, none, absent);
            }
            LinearProgram::Terms out{{row(Waiting, s), -1},
                                     {link_in, slower * forms.out_beside_in},
                                     {link_out, slower / forms.out_rate}};
            lp.add_column(0, none, out);
            LinearProgram::Terms in{
                {row(Ahead, s), 1}, {link_in, slower}, {link_out, slower * forms.in_beside_out}};
            // What comes in takes memory from the beginning of the slot on; for a bound, of the
            // next.
            const std::size_t takes = at_begins_ ? s + 1 : s;
            if (takes > 0 && takes < slots_) in.emplace_back(row(Absent, takes), -1);
            lp.add_column(0, none, in);
            lp.add_column(1, none, {{link_in, -1}, {link_out, -1}});
            lp.add_column(0, none, {{link_in, 1}});
            lp.add_column(0, none, {{link_out, 1}});
        }
    }

    /// Longest or largest first: whole gaps pay less latency than parts.
    void distribute(Class& c, const std::vector<double>& x) {
        std::stable_sort(c.members.begin(), c.members.end(), [&](const auto& a, const auto& b) {
            const auto length = [&](std::uint32_t g) {
                return table_.gaps[g].to - table_.gaps[g].from;
            };
            return options_.largest_first ? bytes(a[0]) > bytes(b[0]) : length(a[0]) > length(b[0]);
        });
        c.distribute(x, tensors_, table_, away_);
    }

    const std::vector<Tensor>& tensors_;
    const Machine& machine_;
    const GapTable& table_;
    std::span<const double> start_;
    const FluidOptions& options_;
    OpIndex ops_;
    bool at_begins_;                   ///< memory counts where slots begin, and only there
    std::vector<std::uint64_t> held_;  ///< memory of each operation, headroom included
    std::vector<double> turning_;      ///< bytes that begin or end to lie idle, per operation
    std::vector<std::uint64_t> away_;
    std::vector<OpIndex> slot_of_;
    std::vector<OpIndex> first_op_;  ///< of each slot, and the count of operations
    std::size_t slots_ = 0;
    double latency_ = 0;  ///< of the average transfer, as a share of its time
    std::vector<double> need_;
    std::vector<Class> classes_;
};

}  // namespace

FluidResult solve_fluid(const Workload& workload, const Machine& machine, const GapTable& table,
                        std::span<const double> op_start_us, const FluidOptions& options) {
    if (table.gaps.empty() || op_start_us.back() <= 0) return {};
    return Fluid(workload, machine, table, op_start_us, options).run();
}

}  // namespace libswap::cost
