// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "cost/gaps.hpp"
#include "tests/cost/random_workload.hpp"

namespace libswap::cost {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

const Machine& a100() { return *find_machine("pcie4-a100"); }

std::uint64_t largest_op(const Workload& w) {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < w.op_count(); ++i) most = std::max(most, w.op_bytes(i));
    return most;
}

TEST(Planner, EveryPlanOfARandomWorkloadIsValid) {
    for (std::uint32_t seed = 0; seed < 14; ++seed) {
        const Workload w = random_training(seed, 4 + static_cast<int>(seed % 20));
        for (const double share : {0.9, 0.7, 0.5, 0.3}) {
            const auto wanted =
                static_cast<std::uint64_t>(share * static_cast<double>(w.peak_bytes()));
            const std::uint64_t budget = std::max(wanted, largest_op(w));
            for (const bool whole : {false, true}) {
                const auto result =
                    make_plan(w, a100(), {.budget_bytes = budget, .whole_tensors = whole});
                ASSERT_TRUE(result) << seed << ' ' << share << ' ' << result.error().message;
                const auto replayed = replay(w, a100(), budget, result->plan);
                ASSERT_TRUE(replayed) << seed << ' ' << share << ' ' << replayed.error().message;
                EXPECT_LE(replayed->peak_used_bytes, budget);
                EXPECT_GE(replayed->iteration_us, w.compute_us() * 0.999999);
                if (!whole) continue;
                for (const Action& a : result->plan.actions) EXPECT_EQ(a.bytes, kWholeTensor);
            }
        }
    }
}

TEST(Planner, NothingMovesWhereEverythingFits) {
    const Workload w = random_training(1, 10);
    const auto result = make_plan(w, a100(), {.budget_bytes = w.peak_bytes()});
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->plan.actions.empty());
    EXPECT_DOUBLE_EQ(result->predicted.iteration_us, w.compute_us());
}

TEST(Planner, NamesTheOperationThatCannotFit) {
    Workload w;
    const TensorIndex big = w.add_tensor({7, 100 * kMib, true});
    const TensorIndex small = w.add_tensor({8, kMib, true});
    w.add_op(10, 0, std::vector<Use>{{small, true, true}}, {}, "small");
    w.add_op(10, 8 * kMib, std::vector<Use>{{big, true, true}}, {}, "big");
    const auto result = make_plan(w, a100(), {.budget_bytes = 50 * kMib});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().reason, PlanError::Reason::OperationTooBig);
    EXPECT_EQ(result.error().op, 1U);
    EXPECT_EQ(result.error().need_bytes, 108 * kMib);
    EXPECT_NE(result.error().message.find("big"), std::string::npos);
}

TEST(Planner, SaysWhenTheHostHasNoRoom) {
    const Workload w = random_training(3, 16);
    const std::uint64_t budget = std::max(w.peak_bytes() / 2, largest_op(w));
    const auto result =
        make_plan(w, a100(), {.budget_bytes = budget, .host_limit_bytes = 3 * kMib});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().reason, PlanError::Reason::HostTooSmall);
}

TEST(Planner, KeepsWithinTheHostLimit) {
    const Workload w = random_training(5, 20);
    const std::uint64_t budget = std::max(w.peak_bytes() * 6 / 10, largest_op(w));
    const auto free = make_plan(w, a100(), {.budget_bytes = budget});
    ASSERT_TRUE(free);
    ASSERT_GT(free->host_bytes, 0U);
    const std::uint64_t limit = free->host_bytes + 8 * kMib;
    const auto limited = make_plan(w, a100(), {.budget_bytes = budget, .host_limit_bytes = limit});
    ASSERT_TRUE(limited) << limited.error().message;
    EXPECT_LE(limited->host_bytes, limit);
}

TEST(Planner, AReadOnlyWeightLeavesWithoutACopy) {
    Workload w;
    const TensorIndex frozen = w.add_tensor({1, 64 * kMib, true});
    const TensorIndex other = w.add_tensor({2, 64 * kMib, true});
    w.add_op(20'000, 0, std::vector<Use>{{frozen, true, false}}, {});
    w.add_op(20'000, 0, std::vector<Use>{{other, true, false}}, {});
    w.add_op(20'000, 0, std::vector<Use>{{other, true, false}}, {});
    const auto result = make_plan(w, a100(), {.budget_bytes = 100 * kMib});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->predicted.to_host_bytes, 0);
    EXPECT_GT(result->predicted.to_device_bytes, 0);
}

TEST(Planner, HidesTransfersBehindLongOperations) {
    const Workload w = [] {
        Workload all;
        std::vector<TensorIndex> activations;
        for (std::int64_t l = 0; l < 20; ++l) {
            activations.push_back(all.add_tensor({l, 32 * kMib, false}));
        }
        for (std::size_t l = 0; l < 20; ++l) {
            std::vector<Use> uses{{activations[l], false, true}};
            if (l > 0) uses.push_back({activations[l - 1], true, false});
            all.add_op(10'000, 0, uses, {});
        }
        for (std::size_t l = 20; l-- > 0;) {
            all.add_op(10'000, 0, std::vector<Use>{{activations[l], true, false}},
                       std::vector<TensorIndex>{activations[l]});
        }
        return all;
    }();
    const auto result = make_plan(w, a100(), {.budget_bytes = w.peak_bytes() / 2});
    ASSERT_TRUE(result);
    EXPECT_LE(result->predicted.iteration_us, 1.001 * w.compute_us());
}

TEST(Planner, CopiesNothingInAdvanceWhereItMayNot) {
    const auto copies = [](const Plan& plan) {
        return std::count_if(plan.actions.begin(), plan.actions.end(),
                             [](const Action& a) { return a.kind == ActionKind::Copy; });
    };
    std::ptrdiff_t allowed = 0;
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        const Workload w = random_training(seed, 24);
        PlanRequest request{.budget_bytes = std::max(w.peak_bytes() * 4 / 10, largest_op(w))};
        const auto with = make_plan(w, a100(), request);
        request.copies_in_advance = false;
        const auto without = make_plan(w, a100(), request);
        ASSERT_TRUE(with && without);
        EXPECT_EQ(copies(without->plan), 0) << seed;
        allowed += copies(with->plan);
    }
    EXPECT_GT(allowed, 0);
}

TEST(Planner, IsDeterministic) {
    const Workload w = random_training(9, 24);
    const PlanRequest request{.budget_bytes = std::max(w.peak_bytes() / 2, largest_op(w))};
    const auto a = make_plan(w, a100(), request);
    const auto b = make_plan(w, a100(), request);
    ASSERT_TRUE(a && b);
    ASSERT_EQ(a->plan.actions.size(), b->plan.actions.size());
    for (std::size_t i = 0; i < a->plan.actions.size(); ++i) {
        EXPECT_EQ(a->plan.actions[i].tensor, b->plan.actions[i].tensor);
        EXPECT_EQ(a->plan.actions[i].op, b->plan.actions[i].op);
        EXPECT_EQ(a->plan.actions[i].bytes, b->plan.actions[i].bytes);
    }
}

TEST(FindGaps, KnowsLifetimesContentsAndTheWrap) {
    Workload w;
    const TensorIndex weight = w.add_tensor({1, 10, true});
    const TensorIndex activation = w.add_tensor({2, 10, false});
    const TensorIndex other = w.add_tensor({3, 10, true});
    w.add_op(1, 0, std::vector<Use>{{weight, true, false}}, {});
    w.add_op(1, 0, std::vector<Use>{{activation, false, true}}, {});
    w.add_op(1, 0, std::vector<Use>{{other, true, false}}, {});
    w.add_op(1, 0, std::vector<Use>{{activation, true, false}},
             std::vector<TensorIndex>{activation});
    w.add_op(1, 0, std::vector<Use>{{weight, true, true}}, {});
    w.add_op(1, 0, std::vector<Use>{{other, true, false}}, {});
    const GapTable table = find_gaps(w, 0);
    const auto gap_of = [&](TensorIndex t, OpIndex from) {
        const auto found = std::find_if(table.gaps.begin(), table.gaps.end(), [&](const Gap& g) {
            return g.tensor == t && g.from == from;
        });
        return found == table.gaps.end() ? OpIndex{0} : found->to;
    };
    EXPECT_EQ(gap_of(weight, 0), 4U);
    EXPECT_EQ(gap_of(weight, 4), 6U);  // over the end of the iteration
    EXPECT_EQ(gap_of(activation, 1), 3U);
    EXPECT_EQ(gap_of(activation, 3), 0U);  // freed: no gap
    EXPECT_EQ(gap_of(other, 2), 5U);
    EXPECT_EQ(gap_of(other, 5), 8U);
    EXPECT_EQ(table.gaps.size(), 5U);
    for (const Gap& g : table.gaps) EXPECT_EQ(table.always_clean[g.content], g.tensor == other);
    EXPECT_EQ(table.live_bytes, (std::vector<std::uint64_t>{20, 30, 30, 30, 20, 20}));
}

}  // namespace
}  // namespace libswap::cost
