// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/capuchin.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr int kFeedbackIterations = 16;
constexpr double kFeedbackStep = 0.05;  // of T

struct Candidate {
    IdleSpan span;
    double copy_in_us = 0;
    double free_us = 0;  // FT
    double lead_us = 0;  // feedback so far
};

class Capuchin {
  public:
    explicit Capuchin(const RivalInput& input) : in_(input) { choose(); }

    std::size_t chosen() const { return chosen_.size(); }

    Advice advise() const {
        Advice advice(in_.workload().op_count());
        // Fetches due earlier go first.
        std::vector<std::pair<double, const Candidate*>> due;
        for (const Candidate& c : chosen_) due.emplace_back(in_start_us(c), &c);
        std::sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second->span.to < b.second->span.to;
        });
        for (const auto& [start, c] : due) {
            advice.evict_after[c->span.from].push_back(c->span.tensor);
            advice.fetch_at[trigger(*c, start)].push_back(c->span.tensor);
        }
        return advice;
    }

    /// Moves the triggers of fetches that were waited for; false if there were none.
    bool learn(const std::vector<double>& op_start_us) {
        bool moved = false;
        for (Candidate& c : chosen_) {
            const OpIndex b = c.span.to;
            const double ready = op_start_us[b - 1] + in_.workload().op(b - 1).duration_us;
            if (op_start_us[b] - ready <= 0.01 * c.copy_in_us) continue;
            if (trigger(c, in_start_us(c)) <= c.span.from + 1) continue;
            c.lead_us += kFeedbackStep * c.copy_in_us;
            moved = true;
        }
        return moved;
    }

  private:
    double in_start_us(const Candidate& c) const {
        return in_.table.start_us(c.span.to) - c.copy_in_us - c.lead_us;
    }

    OpIndex trigger(const Candidate& c, double start_us) const {
        OpIndex k = c.span.to;
        while (k > c.span.from + 1 && in_.table.start_us(k) > start_us) --k;
        return k;
    }

    void choose() {
        std::vector<Candidate> all;
        for (const IdleSpan& span : in_.table.idle_spans(false)) {
            const double in_us = in_.copy_us(Direction::ToDevice, span.tensor);
            const double idle_us = in_.table.start_us(span.to) - in_.table.start_us(span.from + 1);
            all.push_back(
                {span, in_us, idle_us - in_us - in_.copy_us(Direction::ToHost, span.tensor), 0});
        }
        std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
            return a.free_us > b.free_us;
        });
        over_.assign(in_.table.live_bytes().begin(), in_.table.live_bytes().end());
        for (std::int64_t& bytes : over_) bytes -= static_cast<std::int64_t>(in_.budget_bytes);
        std::vector<bool> taken(in_.workload().tensors().size());
        for (const bool first_pass : {true, false}) {
            for (const Candidate& c : all) {
                if (taken[c.span.tensor] == first_pass || !relieves(c)) continue;
                taken[c.span.tensor] = true;
                take(c);
            }
        }
    }

    bool relieves(const Candidate& c) const {
        return std::any_of(over_.begin() + c.span.from + 1, over_.begin() + c.span.to,
                           [](std::int64_t bytes) { return bytes > 0; });
    }

    void take(const Candidate& c) {
        const auto same = [&](const Candidate& other) {
            return other.span.tensor == c.span.tensor && other.span.from == c.span.from;
        };
        if (std::any_of(chosen_.begin(), chosen_.end(), same)) return;
        chosen_.push_back(c);
        for (OpIndex k = c.span.from + 1; k < c.span.to; ++k) {
            over_[k] -= static_cast<std::int64_t>(in_.bytes(c.span.tensor));
        }
    }

    const RivalInput& in_;
    std::vector<Candidate> chosen_;
    std::vector<std::int64_t> over_;
};

}  // namespace

RivalResult capuchin_plan(const RivalInput& input) {
    Capuchin capuchin(input);
    std::optional<RivalPlan> best;
    PlanError error;
    for (int i = 0; i < kFeedbackIterations; ++i) {
        auto result =
            run_advice(input, capuchin.advise(), {},
                       fmt::format("{} swaps, {} iterations of feedback", capuchin.chosen(), i));
        if (!result) {
            error = result.error();
            break;
        }
        const std::vector<double> starts = result->predicted.op_start_us;
        keep_faster(best, std::move(result));
        if (!capuchin.learn(starts)) break;
    }
    if (!best) return tl::unexpected(error);
    return std::move(*best);
}

}  // namespace libswap::cost
