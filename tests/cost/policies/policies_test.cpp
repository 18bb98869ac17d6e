// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cost/policies/rival.hpp"
#include "cost/policies/swap_advisor.hpp"
#include "cost/policies/tflms.hpp"
#include "cost/policies/vdnn.hpp"
#include "cost/replay.hpp"
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

std::uint64_t share_of(const Workload& w, double share) {
    return std::max(largest_op(w),
                    static_cast<std::uint64_t>(share * static_cast<double>(w.peak_bytes())));
}

/// Layers whose activations live from the forward pass to the backward pass; all convolutions.
Workload plain_network(std::size_t layers, std::uint64_t weight_bytes, std::uint64_t bytes,
                       double us) {
    Workload w;
    std::vector<TensorIndex> weights;
    std::vector<TensorIndex> activations;
    std::int64_t id = 0;
    for (std::size_t l = 0; l < layers; ++l) {
        weights.push_back(w.add_tensor({id++, weight_bytes, true}));
        activations.push_back(w.add_tensor({id++, bytes, false}));
    }
    for (std::size_t l = 0; l < layers; ++l) {
        std::vector<Use> uses{{weights[l], true, false}, {activations[l], false, true}};
        if (l > 0) uses.push_back({activations[l - 1], true, false});
        w.add_op(us, 0, uses, {}, "Conv2d_Forward");
    }
    for (std::size_t l = layers; l-- > 0;) {
        const std::vector<Use> uses{{activations[l], true, false}, {weights[l], true, true}};
        w.add_op(us, 0, uses, std::vector<TensorIndex>{activations[l]}, "Conv2d_Backward");
    }
    return w;
}

TEST(Policies, EachHasANameThatFindsIt) {
    std::set<std::string_view> names;
    for (const PolicyKind kind : all_policies()) {
        EXPECT_EQ(find_policy(policy_name(kind)), kind);
        names.insert(policy_name(kind));
    }
    EXPECT_EQ(names.size(), 9U);
    EXPECT_FALSE(find_policy("opt"));
}

TEST(Policies, EveryPlanOfARandomWorkloadIsValid) {
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
        const Workload w = random_training(200 + seed, 3 + 2 * static_cast<int>(seed));
        for (const double share : {0.9, 0.6, 0.0}) {
            const std::uint64_t budget = share_of(w, share);
            for (const PolicyKind kind : all_policies()) {
                const auto planned = make_policy_plan(kind, w, a100(), {.budget_bytes = budget});
                ASSERT_TRUE(planned) << policy_name(kind) << ' ' << seed << ' ' << share << ' '
                                     << planned.error().message;
                const auto replayed = replay(w, a100(), budget, planned->result.plan);
                ASSERT_TRUE(replayed) << policy_name(kind) << ' ' << replayed.error().message;
                EXPECT_DOUBLE_EQ(replayed->iteration_us, planned->result.predicted.iteration_us);
                EXPECT_LE(replayed->peak_used_bytes, budget);
            }
        }
    }
}

TEST(Policies, MoveWholeTensorsWhereAskedTo) {
    const Workload w = random_training(211, 17);
    const PlanRequest request{.budget_bytes = share_of(w, 0.6), .whole_tensors = true};
    for (const PolicyKind kind : all_policies()) {
        const auto planned = make_policy_plan(kind, w, a100(), request);
        ASSERT_TRUE(planned) << policy_name(kind) << ' ' << planned.error().message;
        for (const Action& a : planned->result.plan.actions)
            EXPECT_TRUE(a.bytes == kWholeTensor || a.bytes == w.tensors()[a.tensor].bytes)
                << policy_name(kind) << ' ' << a.bytes;
    }
}

TEST(Policies, NothingMovesWhereEverythingFits) {
    const Workload w = random_training(3, 12);
    for (const PolicyKind kind : all_policies()) {
        const auto planned =
            make_policy_plan(kind, w, a100(), {.budget_bytes = 2 * w.peak_bytes()});
        ASSERT_TRUE(planned) << policy_name(kind);
        EXPECT_EQ(planned->result.predicted.to_host_bytes, 0) << policy_name(kind);
        EXPECT_EQ(planned->result.predicted.to_device_bytes, 0) << policy_name(kind);
        EXPECT_DOUBLE_EQ(planned->result.predicted.iteration_us, w.compute_us());
    }
}

TEST(Policies, AllNameTheOperationThatCannotFit) {
    const Workload w = plain_network(4, kMib, 64 * kMib, 100);
    for (const PolicyKind kind : all_policies()) {
        const auto planned = make_policy_plan(kind, w, a100(), {.budget_bytes = 70 * kMib});
        ASSERT_FALSE(planned) << policy_name(kind);
        EXPECT_NE(planned.error().message.find("Conv2d_Forward"), std::string::npos)
            << planned.error().message;
    }
}

TEST(Policies, SayWhenTheHostHasNoRoom) {
    const Workload w = plain_network(12, kMib, 64 * kMib, 100);
    const auto planned = make_policy_plan(
        PolicyKind::Lru, w, a100(), {.budget_bytes = 300 * kMib, .host_limit_bytes = 20 * kMib});
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().reason, PlanError::Reason::HostTooSmall);
}

/// Tensors a, b, c read in turn, one more than fits.
struct Cycle {
    Workload w;
    TensorIndex a, b, c;
    Cycle() {
        a = w.add_tensor({1, 10 * kMib, true});
        b = w.add_tensor({2, 10 * kMib, true});
        c = w.add_tensor({3, 10 * kMib, true});
        for (const TensorIndex t : {a, b, c}) {
            w.add_op(10, 0, std::vector<Use>{{t, true, false}}, {});
        }
    }
};

TEST(Pager, LeastRecentlyUsedMissesEveryTimeInACycle) {
    const Cycle cycle;
    const UseTable table(cycle.w);
    const auto paged = page(table, Advice(3), {.budget_bytes = 20 * kMib});
    ASSERT_TRUE(paged);
    EXPECT_EQ(paged->demand_fetches, 3U);
    EXPECT_EQ(paged->demand_evictions, 3U);
}

TEST(Pager, FurthestNextUseKeepsWhatComesBackFirst) {
    const Cycle cycle;
    const UseTable table(cycle.w);
    const auto lru = demand_paging({table, a100(), 20 * kMib}, VictimOrder::LeastRecentlyUsed);
    const auto belady = demand_paging({table, a100(), 20 * kMib}, VictimOrder::FurthestNextUse);
    ASSERT_TRUE(lru && belady);
    EXPECT_LT(belady->predicted.to_device_bytes, lru->predicted.to_device_bytes);
}

TEST(Pager, EvictsInPagesOnlyWhatIsShort) {
    Workload w;
    const TensorIndex a = w.add_tensor({1, 10 * kMib, true});
    const TensorIndex b = w.add_tensor({2, 10 * kMib, true});
    w.add_op(10, 0, std::vector<Use>{{a, true, true}}, {});
    w.add_op(10, 0, std::vector<Use>{{b, true, true}}, {});
    const UseTable table(w);
    const auto paged = page(table, Advice(2), {.budget_bytes = 17 * kMib, .page_bytes = 2 * kMib});
    ASSERT_TRUE(paged);
    for (const Action& action : paged->plan.actions) {
        if (action.kind == ActionKind::In) continue;
        EXPECT_EQ(action.bytes, 4 * kMib);
    }
    EXPECT_EQ(paged->demand_evictions, 2U);
}

TEST(Pager, TakesVictimsOfTheRequestsOwnPoolFirst) {
    Workload w;
    const TensorIndex a = w.add_tensor({1, 10 * kMib, true});
    const TensorIndex b = w.add_tensor({2, 10 * kMib, true});
    const TensorIndex c = w.add_tensor({3, 10 * kMib, true});
    for (const TensorIndex t : {a, b, c}) w.add_op(10, 0, std::vector<Use>{{t, true, false}}, {});
    const UseTable table(w);
    const std::vector<std::uint32_t> pools{0, 1, 1};
    const auto paged = page(table, Advice(3), {.budget_bytes = 20 * kMib, .pools = pools});
    ASSERT_TRUE(paged);
    for (const Action& action : paged->plan.actions) EXPECT_NE(action.tensor, a);
}

TEST(Pager, AFetchWithoutRoomWaitsAndAUselessOneIsTakenBack) {
    const Workload w = plain_network(8, kMib, 32 * kMib, 1000);
    const UseTable table(w);
    Advice advice(w.op_count());
    for (std::size_t k = 0; k < w.op_count(); ++k) {
        for (TensorIndex t = 0; t < w.tensors().size(); ++t) advice.fetch_at[k].push_back(t);
    }
    const std::uint64_t budget = 110 * kMib;
    const auto paged = page(table, advice, {.budget_bytes = budget});
    ASSERT_TRUE(paged);
    for (const std::uint64_t used : paged->used_bytes) EXPECT_LE(used, budget);
    EXPECT_TRUE(replay(w, a100(), budget, paged->plan));
}

TEST(UseTable, FindsWhereTheBackwardPassBegins) {
    const Workload w = plain_network(10, kMib, 8 * kMib, 10);
    const OpIndex turn = UseTable(w).turning_point();
    EXPECT_GE(turn, 9U);
    EXPECT_LE(turn, 10U);
}

TEST(Vdnn, MovesActivationsButNeverWeights) {
    const Workload w = plain_network(12, 4 * kMib, 32 * kMib, 5000);
    const auto planned =
        make_policy_plan(PolicyKind::Vdnn, w, a100(), {.budget_bytes = share_of(w, 0.5)});
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned->note, "vDNN_conv");
    ASSERT_FALSE(planned->result.plan.actions.empty());
    for (const Action& a : planned->result.plan.actions) {
        EXPECT_FALSE(w.tensors()[a.tensor].persistent);
    }
}

TEST(Vdnn, FetchesNoFurtherAheadThanTheNextConvolution) {
    const Workload w = plain_network(12, 4 * kMib, 32 * kMib, 5000);
    const auto planned =
        make_policy_plan(PolicyKind::Vdnn, w, a100(), {.budget_bytes = share_of(w, 0.5)});
    ASSERT_TRUE(planned);
    const UseTable table(w);
    for (const Action& a : planned->result.plan.actions) {
        if (a.kind != ActionKind::In) continue;
        EXPECT_LE(table.next_use(a.tensor, a.op), a.op + 1);
    }
}

TEST(Tflms, KeepsVariablesAndFallsBackWhereTheyDoNotFit) {
    const Workload light = plain_network(12, 4 * kMib, 32 * kMib, 2000);
    const auto runs =
        make_policy_plan(PolicyKind::Tflms, light, a100(), {.budget_bytes = share_of(light, 0.5)});
    ASSERT_TRUE(runs);
    EXPECT_NE(runs->note.find("threshold"), std::string::npos) << runs->note;
    for (const Action& a : runs->result.plan.actions) {
        EXPECT_FALSE(light.tensors()[a.tensor].persistent);
    }
    const Workload heavy = plain_network(12, 64 * kMib, 8 * kMib, 2000);
    const auto falls =
        make_policy_plan(PolicyKind::Tflms, heavy, a100(), {.budget_bytes = share_of(heavy, 0.5)});
    ASSERT_TRUE(falls);
    EXPECT_NE(falls->note.find("demand paging"), std::string::npos) << falls->note;
    const auto lru =
        make_policy_plan(PolicyKind::Lru, heavy, a100(), {.budget_bytes = share_of(heavy, 0.5)});
    EXPECT_DOUBLE_EQ(falls->result.predicted.iteration_us, lru->result.predicted.iteration_us);
}

TEST(Tflms, SwapsLessWhereMoreFits) {
    const Workload w = plain_network(20, 4 * kMib, 32 * kMib, 2000);
    const auto moved = [&](double share) {
        return make_policy_plan(PolicyKind::Tflms, w, a100(), {.budget_bytes = share_of(w, share)})
            ->result.predicted.to_host_bytes;
    };
    EXPECT_LT(moved(0.9), moved(0.6));
    EXPECT_LT(moved(0.6), moved(0.3));
}

TEST(Policies, PlannedSwappingHidesWhatDemandPagingDoesNot) {
    const Workload w = plain_network(20, kMib, 32 * kMib, 10'000);
    const std::uint64_t budget = share_of(w, 0.5);
    std::map<PolicyKind, double> slowdown;
    for (const PolicyKind kind : all_policies()) {
        const auto planned = make_policy_plan(kind, w, a100(), {.budget_bytes = budget});
        ASSERT_TRUE(planned) << policy_name(kind);
        slowdown[kind] = planned->result.predicted.iteration_us / w.compute_us();
    }
    EXPECT_GT(slowdown[PolicyKind::Lru], 1.06);
    EXPECT_LE(slowdown[PolicyKind::Belady], slowdown[PolicyKind::Lru]);
    for (const PolicyKind kind : {PolicyKind::Vdnn, PolicyKind::Tflms, PolicyKind::Capuchin,
                                  PolicyKind::SwapAdvisor, PolicyKind::DeepUm, PolicyKind::G10}) {
        EXPECT_LT(slowdown[kind], 1.04) << policy_name(kind);
    }
}

TEST(Policies, AreDeterministic) {
    const Workload w = random_training(17, 20);
    for (const PolicyKind kind : all_policies()) {
        const PlanRequest request{.budget_bytes = share_of(w, 0.5)};
        const auto a = make_policy_plan(kind, w, a100(), request);
        const auto b = make_policy_plan(kind, w, a100(), request);
        ASSERT_TRUE(a && b);
        EXPECT_EQ(a->result.predicted.iteration_us, b->result.predicted.iteration_us);
        EXPECT_EQ(a->result.plan.actions.size(), b->result.plan.actions.size());
    }
}

}  // namespace
}  // namespace libswap::cost
