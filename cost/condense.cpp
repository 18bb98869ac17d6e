// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/condense.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

#include "cost/state_hash.hpp"

namespace libswap::cost {

namespace {

constexpr std::size_t kAlike = 16;         ///< operations in a row that have to be, to try a period
constexpr std::size_t kMostPeriods = 512;  ///< that are tried
constexpr double kLeastShare = 0.5;        ///< of the iteration that has to be repetitions

std::vector<std::uint64_t> signatures(const Workload& workload) {
    std::vector<std::uint64_t> result(workload.op_count());
    for (std::size_t i = 0; i < result.size(); ++i) {
        StateHash hash;
        for (const Use& use : workload.uses(i)) {
            const Tensor& tensor = workload.tensors()[use.tensor];
            hash.add(tensor.bytes);
            hash.add(4U * tensor.persistent + 2U * use.read + use.write);
        }
        hash.add(workload.op(i).workspace_bytes);
        hash.add(workload.frees(i).size());
        result[i] = hash.value();
    }
    return result;
}

/// A stretch of operations that repeats itself.
struct Repetition {
    std::size_t first = 0;
    std::size_t end = 0;
    std::size_t period = 0;
};

/// As far as signatures around `at` repeat themselves with this period.
Repetition extend(const std::vector<std::uint64_t>& ops, std::size_t at, std::size_t period) {
    std::size_t end = at;
    while (end + period < ops.size() && ops[end] == ops[end + period]) ++end;
    std::size_t first = at;
    while (first > 0 && ops[first - 1] == ops[first - 1 + period]) --first;
    return {first, end + period, period};
}

/// The shortest period that most of the iteration has. Layers repeat themselves too, but not for
/// so long.
std::optional<Repetition> find_repetition(const std::vector<std::uint64_t>& ops) {
    if (ops.size() < 4 * kAlike) return std::nullopt;
    const std::size_t at = ops.size() / 2;
    const auto begin = ops.begin() + static_cast<std::ptrdiff_t>(at);
    const auto least = static_cast<std::size_t>(kLeastShare * static_cast<double>(ops.size()));
    std::size_t tried = 0;
    for (std::size_t period = 1; at + period + kAlike <= ops.size(); ++period) {
        const auto other = begin + static_cast<std::ptrdiff_t>(period);
        if (!std::equal(begin, begin + kAlike, other)) continue;
        const Repetition found = extend(ops, at, period);
        if (found.end - found.first >= std::max(least, 2 * period)) return found;
        if (++tried == kMostPeriods) break;
    }
    return std::nullopt;
}

class Condenser {
  public:
    Condenser(const Workload& workload, std::size_t cut, std::size_t removed, std::size_t period)
        : workload_(workload), cut_(cut), removed_(removed), period_(period) {}

    Condensed run() {
        for (const Tensor& tensor : workload_.tensors()) result_.workload.add_tensor(tensor);
        find_stand_ins();
        for (std::size_t i = 0; i < workload_.op_count(); ++i) {
            result_.op_of.push_back(static_cast<OpIndex>(stands_for(i)));
            if (i >= cut_ && i < cut_ + removed_) continue;
            add_op(i, i >= cut_ + removed_);
        }
        result_.resume = static_cast<OpIndex>(cut_ + removed_);
        return std::move(result_);
    }

  private:
    std::size_t stands_for(std::size_t op) const {
        if (op < cut_) return op;
        if (op >= cut_ + removed_) return op - removed_;
        return cut_ - period_ + (op - cut_) % period_;
    }

    /// What lives on from the part left out: the same of the last repetition before it.
    void find_stand_ins() {
        std::vector<TensorIndex>& stand_in = result_.tensor_of;
        stand_in.resize(workload_.tensors().size());
        for (TensorIndex t = 0; t < stand_in.size(); ++t) stand_in[t] = t;
        for (std::size_t i = cut_; i < cut_ + removed_; ++i) {
            const auto uses = workload_.uses(i);
            const auto same = workload_.uses(stands_for(i));
            for (std::size_t u = 0; u < uses.size(); ++u) {
                stand_in[uses[u].tensor] = same[u].tensor;
            }
        }
    }

    void add_op(std::size_t op, bool after) {
        const auto& from = workload_.op(op);
        std::vector<Use> uses(workload_.uses(op).begin(), workload_.uses(op).end());
        std::vector<TensorIndex> frees(workload_.frees(op).begin(), workload_.frees(op).end());
        if (after) {
            for (Use& use : uses) use.tensor = result_.tensor_of[use.tensor];
            for (TensorIndex& t : frees) t = result_.tensor_of[t];
        }
        result_.workload.add_op(from.duration_us, from.workspace_bytes, uses, frees);
    }

    const Workload& workload_;
    std::size_t cut_;
    std::size_t removed_;
    std::size_t period_;
    Condensed result_;
};

/// The tensor of the condensed iteration that a gap's is there.
TensorIndex tensor_of(const Gap& gap, const Workload& workload, const Condensed& condensed) {
    if (gap.from >= condensed.resume) return condensed.tensor_of[gap.tensor];
    const OpIndex op = condensed.op_of[gap.from];
    if (op == gap.from) return gap.tensor;
    const auto uses = workload.uses(gap.from);
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const Use& u) { return u.tensor == gap.tensor; });
    return workload.uses(op)[static_cast<std::size_t>(use - uses.begin())].tensor;
}

std::uint64_t gap_key(OpIndex op, TensorIndex tensor) { return std::uint64_t{op} << 32 | tensor; }

}  // namespace

std::optional<Condensed> condense(const Workload& workload, std::size_t kept_periods) {
    const auto found = find_repetition(signatures(workload));
    if (!found) return std::nullopt;
    const std::size_t period = found->period;
    const std::size_t periods = (found->end - found->first) / period;
    if (kept_periods < 2 || periods <= kept_periods) return std::nullopt;
    // From the second repetition on, where the fewest bytes live on.
    const std::vector<std::uint64_t> live = workload.live_bytes();
    const auto second = live.begin() + static_cast<std::ptrdiff_t>(found->first + period);
    const auto lowest = std::min_element(second, second + static_cast<std::ptrdiff_t>(period));
    const auto cut = static_cast<std::size_t>(lowest - live.begin());
    // Of layers that are alike, each leaves more behind than the one before.
    const std::size_t last = cut + (periods - 2) * period;
    const auto most = std::max(live[cut], live[last]);
    if (most - std::min(live[cut], live[last]) > workload.peak_bytes() / 100) return std::nullopt;
    return Condenser(workload, cut, (periods - kept_periods) * period, period).run();
}

FluidResult expand(const FluidResult& fluid, const Workload& workload, const Condensed& condensed,
                   const GapTable& whole, const GapTable& small) {
    FluidResult result;
    result.iteration_us = fluid.iteration_us;
    std::unordered_map<std::uint64_t, std::uint64_t> away;
    for (std::size_t g = 0; g < small.gaps.size(); ++g) {
        const Gap& gap = small.gaps[g];
        if (fluid.away[g] > 0) away[gap_key(gap.from, gap.tensor)] = fluid.away[g];
    }
    for (const Gap& gap : whole.gaps) {
        const auto found =
            away.find(gap_key(condensed.op_of[gap.from], tensor_of(gap, workload, condensed)));
        result.away.push_back(found == away.end() ? 0 : found->second);
    }
    for (std::size_t k = 0; k < condensed.op_of.size() && !fluid.early.empty(); ++k) {
        result.early.push_back(fluid.early[condensed.op_of[k]]);
    }
    return result;
}

}  // namespace libswap::cost
