// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/iteration.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace libswap::cost {

namespace {

/// The slots of the last period, and which tensor each belongs to. Operations of equal signatures
/// may have other numbers of operands in the period before, as parts of one buffer do that lie
/// elsewhere, or whose ends were not known yet: those say nothing.
class SlotClasses {
  public:
    SlotClasses(const Trace& trace, std::size_t first, std::size_t period)
        : trace_(trace), first_(first), period_(period), begin_(period + 1, 0) {
        for (std::size_t p = 0; p < period; ++p) {
            const std::size_t last = first + period + p;
            begin_[p + 1] = begin_[p] + static_cast<std::uint32_t>(trace.operands_of(last).size());
        }
        parent_.resize(begin_[period]);
        std::iota(parent_.begin(), parent_.end(), 0U);
        for (std::size_t i = first; i < first + 2 * period; ++i) join_operands(i);
    }

    std::uint32_t root(std::uint32_t slot) {
        while (parent_[slot] != slot) slot = parent_[slot] = parent_[parent_[slot]];
        return slot;
    }
    std::uint32_t slot(std::size_t op_of_period, std::size_t operand) const {
        return begin_[op_of_period] + static_cast<std::uint32_t>(operand);
    }
    std::uint32_t slot_count() const { return begin_[period_]; }
    /// A slot that a block was seen in, or slot_count().
    std::uint32_t slot_of_block(std::uint64_t block) const {
        const auto found = slot_of_.find(block);
        return found == slot_of_.end() ? slot_count() : found->second;
    }

  private:
    void join_operands(std::size_t op) {
        const std::size_t p = (op - first_) % period_;
        const auto operands = trace_.operands_of(op);
        if (operands.size() != begin_[p + 1] - begin_[p]) return;
        for (std::size_t k = 0; k < operands.size(); ++k) {
            const auto [known, fresh] = slot_of_.try_emplace(operands[k].block, slot(p, k));
            if (!fresh) parent_[root(slot(p, k))] = root(known->second);
        }
    }

    const Trace& trace_;
    std::size_t first_;
    std::size_t period_;
    std::vector<std::uint32_t> begin_;
    std::vector<std::uint32_t> parent_;
    std::unordered_map<std::uint64_t, std::uint32_t> slot_of_;
};

class Builder {
  public:
    Builder(const Trace& trace, std::size_t period, double default_us)
        : trace_(trace),
          period_(period),
          first_(trace.ops.size() - 2 * period),
          default_us_(default_us),
          classes_(trace, first_, period) {}

    Iteration build() {
        number_tensors();
        collect_frees();
        choose_origin();
        add_tensors();
        for (std::size_t i = 0; i < period_; ++i) add_op((iteration_.origin + i) % period_);
        find_blocks();
        return std::move(iteration_);
    }

  private:
    std::span<const TracedOperand> operands(std::size_t p) const {
        return trace_.operands_of(first_ + period_ + p);
    }

    void number_tensors() {
        tensor_of_root_.assign(classes_.slot_count(), kNoTensor);
        for (std::uint32_t slot = 0; slot < classes_.slot_count(); ++slot) {
            TensorIndex& tensor = tensor_of_root_[classes_.root(slot)];
            if (tensor == kNoTensor) tensor = tensor_count_++;
        }
        bytes_.assign(tensor_count_, 0);
        for (std::size_t p = 0; p < period_; ++p) {
            for (std::size_t k = 0; k < operands(p).size(); ++k) {
                std::uint64_t& bytes = bytes_[tensor(p, k)];
                bytes = std::max(bytes, operands(p)[k].bytes);
            }
        }
    }

    TensorIndex tensor(std::size_t p, std::size_t k) {
        return tensor_of_root_[classes_.root(classes_.slot(p, k))];
    }

    TensorIndex tensor_of_block(std::uint64_t block) {
        const std::uint32_t slot = classes_.slot_of_block(block);
        return slot == classes_.slot_count() ? kNoTensor : tensor_of_root_[classes_.root(slot)];
    }

    /// Of the last period, whose last operation's may not have come yet: those of the one before
    /// stand for them. A free of a block that no operation named says nothing about a tensor.
    void collect_frees() {
        frees_.resize(period_);
        freed_.assign(tensor_count_, false);
        for (std::size_t p = 0; p < period_; ++p) add_frees(p, first_ + period_ + p);
        add_frees(period_ - 1, first_ + period_ - 1);
    }

    void add_frees(std::size_t p, std::size_t op) {
        for (const std::uint64_t block : trace_.frees_of(op)) {
            const TensorIndex t = tensor_of_block(block);
            if (t == kNoTensor) continue;
            if (std::find(frees_[p].begin(), frees_[p].end(), t) == frees_[p].end()) {
                frees_[p].push_back(t);
            }
            freed_[t] = true;
        }
    }

    /// Where the fewest bytes of what is freed somewhere live across.
    void choose_origin() {
        std::vector<bool> live(tensor_count_);
        std::vector<std::uint64_t> crossing(period_);
        std::uint64_t now = 0;
        for (int round = 0; round < 2; ++round) {  // the first finds what lives on from before
            for (std::size_t p = 0; p < period_; ++p) {
                crossing[p] = now;
                for (std::size_t k = 0; k < operands(p).size(); ++k) {
                    const TensorIndex t = tensor(p, k);
                    if (!freed_[t] || live[t]) continue;
                    live[t] = true;
                    now += bytes_[t];
                }
                for (const TensorIndex t : frees_[p]) {
                    if (!live[t]) continue;
                    live[t] = false;
                    now -= bytes_[t];
                }
            }
        }
        const auto least = std::min_element(crossing.begin(), crossing.end());
        iteration_.origin = static_cast<OpIndex>(least - crossing.begin());
        // What lives across the origin anyway is kept for good: it may not leave the ledger.
        for (std::size_t i = 0; i < period_; ++i) {
            const std::size_t p = (iteration_.origin + i) % period_;
            for (std::size_t k = 0; k < operands(p).size(); ++k) live[tensor(p, k)] = true;
            for (const TensorIndex t : frees_[p]) live[t] = false;
        }
        for (TensorIndex t = 0; t < tensor_count_; ++t) {
            if (live[t]) freed_[t] = false;
        }
    }

    void add_tensors() {
        for (TensorIndex t = 0; t < tensor_count_; ++t) {
            iteration_.workload.add_tensor({t, bytes_[t], !freed_[t]});
        }
        seen_.assign(tensor_count_, false);
    }

    void add_op(std::size_t p) {
        uses_.clear();
        for (std::size_t k = 0; k < operands(p).size(); ++k) {
            const TensorIndex t = tensor(p, k);
            const TracedOperand& operand = operands(p)[k];
            // What begins with this operation has no content to read, whatever the operand says.
            const bool begins = freed_[t] && !seen_[t];
            uses_.push_back({t, operand.read && !begins, operand.write || begins});
            iteration_.slots.push_back(t);
        }
        for (const Use& use : uses_) seen_[use.tensor] = true;
        iteration_.slots_end.push_back(static_cast<std::uint32_t>(iteration_.slots.size()));
        std::vector<TensorIndex>& frees = frees_[p];
        std::erase_if(frees, [&](TensorIndex t) { return !freed_[t]; });
        for (const TensorIndex t : frees) seen_[t] = false;
        const Trace::Op& op = trace_.ops[first_ + period_ + p];
        const std::uint64_t workspace =
            std::max(op.workspace_bytes, trace_.ops[first_ + p].workspace_bytes);
        iteration_.workload.add_op(duration_us(p) + late_us(p), workspace, uses_, frees, op.name);
    }

    double duration_us(std::size_t p) const {
        const double a = trace_.ops[first_ + p].duration_us;
        const double b = trace_.ops[first_ + period_ + p].duration_us;
        if (a >= 0 && b >= 0) return (a + b) / 2;
        if (a >= 0 || b >= 0) return std::max(a, b);
        return default_us_;
    }

    double late_us(std::size_t p) const {
        const double a = trace_.ops[first_ + p].late_us;
        const double b = trace_.ops[first_ + period_ + p].late_us;
        return std::max(0.0, a < 0 || b < 0 ? std::max(a, b) : std::min(a, b));
    }

    void find_blocks() {
        iteration_.blocks.assign(tensor_count_, 0);
        for (std::size_t p = 0; p < period_; ++p) {
            for (std::size_t k = 0; k < operands(p).size(); ++k) {
                iteration_.blocks[tensor(p, k)] = operands(p)[k].block;
            }
        }
    }

    const Trace& trace_;
    std::size_t period_;
    std::size_t first_;
    double default_us_;
    SlotClasses classes_;
    std::vector<TensorIndex> tensor_of_root_;
    TensorIndex tensor_count_ = 0;
    std::vector<std::uint64_t> bytes_;
    std::vector<std::vector<TensorIndex>> frees_;
    std::vector<bool> freed_;  ///< ends in the iteration, so it is not persistent
    std::vector<bool> seen_;
    std::vector<Use> uses_;
    Iteration iteration_;
};

}  // namespace

std::span<const TracedOperand> Trace::operands_of(std::size_t op) const {
    const std::size_t begin = op == 0 ? 0 : ops[op - 1].operands_end;
    return {operands.data() + begin, ops[op].operands_end - begin};
}

std::span<const std::uint64_t> Trace::frees_of(std::size_t op) const {
    const std::size_t begin = op == 0 ? 0 : ops[op - 1].frees_end;
    return {frees.data() + begin, ops[op].frees_end - begin};
}

std::span<const TensorIndex> Iteration::slots_of(std::size_t op) const {
    const std::size_t begin = op == 0 ? 0 : slots_end[op - 1];
    return {slots.data() + begin, slots_end[op] - begin};
}

Iteration build_iteration(const Trace& trace, std::size_t period, double default_us) {
    if (period == 0 || trace.ops.size() < 2 * period) return {};
    return Builder(trace, period, default_us).build();
}

}  // namespace libswap::cost
