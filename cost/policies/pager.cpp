// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/pager.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr std::int64_t kGone = -1;
constexpr int kFreeIterations = 10;   // after these, the end is made to equal the beginning
constexpr int kMostIterations = 200;  // the beginning shrinks each time, so this is never reached

class Pager {
  public:
    Pager(const UseTable& table, const Advice& advice, const PagerOptions& options)
        : table_(table),
          work_(table.workload()),
          advice_(advice),
          options_(options),
          ops_(static_cast<OpIndex>(work_.op_count())),
          budget_(static_cast<std::int64_t>(options.budget_bytes)),
          here_(work_.tensors().size(), kGone),
          fetch_(work_.tensors().size()),
          key_(work_.tensors().size()),
          needed_(work_.tensors().size(), 0) {
        std::uint32_t pools = 1;
        for (const std::uint32_t pool : options.pools) pools = std::max(pools, pool + 1);
        order_.resize(pools);
        for (TensorIndex t = 0; t < here_.size(); ++t) {
            if (!work_.tensors()[t].persistent) continue;
            here_[t] = 0;
            if (options.begin_resident) add(t, bytes(t));
        }
    }

    tl::expected<PagedPlan, PlanError> run() {
        for (int iteration = 0; iteration < kMostIterations; ++iteration) {
            round_ = static_cast<std::uint64_t>(iteration);
            const bool closing = iteration >= kFreeIterations;
            const std::vector<std::int64_t> begin = here_;
            result_ = {};
            result_.used_bytes.resize(ops_);
            last_.clear();
            forbade_ = false;
            for (OpIndex k = 0; k < ops_ && !error_; ++k) step(k);
            if (error_) return tl::unexpected(std::move(*error_));
            if (closing) shrink_to(begin);
            if (here_ == begin && !forbade_) break;
        }
        append_last();
        std::erase_if(result_.plan.actions, [](const Action& a) { return a.bytes == 0; });
        return std::move(result_);
    }

  private:
    /// A fetch that was issued before its use.
    struct Issued {
        bool waiting = false;  // for its use
        std::size_t action = 0;
        std::uint64_t round = 0;
        OpIndex asked_at = 0;
        std::int64_t bytes = 0;
    };

    std::int64_t bytes(TensorIndex t) const {
        return static_cast<std::int64_t>(work_.tensors()[t].bytes);
    }
    bool absent(TensorIndex t) const { return here_[t] != kGone && here_[t] < bytes(t); }
    std::uint32_t pool(TensorIndex t) const {
        return options_.pools.empty() ? 0 : options_.pools[t];
    }

    void add(TensorIndex t, std::int64_t n) {
        if (n > 0 && here_[t] <= 0) order_[pool(t)].insert({key_[t], t});
        here_[t] = std::max<std::int64_t>(here_[t], 0) + n;
        used_ += n;
    }

    void remove(TensorIndex t, std::int64_t n) {
        here_[t] -= n;
        used_ -= n;
        if (here_[t] == 0 && n > 0) order_[pool(t)].erase({key_[t], t});
    }

    /// Higher keys leave first.
    void set_key(TensorIndex t, OpIndex k, bool fetched) {
        const double now = static_cast<double>(round_) * ops_ + k;
        double key = key_[t];
        switch (options_.order) {
            case VictimOrder::LeastRecentlyUsed:
                key = -now;
                break;
            case VictimOrder::FurthestNextUse: {
                const OpIndex next = table_.next_use(t, k);
                key = next == UINT32_MAX ? std::numeric_limits<double>::max() : now + (next - k);
                break;
            }
            case VictimOrder::LeastRecentlyFetched:
                if (fetched) key = -now;
                break;
        }
        if (here_[t] > 0) order_[pool(t)].erase({key_[t], t});
        key_[t] = key;
        if (here_[t] > 0) order_[pool(t)].insert({key_[t], t});
    }

    void step(OpIndex k) {
        ++stamp_;
        std::int64_t takes = static_cast<std::int64_t>(work_.op(k).workspace_bytes);
        std::int64_t most = 0;
        TensorIndex biggest = kNoTensor;
        for (const Use& use : work_.uses(k)) {
            needed_[use.tensor] = stamp_;
            const std::int64_t n = bytes(use.tensor) - std::max<std::int64_t>(0, here_[use.tensor]);
            takes += n;
            if (n > most) {
                most = n;
                biggest = use.tensor;
            }
        }
        if (!make_room(k, takes, biggest)) return;
        for (const Use& use : work_.uses(k)) take_operand(k, use.tensor);
        used_ += static_cast<std::int64_t>(work_.op(k).workspace_bytes);
        for (const TensorIndex t : advice_.fetch_at[k]) ask(t, k);
        serve_asked(k);
        result_.used_bytes[k] = static_cast<std::uint64_t>(used_);
        end_op(k);
    }

    void take_operand(OpIndex k, TensorIndex t) {
        fetch_[t].waiting = false;
        if (here_[t] == kGone) {
            add(t, bytes(t));
            set_key(t, k, true);
            return;
        }
        const bool fetched = absent(t);
        if (fetched) {
            result_.plan.actions.push_back({ActionKind::In, t, k, kWholeTensor});
            ++result_.demand_fetches;
            add(t, bytes(t) - here_[t]);
        }
        set_key(t, k, fetched);
        std::erase_if(asked_, [t](const auto& a) { return a.first == t; });
    }

    void end_op(OpIndex k) {
        used_ -= static_cast<std::int64_t>(work_.op(k).workspace_bytes);
        for (const TensorIndex t : work_.frees(k)) forget(t);
        for (const TensorIndex t : advice_.copy_after[k]) {
            if (here_[t] != kGone) {
                result_.plan.actions.push_back({ActionKind::Copy, t, k, kWholeTensor});
            }
        }
        for (const TensorIndex t : advice_.evict_after[k]) {
            if (here_[t] <= 0 || fetch_[t].waiting) continue;
            result_.plan.actions.push_back({ActionKind::Out, t, k, kWholeTensor});
            remove(t, here_[t]);
        }
    }

    void forget(TensorIndex t) {
        if (here_[t] == kGone) return;
        remove(t, here_[t]);
        here_[t] = kGone;
        fetch_[t].waiting = false;
    }

    // -- advised fetches --

    void ask(TensorIndex t, OpIndex k) {
        if (forbidden_.contains(std::uint64_t{t} << 32 | k)) return;
        if (absent(t)) asked_.emplace_back(t, k);
    }

    void serve_asked(OpIndex k) {
        bool full = false;  // one that found no victims: the others would not either
        std::erase_if(asked_, [&](const auto& a) {
            const auto [t, asked_at] = a;
            if (!absent(t)) return true;
            const std::int64_t n = bytes(t) - here_[t];
            if (used_ + n > budget_) {
                full = full || !options_.fetches_evict || !evict_for_fetch(k, n);
                if (full) return false;
            }
            fetch_[t] = {true, result_.plan.actions.size(), round_, asked_at, n};
            result_.plan.actions.push_back({ActionKind::In, t, k, kWholeTensor});
            add(t, n);
            set_key(t, k, true);
            return true;
        });
    }

    /// Room for an advised fetch, of what is not used soon. Takes nothing if that is not enough.
    bool evict_for_fetch(OpIndex k, std::int64_t n) {
        std::vector<TensorIndex> victims;
        std::int64_t over = used_ + n - budget_;
        for (auto it = order_[0].rbegin(); it != order_[0].rend() && over > 0; ++it) {
            const TensorIndex v = it->second;
            if (needed_[v] == stamp_ || fetch_[v].waiting) continue;
            if (table_.next_use(v, k) <= k + options_.look_ahead) continue;
            victims.push_back(v);
            over -= here_[v];
        }
        if (over > 0) return false;
        for (const TensorIndex v : victims) evict(v, k, used_ + n - budget_);
        return true;
    }

    /// Takes back a fetch that has not been used yet: as if it had not been issued.
    bool take_back_one(OpIndex k) {
        TensorIndex worst = kNoTensor;
        OpIndex furthest = 0;
        for (TensorIndex t = 0; t < here_.size(); ++t) {
            if (!fetch_[t].waiting || needed_[t] == stamp_) continue;
            const OpIndex next = table_.next_use(t, k);
            if (worst != kNoTensor && next <= furthest) continue;
            worst = t;
            furthest = next;
        }
        if (worst == kNoTensor) return false;
        take_back(worst);
        return true;
    }

    void take_back(TensorIndex t) {
        Issued& f = fetch_[t];
        if (f.round == round_) result_.plan.actions[f.action].bytes = 0;
        remove(t, f.bytes);
        forbidden_.insert(std::uint64_t{t} << 32 | f.asked_at);
        f.waiting = false;
        forbade_ = true;
    }

    // -- room on demand --

    bool make_room(OpIndex k, std::int64_t takes, TensorIndex request) {
        while (used_ + takes > budget_) {
            const TensorIndex v = options_.evict_on_demand ? victim(request) : kNoTensor;
            if (v != kNoTensor) {
                evict(v, k, used_ + takes - budget_);
                ++result_.demand_evictions;
            } else if (!take_back_one(k)) {
                fail(k, used_ + takes);
                return false;
            } else {
                takes = still_takes(k);
            }
        }
        return true;
    }

    std::int64_t still_takes(OpIndex k) const {
        auto sum = static_cast<std::int64_t>(work_.op(k).workspace_bytes);
        for (const Use& use : work_.uses(k)) {
            sum += bytes(use.tensor) - std::max<std::int64_t>(0, here_[use.tensor]);
        }
        return sum;
    }

    TensorIndex victim(TensorIndex request) const {
        if (request != kNoTensor) {
            const TensorIndex own = coldest(order_[pool(request)]);
            if (own != kNoTensor) return own;
        }
        TensorIndex best = kNoTensor;
        for (const auto& order : order_) {
            const TensorIndex t = coldest(order);
            if (t != kNoTensor && (best == kNoTensor || key_[t] > key_[best])) best = t;
        }
        return best;
    }

    TensorIndex coldest(const std::set<std::pair<double, TensorIndex>>& order) const {
        for (auto it = order.rbegin(); it != order.rend(); ++it) {
            const TensorIndex t = it->second;
            if (needed_[t] != stamp_ && !fetch_[t].waiting) return t;
        }
        return kNoTensor;
    }

    /// Evicts before operation k what covers `over`, at most all of the tensor.
    void evict(TensorIndex t, OpIndex k, std::int64_t over) {
        if (over <= 0) return;
        Action action{ActionKind::Out, t, (k + ops_ - 1) % ops_, kWholeTensor};
        std::int64_t n = here_[t];
        if (options_.page_bytes != kWholeTensor) {
            const auto page = static_cast<std::int64_t>(options_.page_bytes);
            n = std::min(n, (over + page - 1) / page * page);
            if (n < here_[t]) action.bytes = static_cast<std::uint64_t>(n);
        }
        (k == 0 ? last_ : result_.plan.actions).push_back(action);
        remove(t, n);
    }

    void fail(OpIndex k, std::int64_t need) {
        error_ =
            PlanError{PlanError::Reason::OperationTooBig, k, static_cast<std::uint64_t>(need),
                      fmt::format("operation {} ({}) needs {} bytes at once, the budget is {}", k,
                                  work_.name(k),
                                  options_.evict_on_demand ? work_.op_bytes(k) : need, budget_)};
    }

    // -- the end of the iteration --

    /// Makes the end no more than the beginning: fetches for the next iteration are taken back,
    /// what was not there in the beginning leaves after the last operation.
    void shrink_to(const std::vector<std::int64_t>& begin) {
        asked_.clear();
        for (TensorIndex t = 0; t < here_.size(); ++t) {
            if (fetch_[t].waiting) take_back(t);
            const std::int64_t excess = here_[t] - std::max<std::int64_t>(0, begin[t]);
            if (here_[t] == kGone || excess <= 0) continue;
            last_.push_back({ActionKind::Out, t, ops_ - 1, static_cast<std::uint64_t>(excess)});
            remove(t, excess);
        }
    }

    /// What leaves after the last operation goes behind what the advice evicts there.
    void append_last() {
        auto& actions = result_.plan.actions;
        actions.insert(actions.end(), last_.begin(), last_.end());
    }

    const UseTable& table_;
    const Workload& work_;
    const Advice& advice_;
    const PagerOptions& options_;
    OpIndex ops_;
    std::int64_t budget_;
    std::int64_t used_ = 0;
    std::vector<std::int64_t> here_;  // bytes on the device, fetches under way included
    std::vector<Issued> fetch_;
    std::vector<double> key_;
    std::vector<std::set<std::pair<double, TensorIndex>>> order_;  // per pool, by key
    std::vector<std::uint64_t> needed_;                            // by the operation of this stamp
    std::uint64_t stamp_ = 0;
    std::uint64_t round_ = 0;
    std::vector<std::pair<TensorIndex, OpIndex>> asked_;  // advised fetches without room yet
    std::unordered_set<std::uint64_t> forbidden_;         // tensor and operation of the advice
    bool forbade_ = false;
    std::vector<Action> last_;
    PagedPlan result_;
    std::optional<PlanError> error_;
};

}  // namespace

tl::expected<PagedPlan, PlanError> page(const UseTable& table, const Advice& advice,
                                        const PagerOptions& options) {
    return Pager(table, advice, options).run();
}

}  // namespace libswap::cost
