// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/critical_fetches.hpp"

#include <algorithm>
#include <cmath>

#include "cost/next_use.hpp"
#include "cost/replay.hpp"

namespace libswap::cost {

namespace {

constexpr int kMostIterations = 12;
/// An operation that starts with a fetch's arrival may seem to start just before.
constexpr double kRoundingUs = 1.0;

struct Fetch {
    std::uint32_t action = 0;
    double arrived_us = 0;
    double transfer_us = 0;
    double slack_us = 0;
};

class CriticalFetches {
  public:
    CriticalFetches(const Workload& workload, const Machine& machine, const Plan& plan,
                    const ReplayResult& replayed)
        : workload_(workload),
          machine_(machine),
          plan_(plan),
          replayed_(replayed),
          next_use_(workload) {}

    std::vector<OpIndex> run(double slack_us) {
        note_fetches();
        // What holds up the next iteration's first fetches holds up this one's last.
        for (int round = 0; round < 2; ++round) hand_slack_down();
        std::vector<OpIndex> claims(plan_.actions.size(), kNoOperation);
        for (const Fetch& fetch : fetches_) {
            if (fetch.slack_us <= slack_us) {
                claims[fetch.action] = replayed_.fetch_times[fetch.action].claimed_at;
            }
        }
        return claims;
    }

  private:
    void note_fetches() {
        for (std::uint32_t i = 0; i < plan_.actions.size(); ++i) {
            const FetchTime& time = replayed_.fetch_times[i];
            const Action& action = plan_.actions[i];
            const OpIndex used_at = next_use_.of(action.tensor, action.op);
            if (time.claimed_at == kNoOperation || used_at == kNoOperation) continue;
            const double transfer_us =
                machine_.link.transfer_us(Direction::ToDevice, bytes_of(action, workload_), false);
            const double early_us = after(time.arrived_us, replayed_.op_start_us[used_at]);
            fetches_.push_back({i, time.arrived_us, transfer_us, early_us});
        }
        std::sort(fetches_.begin(), fetches_.end(),
                  [](const Fetch& a, const Fetch& b) { return a.arrived_us < b.arrived_us; });
    }

    /// From one moment of the iteration to another, going round.
    double after(double from_us, double to_us) const {
        const double period_us = replayed_.iteration_us;
        const double turns = std::floor((to_us - from_us + kRoundingUs) / period_us);
        return std::max(0.0, to_us - from_us - turns * period_us);
    }

    void hand_slack_down() {
        for (std::size_t i = fetches_.size(); i-- > 0;) {
            const Fetch& next = fetches_[i + 1 == fetches_.size() ? 0 : i + 1];
            const double apart_us = after(fetches_[i].arrived_us, next.arrived_us);
            const double idle_us = std::max(0.0, apart_us - next.transfer_us);
            fetches_[i].slack_us = std::min(fetches_[i].slack_us, next.slack_us + idle_us);
        }
    }

    const Workload& workload_;
    const Machine& machine_;
    const Plan& plan_;
    const ReplayResult& replayed_;
    const NextUse next_use_;
    std::vector<Fetch> fetches_;  ///< as they arrive
};

}  // namespace

std::vector<OpIndex> critical_claims(const Workload& workload, const Machine& machine,
                                     std::uint64_t budget_bytes, const Plan& plan,
                                     double slack_us) {
    const auto replayed =
        replay(workload, machine, budget_bytes, plan,
               {.timeline = true, .fetch_times = true, .max_iterations = kMostIterations});
    if (!replayed) return std::vector<OpIndex>(plan.actions.size(), kNoOperation);
    return CriticalFetches(workload, machine, plan, *replayed).run(slack_us);
}

}  // namespace libswap::cost
