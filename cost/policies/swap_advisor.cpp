// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/swap_advisor.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr std::size_t kPopulation = 8;
constexpr int kGenerations = 5;
constexpr std::uint64_t kSmallestClass = std::uint64_t{1} << 20;  // smaller sizes share one

using Genes = std::vector<bool>;

class Search {
  public:
    explicit Search(const RivalInput& input) : in_(input) {
        for (const Tensor& t : input.workload().tensors()) sizes_.push_back(class_bytes(t.bytes));
        std::sort(sizes_.begin(), sizes_.end());
        sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
    }

    RivalResult run() {
        std::vector<Individual> all;
        // One pool for all, one per size, and random ones.
        all.push_back(evaluate(Genes(gene_count(), true)));
        if (!best_) return tl::unexpected(error_);
        all.push_back(evaluate(Genes(gene_count(), false)));
        while (all.size() < kPopulation) all.push_back(evaluate(random_genes()));
        for (int g = 0; g < kGenerations; ++g) next_generation(all);
        best_->note = fmt::format("{} plans simulated", evaluated_);
        return std::move(*best_);
    }

  private:
    struct Individual {
        Genes genes;
        double time_us = 0;
    };

    static std::uint64_t class_bytes(std::uint64_t bytes) {
        return std::max(bytes, kSmallestClass);
    }
    std::size_t gene_count() const { return sizes_.empty() ? 0 : sizes_.size() - 1; }

    Genes random_genes() {
        Genes genes(gene_count());
        for (std::size_t i = 0; i < genes.size(); ++i) genes[i] = random_() % 2 == 0;
        return genes;
    }

    std::vector<std::uint32_t> pools_of(const Genes& genes) const {
        std::vector<std::uint32_t> pool_of_size(sizes_.size(), 0);
        for (std::size_t i = 1; i < sizes_.size(); ++i) {
            pool_of_size[i] = pool_of_size[i - 1] + (genes[i - 1] ? 0 : 1);
        }
        std::vector<std::uint32_t> pools;
        for (const Tensor& t : in_.workload().tensors()) {
            const auto at = std::lower_bound(sizes_.begin(), sizes_.end(), class_bytes(t.bytes));
            pools.push_back(pool_of_size[static_cast<std::size_t>(at - sizes_.begin())]);
        }
        return pools;
    }

    Individual evaluate(Genes genes) {
        ++evaluated_;
        const auto pools = pools_of(genes);
        auto paged = page(in_.table, Advice(in_.workload().op_count()),
                          {.budget_bytes = in_.budget_bytes,
                           .order = VictimOrder::FurthestNextUse,
                           .pools = pools});
        Individual individual{std::move(genes), 1e300};
        if (!paged) {
            error_ = paged.error();
            return individual;
        }
        make_early(in_.table, in_.budget_bytes, *paged);
        auto result = run_plan(in_, std::move(paged->plan), "");
        if (result) {
            individual.time_us = result->predicted.iteration_us;
        } else {
            error_ = result.error();
        }
        keep_faster(best_, std::move(result));
        return individual;
    }

    void next_generation(std::vector<Individual>& all) {
        const auto faster = [](const Individual& a, const Individual& b) {
            return a.time_us < b.time_us;
        };
        std::stable_sort(all.begin(), all.end(), faster);
        const std::size_t kept = all.size() / 2;
        for (std::size_t i = kept; i < all.size(); ++i) {
            all[i] = evaluate(child(all[random_() % kept].genes, all[random_() % kept].genes));
        }
    }

    Genes child(const Genes& a, const Genes& b) {
        Genes genes = a;
        const std::size_t cut = genes.empty() ? 0 : random_() % genes.size();
        for (std::size_t i = cut; i < genes.size(); ++i) genes[i] = b[i];
        for (std::size_t i = 0; i < genes.size(); ++i) {
            if (random_() % 16 == 0) genes[i] = !genes[i];
        }
        return genes;
    }

    const RivalInput& in_;
    std::vector<std::uint64_t> sizes_;
    std::mt19937 random_{20200316};
    int evaluated_ = 0;
    std::optional<RivalPlan> best_;
    PlanError error_;
};

/// Moves the actions of one plan; operations are positions in the ring of the iteration.
class Early {
  public:
    Early(const UseTable& table, std::uint64_t budget_bytes, PagedPlan& paged)
        : table_(table),
          ops_(static_cast<OpIndex>(table.workload().op_count())),
          budget_(budget_bytes),
          actions_(paged.plan.actions),
          used_(paged.used_bytes) {}

    void run() {
        for (Action& a : actions_) {
            if (a.kind == ActionKind::Out) evict_early(a);
        }
        std::vector<Action> fetches;
        std::vector<OpIndex> due;
        for (std::size_t i = 0; i < actions_.size(); ++i) {
            if (actions_[i].kind != ActionKind::In) continue;
            due.push_back(actions_[i].op);
            fetch_early(actions_[i]);
            fetches.push_back(actions_[i]);
        }
        reorder(fetches, due);
    }

  private:
    /// To right after the last use before it.
    void evict_early(Action& a) {
        OpIndex k = a.op;
        for (OpIndex steps = 0; steps < ops_ && !uses(k, a.tensor); ++steps) {
            used_[k] -= bytes(a);
            k = (k + ops_ - 1) % ops_;
        }
        a.op = k;
    }

    void fetch_early(Action& a) {
        for (;;) {
            const OpIndex before = (a.op + ops_ - 1) % ops_;
            if (used_[before] + bytes(a) > budget_ || uses(before, a.tensor)) return;
            used_[before] += bytes(a);
            a.op = before;
        }
    }

    bool uses(OpIndex k, TensorIndex t) const {
        const auto all = table_.workload().uses(k);
        return std::any_of(all.begin(), all.end(), [t](const Use& u) { return u.tensor == t; });
    }

    std::uint64_t bytes(const Action& a) const {
        return table_.workload().tensors()[a.tensor].bytes;
    }

    /// Fetches of one operation in the order in which they are needed.
    void reorder(std::vector<Action>& fetches, const std::vector<OpIndex>& due) {
        std::erase_if(actions_, [](const Action& a) { return a.kind == ActionKind::In; });
        std::vector<std::size_t> order(fetches.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        const auto wait = [&](std::size_t i) { return (due[i] + ops_ - fetches[i].op) % ops_; };
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return wait(a) < wait(b); });
        for (const std::size_t i : order) actions_.push_back(fetches[i]);
    }

    const UseTable& table_;
    OpIndex ops_;
    std::uint64_t budget_;
    std::vector<Action>& actions_;
    std::vector<std::uint64_t>& used_;
};

}  // namespace

void make_early(const UseTable& table, std::uint64_t budget_bytes, PagedPlan& paged) {
    Early(table, budget_bytes, paged).run();
}

RivalResult swap_advisor_plan(const RivalInput& input) { return Search(input).run(); }

}  // namespace libswap::cost
