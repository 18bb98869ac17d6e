// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/covering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "cost/memory_rows.hpp"
#include "tests/cost/plain_machine.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kMb = 1'000'000;

/// A tensor, read by these operations and, where `written`, written by the first; freed by the last
/// where it does not persist.
struct Lane {
    std::uint64_t megabytes;
    std::vector<OpIndex> uses;
    bool written;
    bool persistent = true;
};

Workload workload_of(const std::vector<Lane>& lanes, OpIndex ops) {
    Workload w;
    for (std::size_t t = 0; t < lanes.size(); ++t) {
        w.add_tensor({static_cast<std::int64_t>(t), lanes[t].megabytes * kMb, lanes[t].persistent});
    }
    for (OpIndex k = 0; k < ops; ++k) {
        std::vector<Use> uses;
        std::vector<TensorIndex> frees;
        for (TensorIndex t = 0; t < lanes.size(); ++t) {
            const Lane& lane = lanes[t];
            if (std::count(lane.uses.begin(), lane.uses.end(), k) == 0) continue;
            const bool first = k == lane.uses.front();
            uses.push_back({t, !first || lane.persistent, first && lane.written});
            if (!lane.persistent && k == lane.uses.back()) frees.push_back(t);
        }
        w.add_op(10, 0, uses, frees, "op");
    }
    return w;
}

std::vector<double> need_of(const GapTable& table, std::uint64_t budget) {
    std::vector<double> need;
    for (const std::uint64_t live : table.live_bytes) {
        need.push_back(static_cast<double>(live) - static_cast<double>(budget));
    }
    return need;
}

double most_over(const GapTable& table, const std::vector<std::uint64_t>& away,
                 std::uint64_t budget) {
    const auto over = over_by(table, away, need_of(table, budget));
    return *std::max_element(over.begin(), over.end());
}

std::uint64_t away_of(const GapTable& table, const std::vector<std::uint64_t>& away, TensorIndex t,
                      OpIndex from) {
    for (std::size_t g = 0; g < table.gaps.size(); ++g) {
        if (table.gaps[g].tensor == t && table.gaps[g].from == from) return away[g];
    }
    ADD_FAILURE() << "no gap of tensor " << t << " behind operation " << from;
    return 0;
}

TEST(Covering, OneGapOverBothPeaksIsCheaperThanOneOverEach) {
    const Workload w = workload_of({{100, {0, 4, 8}, true, false},
                                    {100, {0, 8}, true, false},
                                    {100, {2}, true, false},
                                    {100, {6}, true, false}},
                                   9);
    const GapTable table = find_gaps(w, 0);
    const auto away =
        cover(w, plain_machine(), table, std::vector<bool>(9), {.budget_bytes = 200 * kMb});
    EXPECT_LE(most_over(table, away, 200 * kMb), 1e6);
    EXPECT_NEAR(static_cast<double>(away_of(table, away, 1, 0)), 100e6, 1e6);
    EXPECT_EQ(std::accumulate(away.begin(), away.end(), std::uint64_t{0}),
              away_of(table, away, 1, 0));
}

TEST(Covering, WhatIsCleanLeavesFirstWhereEvictionsLimit) {
    const std::vector<Lane> lanes{
        {100, {0, 4}, true}, {100, {0, 4}, false}, {100, {1, 2, 3}, true}};
    const Workload w = workload_of(lanes, 5);
    const GapTable table = find_gaps(w, 0);
    const auto away =
        cover(w, plain_machine(), table, std::vector<bool>(5, true), {.budget_bytes = 250 * kMb});
    EXPECT_NEAR(static_cast<double>(away_of(table, away, 1, 0)), 50e6, 1e6);
    EXPECT_EQ(away_of(table, away, 0, 0), 0);
}

TEST(Covering, HeadroomStaysFreeWhereOperationsLeaveIt) {
    const Workload w = workload_of({{100, {0, 4}, true}, {100, {1, 2, 3}, true}}, 5);
    const GapTable table = find_gaps(w, 0);
    const auto away = cover(w, plain_machine(), table, std::vector<bool>(5),
                            {.budget_bytes = 180 * kMb, .headroom_bytes = 30 * kMb});
    EXPECT_NEAR(static_cast<double>(away_of(table, away, 0, 0)), 50e6, 1e6);
}

TEST(Covering, NothingLeavesWhereAllFits) {
    const Workload w = workload_of({{100, {0, 4}, true}, {100, {1, 2, 3}, true}}, 5);
    const auto away = cover(w, plain_machine(), find_gaps(w, 0), std::vector<bool>(5),
                            {.budget_bytes = 500 * kMb});
    EXPECT_EQ(std::accumulate(away.begin(), away.end(), std::uint64_t{0}), 0);
}

Workload random_lanes(std::mt19937& random, OpIndex ops) {
    std::vector<Lane> lanes;
    for (int t = 0; t < 60; ++t) {
        Lane lane{10 + random() % 90, {}, random() % 4 > 0, random() % 4 == 0};
        for (int use = 0; use < 3; ++use) lane.uses.push_back(random() % ops);
        std::sort(lane.uses.begin(), lane.uses.end());
        if (!lane.persistent) lane.written = true;
        lanes.push_back(lane);
    }
    return workload_of(lanes, ops);
}

TEST(Covering, MemoryFitsAtEveryOperationOfRandomIterations) {
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
        const OpIndex ops = 20 + random() % 60;
        const Workload w = random_lanes(random, ops);
        const GapTable table = find_gaps(w, 0);
        std::uint64_t largest = 0;
        for (OpIndex k = 0; k < ops; ++k) largest = std::max(largest, w.op_bytes(k));
        const std::uint64_t budget = std::max(largest, w.peak_bytes() * (40 + random() % 50) / 100);
        std::vector<bool> evictions_limit(ops);
        for (OpIndex k = 0; k < ops / 2; ++k) evictions_limit[k] = true;
        const auto away =
            cover(w, plain_machine(), table, evictions_limit, {.budget_bytes = budget});
        ASSERT_EQ(away.size(), table.gaps.size()) << "round " << round;
        // Shares next to nothing are rounded away.
        const double most = 0.01 * static_cast<double>(w.peak_bytes());
        EXPECT_LE(most_over(table, away, budget), most) << "round " << round;
        for (std::size_t g = 0; g < away.size(); ++g) {
            EXPECT_LE(away[g], w.tensors()[table.gaps[g].tensor].bytes);
        }
    }
}

TEST(MemoryRows, AddUpToWhatGapsLeaveAtEachOperation) {
    std::mt19937 random(3);
    const OpIndex ops = 40;
    const Workload w = random_lanes(random, ops);
    const GapTable table = find_gaps(w, 0);
    MemoryRows rows(ops);
    std::vector<double> over(ops);
    std::vector<OpIndex> at;
    for (OpIndex k = 1; k < ops; k += 3) {
        over[k] = 1;
        at.push_back(k);
    }
    ASSERT_TRUE(rows.add_worst(over, 1));
    ASSERT_EQ(rows.size(), at.size());
    EXPECT_FALSE(rows.add_worst(over, 1));
    for (const Gap& gap : table.gaps) {
        LinearProgram::Terms terms;
        rows.add_terms(terms, rows.span_of(gap));
        EXPECT_LE(terms.size(), 3);
        double sum = 0;
        for (std::size_t r = 0; r < at.size(); ++r) {
            for (const auto& [row, value] : terms) sum += row == r ? value : 0;
            const bool spans = gap.from < at[r] && at[r] < gap.to;
            const bool in_the_next = at[r] + ops < gap.to;
            EXPECT_EQ(sum, spans || in_the_next) << gap.from << " to " << gap.to << " at " << at[r];
        }
    }
}

}  // namespace
}  // namespace libswap::cost
