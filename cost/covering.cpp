// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/covering.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "cost/content_class.hpp"
#include "cost/linear_program.hpp"
#include "cost/memory_rows.hpp"

namespace libswap::cost {

namespace {

constexpr double kLeastOver = 1e6;  ///< bytes: below, select_gaps does as well
constexpr int kMostRounds = 6;
constexpr std::size_t kMostRows = 200;
constexpr std::size_t kFirstWindows = 40;
constexpr double kOfAnyMove = 4e-3;  ///< in terms of a fetch's time: nothing moves for nothing
constexpr double kShort = 30;        ///< likewise: what is left to select_gaps

class Covering {
  public:
    Covering(const Workload& workload, const Machine& machine, const GapTable& table,
             const std::vector<bool>& evictions_limit, const CoveringOptions& options)
        : workload_(workload),
          forms_(machine.link),
          table_(table),
          evictions_limit_(evictions_limit),
          rows_(static_cast<OpIndex>(workload.op_count())),
          need_(workload.op_count()),
          need_gb_(workload.op_count()) {
        for (OpIndex k = 0; k < need_.size(); ++k) {
            const std::uint64_t free =
                options.budget_bytes - std::min(options.budget_bytes, options.headroom_bytes);
            const std::uint64_t limit = std::max(free, workload.op_bytes(k));
            need_[k] = static_cast<double>(table.live_bytes[k]) - static_cast<double>(limit);
            need_gb_[k] = std::max(0.0, need_[k]) / kGb;
        }
    }

    std::vector<std::uint64_t> run() {
        std::vector<std::uint64_t> away;
        bool more = rows_.add_worst(worst_of_windows(), 1);
        for (int round = 0; more && round < kMostRounds && rows_.size() <= kMostRows; ++round) {
            std::vector<std::uint64_t> solved = solve();
            if (solved.empty()) break;
            away = std::move(solved);
            more = rows_.add_worst(over_by(table_, away, need_), kLeastOver);
        }
        return away;
    }

  private:
    /// A gap's place in the program. Gaps of different prices are not one.
    struct Place {
        MemoryRows::Span rows;
        bool last = false;
        bool evictions_limit_from = false;
        bool evictions_limit_to = false;
        auto operator<=>(const Place&) const = default;
    };
    struct Class : ContentClass {
        std::vector<Place> places;
    };

    /// What is over with nothing away, at the worst operation of each window; elsewhere nothing.
    /// Windows are of equal bytes that begin and end to lie idle.
    std::vector<double> worst_of_windows() const {
        const std::vector<double> weight = turning_bytes(workload_, table_);
        const double all = std::accumulate(weight.begin(), weight.end(), 1.0);
        std::vector<double> worst(need_.size());
        double sum = 0;
        std::size_t window = 0;
        std::size_t best = 0;
        for (std::size_t k = 0; k < need_.size(); ++k) {
            sum += weight[k];
            const auto here = static_cast<std::size_t>((sum - weight[k] / 2) / all * kFirstWindows);
            if (here != window) {
                worst[best] = need_[best];
                window = here;
                best = k;
            }
            if (need_[k] > need_[best]) best = k;
        }
        worst[best] = need_[best];
        return worst;
    }

    std::vector<std::uint64_t> solve() {
        make_classes();
        LinearProgram lp(rows_.size());
        rows_.add_to(lp, need_gb_, kShort);
        for (Class& c : classes_) add_class(lp, c);
        const std::vector<double> values = lp.solve().values;
        if (values.empty()) return {};
        std::vector<std::uint64_t> away(table_.gaps.size());
        for (Class& c : classes_) distribute(c, values, away);
        return away;
    }

    void make_classes() {
        classes_.clear();
        std::map<std::tuple<bool, std::vector<Place>>, std::size_t> known;
        const auto covers = [&](const Gap& gap) {
            const MemoryRows::Span rows = rows_.span_of(gap);
            return rows.first < rows.end;
        };
        each_content(table_, covers, [&](std::vector<std::uint32_t> gaps, bool clean) {
            std::vector<Place> places;
            for (const std::uint32_t g : gaps) places.push_back(place_of(table_.gaps[g]));
            const auto [found, fresh] = known.try_emplace({clean, places}, classes_.size());
            if (fresh) {
                classes_.emplace_back();
                classes_.back().clean = clean;
                classes_.back().places = std::move(places);
            }
            const double bytes = bytes_of(gaps[0]);
            classes_[found->second].add(std::move(gaps), bytes);
        });
    }

    Place place_of(const Gap& gap) const {
        return {rows_.span_of(gap), gap.last, evictions_limit_[gap.from],
                evictions_limit_[gap.to % need_.size()]};
    }

    double bytes_of(std::uint32_t gap) const {
        return static_cast<double>(workload_.tensors()[table_.gaps[gap].tensor].bytes);
    }

    void add_class(LinearProgram& lp, Class& c) const {
        std::vector<GapColumn> gaps;
        for (const Place& place : c.places) {
            GapColumn& gap = gaps.emplace_back();
            rows_.add_terms(gap.terms, place.rows);
            const double fetch = place.evictions_limit_to ? forms_.in_beside_out : 1;
            const double evict =
                place.evictions_limit_from ? 1 / forms_.out_rate : forms_.out_beside_in;
            gap.cost = kOfAnyMove + (place.last ? 0 : fetch);
            gap.dirty_cost = gap.cost + evict;
        }
        c.add_columns(lp, gaps);
    }

    /// Largest first: fewer transfers.
    void distribute(Class& c, const std::vector<double>& values,
                    std::vector<std::uint64_t>& away) const {
        std::stable_sort(c.members.begin(), c.members.end(), [&](const auto& a, const auto& b) {
            return bytes_of(a[0]) > bytes_of(b[0]);
        });
        c.distribute(values, workload_.tensors(), table_, away);
    }

    const Workload& workload_;
    LinkForms forms_;
    const GapTable& table_;
    const std::vector<bool>& evictions_limit_;
    MemoryRows rows_;
    std::vector<double> need_;     ///< bytes that have to leave, per operation; below zero: room
    std::vector<double> need_gb_;  ///< likewise in 1e9 bytes, none below zero
    std::vector<Class> classes_;
};

}  // namespace

std::vector<std::uint64_t> cover(const Workload& workload, const Machine& machine,
                                 const GapTable& table, const std::vector<bool>& evictions_limit,
                                 const CoveringOptions& options) {
    return Covering(workload, machine, table, evictions_limit, options).run();
}

}  // namespace libswap::cost
