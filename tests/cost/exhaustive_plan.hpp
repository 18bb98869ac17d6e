// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "cost/gaps.hpp"
#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/replay.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// Tries every plan of a small workload that moves whole tensors: for each gap to stay, or to leave
/// after any of its operations and to be fetched at any later one. What is due at one operation
/// goes in the order in which it is needed. Branches are cut only where no plan below them can fit
/// memory or beat the best so far.
class ExhaustivePlan {
  public:
    ExhaustivePlan(const Workload& workload, const Machine& machine, std::uint64_t budget_bytes)
        : work_(workload),
          machine_(machine),
          budget_(static_cast<std::int64_t>(budget_bytes)),
          table_(find_gaps(workload, 0)),
          ops_(static_cast<OpIndex>(workload.op_count())),
          choices_(table_.gaps.size()) {
        for (const std::uint64_t live : table_.live_bytes) {
            over_.push_back(static_cast<std::int64_t>(live) - budget_);
        }
        // What the gaps from each on could still relieve.
        relief_.assign(table_.gaps.size() + 1, std::vector<std::int64_t>(ops_, 0));
        for (std::size_t g = table_.gaps.size(); g-- > 0;) {
            relief_[g] = relief_[g + 1];
            const Gap& gap = table_.gaps[g];
            for (OpIndex k = gap.from + 1; k < gap.to; ++k) relief_[g][k % ops_] += bytes(gap);
        }
    }

    /// Steady iteration of the best plan, us; nothing if there is none.
    std::optional<double> run() {
        branch(0, 0);
        if (best_us_ == kNever) return std::nullopt;
        return best_us_;
    }
    const Plan& plan() const { return best_; }
    std::uint64_t replayed() const { return replayed_; }

    /// How many plans there are without cutting: (1 + pairs of operations) of each gap, multiplied.
    double plans() const {
        double count = 1;
        for (const Gap& gap : table_.gaps) {
            const double length = gap.to - gap.from;
            count *= 1 + length * (length - 1) / 2;
        }
        return count;
    }

  private:
    static constexpr double kNever = std::numeric_limits<double>::infinity();

    struct Choice {
        OpIndex out = 0;  ///< after this operation; equal to `in`: stays
        OpIndex in = 0;
    };

    std::int64_t bytes(const Gap& gap) const {
        return static_cast<std::int64_t>(work_.tensors()[gap.tensor].bytes);
    }

    bool can_fit(std::size_t g) const {
        for (OpIndex k = 0; k < ops_; ++k) {
            if (over_[k] > relief_[g][k]) return false;
        }
        return true;
    }

    void branch(std::size_t g, std::int64_t moved) {
        const double least_us = static_cast<double>(moved) / (machine_.link.to_device.gbps * 1e3);
        if (!can_fit(g) || std::max(least_us, work_.compute_us()) >= best_us_) return;
        if (g == table_.gaps.size()) return judge();
        const Gap& gap = table_.gaps[g];
        choices_[g] = {};
        branch(g + 1, moved);
        for (OpIndex out = gap.from; out + 1 < gap.to; ++out) {
            // Until its use it is away at most.
            for (OpIndex k = out + 1; k < gap.to; ++k) over_[k % ops_] -= bytes(gap);
            for (OpIndex in = gap.to; in > (gap.last ? gap.to - 1 : out + 1); --in) {
                choices_[g] = {out, in};
                branch(g + 1, moved + (gap.last ? 0 : bytes(gap)));
            }
            for (OpIndex k = out + 1; k < gap.to; ++k) over_[k % ops_] += bytes(gap);
        }
    }

    void judge() {
        std::vector<std::size_t> leaving;
        for (std::size_t g = 0; g < choices_.size(); ++g) {
            if (choices_[g].out != choices_[g].in) leaving.push_back(g);
        }
        const auto wait = [&](std::size_t g, OpIndex since) { return table_.gaps[g].to - since; };
        std::sort(leaving.begin(), leaving.end(), [&](std::size_t a, std::size_t b) {
            const OpIndex x = choices_[a].out % ops_;
            const OpIndex y = choices_[b].out % ops_;
            return x != y ? x < y : wait(a, choices_[a].out) < wait(b, choices_[b].out);
        });
        Plan plan;
        for (const std::size_t g : leaving) {
            plan.actions.push_back(
                {ActionKind::Out, table_.gaps[g].tensor, choices_[g].out % ops_, kWholeTensor});
        }
        std::sort(leaving.begin(), leaving.end(), [&](std::size_t a, std::size_t b) {
            const OpIndex x = choices_[a].in % ops_;
            const OpIndex y = choices_[b].in % ops_;
            return x != y ? x < y : wait(a, choices_[a].in) < wait(b, choices_[b].in);
        });
        for (const std::size_t g : leaving) {
            if (table_.gaps[g].last) continue;
            plan.actions.push_back(
                {ActionKind::In, table_.gaps[g].tensor, choices_[g].in % ops_, kWholeTensor});
        }
        ++replayed_;
        const auto result = replay(work_, machine_, static_cast<std::uint64_t>(budget_), plan);
        if (!result || result->iteration_us >= best_us_) return;
        best_us_ = result->iteration_us;
        best_ = std::move(plan);
    }

    const Workload& work_;
    const Machine& machine_;
    std::int64_t budget_;
    GapTable table_;
    OpIndex ops_;
    std::vector<Choice> choices_;
    std::vector<std::int64_t> over_;
    std::vector<std::vector<std::int64_t>> relief_;
    double best_us_ = kNever;
    Plan best_;
    std::uint64_t replayed_ = 0;
};

/// The same with every tensor in `parts` equal ones: plans for it are plans that move such parts.
inline Workload in_parts(const Workload& whole, std::uint64_t parts) {
    Workload w;
    for (const Tensor& t : whole.tensors()) {
        for (std::uint64_t p = 0; p < parts; ++p) {
            w.add_tensor({t.id * 10 + static_cast<std::int64_t>(p), t.bytes / parts, t.persistent});
        }
    }
    const auto part = [&](TensorIndex t, std::uint64_t p) {
        return static_cast<TensorIndex>(t * parts + p);
    };
    for (std::size_t i = 0; i < whole.op_count(); ++i) {
        std::vector<Use> uses;
        std::vector<TensorIndex> frees;
        for (std::uint64_t p = 0; p < parts; ++p) {
            for (const Use& u : whole.uses(i)) uses.push_back({part(u.tensor, p), u.read, u.write});
            for (const TensorIndex t : whole.frees(i)) frees.push_back(part(t, p));
        }
        w.add_op(whole.op(i).duration_us, whole.op(i).workspace_bytes, uses, frees, "op");
    }
    return w;
}

/// 6 to 8 operations on a few tensors, some of which live across iterations.
inline Workload small_workload(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto between = [&](std::uint64_t a, std::uint64_t b) {
        return a + random() % (b - a + 1);
    };
    constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
    const std::size_t ops = between(6, 8);
    const std::size_t persistent = between(1, 2);
    const std::size_t others = between(2, 3);
    Workload w;
    struct Life {
        std::size_t first, last;
    };
    std::vector<Life> lives;
    for (std::size_t t = 0; t < persistent + others; ++t) {
        w.add_tensor({static_cast<std::int64_t>(t), 2 * between(4, 64) * kMib, t < persistent});
        const std::size_t first = between(0, ops - 3);
        lives.push_back({first, between(first + 2, ops - 1)});
    }
    for (std::size_t i = 0; i < ops; ++i) {
        std::vector<Use> uses;
        std::vector<TensorIndex> frees;
        for (TensorIndex t = 0; t < lives.size(); ++t) {
            const bool first = i == lives[t].first;
            const bool last = i == lives[t].last;
            const bool between_them = i > lives[t].first && i < lives[t].last && random() % 5 == 0;
            if (!first && !last && !between_them) continue;
            uses.push_back({t, !first || t < persistent, first || random() % 3 == 0});
            if (last && t >= persistent) frees.push_back(t);
        }
        w.add_op(static_cast<double>(between(300, 6000)), between(0, 2) * 4 * kMib, uses, frees,
                 "op");
    }
    return w;
}

}  // namespace libswap::cost
