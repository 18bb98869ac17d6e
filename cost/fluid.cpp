// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "cost/linear_program.hpp"

namespace libswap::cost {

namespace {

constexpr double kGb =
    1e9;  // the program counts in 1e9 bytes, and in the time these take to come in
constexpr double kOverBudget = 30;  // cost of memory that is not there, left to the repair

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
          away_(table.gaps.size()) {
        cut_slots();
    }

    std::vector<std::uint64_t> run() {
        find_needs();
        make_classes();
        LinearProgram lp(kRows * slots_);
        add_slots(lp);
        for (Class& c : classes_) add_class(lp, c);
        const std::vector<double> x = lp.solve();
        if (x.empty()) return {};
        for (const Class& c : classes_) distribute(c, x[c.column] * kGb);
        return std::move(away_);
    }

  private:
    enum Row : std::uint32_t { Waiting, Ahead, Memory, Limit, LinkIn, LinkOut, kRows };

    /// Gaps, or whole chains of gaps of one content, that are one to the program.
    struct Class {
        std::vector<std::pair<OpIndex, OpIndex>> spans;  ///< slots of each gap: from, to
        bool clean = false;
        double bytes = 0;
        double parts = 0;                                              ///< transfers each way
        std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  ///< first gap, count
        std::uint32_t column = 0;
    };

    std::uint32_t row(Row kind, std::size_t slot) const {
        return static_cast<std::uint32_t>(kind * slots_ + slot % slots_);
    }

    double bytes(std::uint32_t gap) const {
        return static_cast<double>(tensors_[table_.gaps[gap].tensor].bytes);
    }

    /// Slots that hold about the same bytes that begin or end to lie idle, and a fifth of that in
    /// time.
    void cut_slots() {
        std::vector<double> weight(ops_);
        double turning = 1;
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            weight[table_.gaps[g].from] += bytes(g);
            weight[table_.gaps[g].to % ops_] += bytes(g);
            turning += 2 * bytes(g);
        }
        double sum = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            weight[k] = weight[k] / turning + 0.2 * (start_[k + 1] - start_[k]) / start_[ops_];
            sum += weight[k];
        }
        slot_of_.resize(ops_);
        double before = 0;
        std::size_t last = SIZE_MAX;
        for (OpIndex k = 0; k < ops_; ++k) {
            const double middle = before + weight[k] / 2;
            const auto slot =
                static_cast<std::size_t>(middle / sum * static_cast<double>(options_.slots));
            if (slot != last) first_op_.push_back(k);
            last = slot;
            slot_of_[k] = static_cast<OpIndex>(first_op_.size() - 1);
            before += weight[k];
        }
        slots_ = first_op_.size();
        first_op_.push_back(ops_);
    }

    OpIndex slot(OpIndex op) const {
        return slot_of_[op % ops_] + op / ops_ * static_cast<OpIndex>(slots_);
    }

    /// Memory of each slot, what gaps over all of it could free included. Where a gap begins or
    /// ends within, its share by `caution` counts as there.
    void find_needs() {
        std::vector<double> inside(ops_ + 1);
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            const double part = (1 - options_.caution) * bytes(g);
            const OpIndex from = slot(gap.from);
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

    void make_classes() {
        std::map<std::pair<bool, std::vector<std::pair<OpIndex, OpIndex>>>, std::size_t> known;
        const auto add = [&](std::uint32_t first, std::uint32_t count) {
            std::vector<std::pair<OpIndex, OpIndex>> spans;
            for (std::uint32_t g = first; g < first + count; ++g) {
                const std::pair<OpIndex, OpIndex> span{slot(table_.gaps[g].from),
                                                       slot(table_.gaps[g].to)};
                if (span.second < span.first + 2) continue;
                spans.push_back(span);
            }
            if (spans.size() != count) return;
            const bool clean = table_.always_clean[table_.gaps[first].content];
            const auto [found, fresh] = known.try_emplace({clean, spans}, classes_.size());
            if (fresh) classes_.push_back({spans, clean, 0, 0, {}, 0});
            Class& c = classes_[found->second];
            c.bytes += bytes(first);
            c.parts += std::ceil(bytes(first) / static_cast<double>(options_.chunk_bytes));
            c.members.emplace_back(first, count);
        };
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            add(g, 1);
            const std::uint32_t content = table_.gaps[g].content;
            if (table_.always_clean[content] || (g > 0 && table_.gaps[g - 1].content == content))
                continue;
            std::uint32_t count = 1;
            while (g + count < table_.gaps.size() && table_.gaps[g + count].content == content) {
                ++count;
                add(g, count);
            }
        }
    }

    void add_class(LinearProgram& lp, Class& c) {
        LinearProgram::Terms terms;
        const double gb_per_us_in = machine_.link.to_device.gbps * 1e3 / kGb;
        const double gb_per_us_out = machine_.link.to_host.gbps * 1e3 / kGb;
        const double setup_us = machine_.link.to_device.setup_us();
        // Latency as bytes more to move.
        const double in = 1 + setup_us * gb_per_us_in * c.parts / (c.bytes / kGb);
        const double out = 1 + setup_us * gb_per_us_out * c.parts / (c.bytes / kGb);
        double traffic = 0;
        for (std::size_t i = 0; i < c.spans.size(); ++i) {
            const auto [from, to] = c.spans[i];
            if (!c.clean && i == 0) {
                terms.emplace_back(row(Waiting, from), out);
                traffic += 1;
            }
            terms.emplace_back(row(Ahead, to), -in);
            traffic += 1;
            for (OpIndex s = from + 1; s < to; ++s) terms.emplace_back(row(Memory, s), -1.0);
            for (OpIndex s = from; s < to; ++s) terms.emplace_back(row(Limit, s), -1.0);
        }
        const double short_gap = 1e-3 / static_cast<double>(c.spans[0].second - c.spans[0].first);
        c.column = lp.add_column(1e-2 * traffic + short_gap, c.bytes / kGb, terms);
    }

    /// The variables of each slot, and its rows' right sides.
    void add_slots(LinearProgram& lp) const {
        const double unit_us = kGb / (machine_.link.to_device.gbps * 1e3);
        const double in_alone = 1;
        const double out_alone = machine_.link.to_host.gbps / machine_.link.to_device.gbps;
        const double in_both = machine_.link.to_device_duplex_gbps / machine_.link.to_device.gbps;
        const double out_both = machine_.link.to_host_duplex_gbps / machine_.link.to_device.gbps;
        const double none = LinearProgram::kUnlimited;
        for (std::size_t s = 0; s < slots_; ++s) {
            const double compute = (start_[first_op_[s + 1]] - start_[first_op_[s]]) / unit_us;
            const double room = (static_cast<double>(options_.budget_bytes) - need_[s]) / kGb;
            lp.set_right(row(Memory, s), room);
            lp.set_right(row(LinkIn, s), compute);
            lp.set_right(row(LinkOut, s), compute);
            // waiting[s-1] + evicted - out - waiting[s] = 0, ahead[s-1] + in - needed - ahead[s] =
            // 0
            lp.add_column(1e-4, none,
                          {{row(Waiting, s), -1},
                           {row(Waiting, s + 1), 1},
                           {row(Memory, s + 1), 1},
                           {row(Limit, s), 1}});
            lp.add_column(1e-4, none,
                          {{row(Ahead, s), -1},
                           {row(Ahead, s + 1), 1},
                           {row(Memory, s), 1},
                           {row(Limit, s), 1}});
            const double in_over_out = (1 - in_both / in_alone) / out_both;
            const double out_over_in = (1 - out_both / out_alone) / in_both;
            lp.add_column(0, none,
                          {{row(Waiting, s), -1},
                           {row(LinkIn, s), in_over_out},
                           {row(LinkOut, s), 1 / out_alone}});
            lp.add_column(0, none,
                          {{row(Ahead, s), 1},
                           {row(LinkIn, s), 1 / in_alone},
                           {row(LinkOut, s), out_over_in}});
            lp.add_column(1, none, {{row(LinkIn, s), -1}, {row(LinkOut, s), -1}});  // stall
            lp.add_column(kOverBudget, none,
                          {{row(Memory, s), -1}});  // over budget: left to the repair
            for (const Row kind : {Memory, Limit, LinkIn, LinkOut})
                lp.add_column(0, none, {{row(kind, s), 1}});
        }
    }

    /// Whole gaps first, longest first: parts cost latency.
    void distribute(const Class& c, double amount) {
        auto members = c.members;
        std::stable_sort(members.begin(), members.end(), [&](const auto& a, const auto& b) {
            const auto length = [&](std::uint32_t g) {
                return table_.gaps[g].to - table_.gaps[g].from;
            };
            return length(a.first) > length(b.first);
        });
        for (const auto& [first, count] : members) {
            const double want = std::min(amount, bytes(first));
            if (want < 0.02 * bytes(first)) continue;
            amount -= want;
            for (std::uint32_t g = first; g < first + count; ++g) {
                const std::uint64_t whole = tensors_[table_.gaps[g].tensor].bytes;
                away_[g] = std::min(whole, away_[g] + static_cast<std::uint64_t>(want));
                if (static_cast<double>(away_[g]) > 0.95 * static_cast<double>(whole))
                    away_[g] = whole;
            }
        }
    }

    const std::vector<Tensor>& tensors_;
    const Machine& machine_;
    const GapTable& table_;
    std::span<const double> start_;
    const FluidOptions& options_;
    OpIndex ops_;
    std::vector<std::uint64_t> away_;
    std::vector<OpIndex> slot_of_;
    std::vector<OpIndex> first_op_;  ///< of each slot, and the count of operations
    std::size_t slots_ = 0;
    std::vector<double> need_;
    std::vector<Class> classes_;
};

}  // namespace

std::vector<std::uint64_t> fluid_amounts(const Workload& workload, const Machine& machine,
                                         const GapTable& table, std::span<const double> op_start_us,
                                         const FluidOptions& options) {
    if (table.gaps.empty() || op_start_us.back() <= 0) return {};
    return Fluid(workload, machine, table, op_start_us, options).run();
}

}  // namespace libswap::cost
