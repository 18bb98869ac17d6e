// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/tflms.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 20;

struct Parameters {
    OpIndex threshold = 0;
    OpIndex ahead = 1;
    OpIndex groupby = 0;
    int sync_mode = 0;

    bool swapout_sync() const { return sync_mode == 1 || sync_mode == 3; }
    bool swapin_sync() const { return sync_mode == 2 || sync_mode == 3; }
};

/// One value of a tensor: its producer, then its consumers in order. The producer of the next value
/// is a consumer too, as it needs the memory.
struct Value {
    TensorIndex tensor = 0;
    std::vector<OpIndex> at;
};

/// What becomes of a value: it is on the device from first to last operation of each stay.
struct Stay {
    OpIndex fetch_at = 0;
    OpIndex first = 0;
    OpIndex last = 0;
};

class Tflms {
  public:
    explicit Tflms(const RivalInput& input) : in_(input) {
        ops_ = static_cast<OpIndex>(input.workload().op_count());
        collect_values();
        find_fixed_bytes();
    }

    bool search(Parameters& found) const {
        Parameters p;
        p.threshold = ops_;
        if (fits(p)) {
            found = p;
            return true;
        }
        for (p.sync_mode = 0; p.sync_mode < 4; ++p.sync_mode) {
            p.threshold = 0;
            if (fits(p)) break;
        }
        if (p.sync_mode == 4) return false;
        greatest(p, &Parameters::threshold);
        greatest(p, &Parameters::ahead);
        greatest(p, &Parameters::groupby);
        found = p;
        return true;
    }

    Advice advise(const Parameters& p, bool copy_early) const {
        Advice advice(ops_);
        double link_free_us = 0;
        for (const Value* v : by_producer_) {
            const auto stays = stays_of(*v, p);
            if (stays.size() < 2) continue;
            const OpIndex producer = v->at.front();
            const OpIndex near = stays.front().last;
            // Only one copy is ever made: later stays of the value are clean.
            const double begin = std::max(link_free_us, in_.table.start_us(producer + 1));
            link_free_us = begin + in_.copy_us(Direction::ToHost, v->tensor);
            if (copy_early && near > producer && link_free_us < in_.table.start_us(near + 1)) {
                advice.copy_after[producer].push_back(v->tensor);
            }
            for (std::size_t s = 0; s + 1 < stays.size(); ++s) {
                advice.evict_after[stays[s].last].push_back(v->tensor);
                advice.fetch_at[stays[s + 1].fetch_at].push_back(v->tensor);
            }
        }
        return advice;
    }

  private:
    void collect_values() {
        for (TensorIndex t = 0; t < in_.workload().tensors().size(); ++t) {
            if (in_.workload().tensors()[t].persistent) continue;
            Value value{t, {}};
            for (const UseTable::At& use : in_.table.uses(t)) {
                value.at.push_back(use.op);
                if (!use.write || value.at.size() == 1) continue;
                values_.push_back(value);
                value.at = {use.op};
            }
            if (!value.at.empty()) values_.push_back(std::move(value));
        }
        for (const Value& v : values_) by_producer_.push_back(&v);
        std::stable_sort(
            by_producer_.begin(), by_producer_.end(),
            [](const Value* a, const Value* b) { return a->at.front() < b->at.front(); });
    }

    /// Variables, workspaces, and tensors up to the end of their lives with no swapping.
    void find_fixed_bytes() {
        no_swap_.assign(in_.table.live_bytes().begin(), in_.table.live_bytes().end());
    }

    std::vector<Stay> stays_of(const Value& v, const Parameters& p) const {
        const OpIndex producer = v.at.front();
        std::vector<Stay> stays{{producer, producer, producer}};
        if (in_.bytes(v.tensor) < kSmallBytes) return stays;
        for (std::size_t c = 1; c < v.at.size(); ++c) {
            const OpIndex at = v.at[c];
            const bool far = at - producer > p.threshold;
            const bool joins = stays.size() > 1 && at - stays.back().last <= p.groupby;
            if (!far || joins) {
                stays.back().last = at;
            } else {
                stays.push_back({at, at, at});
            }
        }
        for (std::size_t s = 1; s < stays.size(); ++s) {
            const OpIndex ahead = p.swapin_sync() ? 0 : p.ahead;
            const OpIndex earliest = stays[s - 1].last + 1;
            const OpIndex wanted = stays[s].first > ahead ? stays[s].first - ahead : 0;
            stays[s].fetch_at = std::min(stays[s].first, std::max(wanted, earliest));
        }
        return stays;
    }

    /// The memory simulation: does each level fit?
    bool fits(const Parameters& p) const {
        std::vector<std::int64_t> change(ops_ + 1);
        for (const Value& v : values_) {
            const auto stays = stays_of(v, p);
            const auto bytes = static_cast<std::int64_t>(in_.bytes(v.tensor));
            for (std::size_t s = 0; s + 1 < stays.size(); ++s) {
                OpIndex gone = stays[s].last + 1;
                if (s == 0 && !p.swapout_sync()) gone = std::max(gone, v.at.front() + 2);
                const OpIndex back = stays[s + 1].fetch_at;
                if (gone >= back) continue;
                change[gone] -= bytes;
                change[back] += bytes;
            }
        }
        std::int64_t moved = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            moved += change[k];
            if (no_swap_[k] + moved > static_cast<std::int64_t>(in_.budget_bytes)) return false;
        }
        return true;
    }

    /// Binary search for the greatest value that fits, from one that does.
    void greatest(Parameters& p, OpIndex Parameters::*which) const {
        OpIndex low = p.*which;
        OpIndex high = ops_;
        while (low < high) {
            const OpIndex mid = low + (high - low + 1) / 2;
            p.*which = mid;
            if (fits(p)) {
                low = mid;
            } else {
                high = mid - 1;
            }
        }
        p.*which = low;
    }

    const RivalInput& in_;
    OpIndex ops_ = 0;
    std::vector<Value> values_;
    std::vector<const Value*> by_producer_;
    std::vector<std::int64_t> no_swap_;
};

}  // namespace

RivalResult tflms_plan(const RivalInput& input) {
    const Tflms tflms(input);
    Parameters p;
    if (!tflms.search(p)) return fall_back(input, "no threshold fits with the variables resident");
    const auto note = fmt::format("threshold {}, ahead {}, groupby {}, sync mode {}", p.threshold,
                                  p.ahead, p.groupby, p.sync_mode);
    const PagerOptions options{.evict_on_demand = false, .begin_resident = true};
    std::optional<RivalPlan> best;
    for (const bool copy_early : {false, true}) {
        keep_faster(best, run_advice(input, tflms.advise(p, copy_early), options, note));
    }
    if (!best) return fall_back(input, "what it simulates does not fit when run");
    return std::move(*best);
}

}  // namespace libswap::cost
