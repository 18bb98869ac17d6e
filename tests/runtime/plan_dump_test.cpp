// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/plan_dump.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace libswap {
namespace {

TEST(PlanDump, HasTheIterationThePlanAndTheMachine) {
    cost::Workload workload;
    workload.add_tensor({7, 100, true});
    workload.add_tensor({9, 300, false});
    const cost::Use first[] = {{0, true, false}, {1, false, true}};
    const cost::Use second[] = {{1, true, true}};
    const cost::TensorIndex freed[] = {1};
    workload.add_op(1.5, 16, first, {}, "first");
    workload.add_op(2.5, 0, second, freed, "second");
    cost::PlanResult made;
    made.predicted.iteration_us = 4.25;
    made.plan.actions = {{cost::ActionKind::Copy, 0, 0, cost::kWholeTensor},
                         {cost::ActionKind::Drop, 0, 0, cost::kWholeTensor},
                         {cost::ActionKind::In, 0, 1, 50}};
    const cost::Machine machine = cost::engine_machine();

    const auto dump = nlohmann::json::parse(plan_dump(workload, machine, 400, made));

    EXPECT_EQ(dump["format"], "libswap-made-plan/1");
    EXPECT_EQ(dump["budget_bytes"], 400);
    EXPECT_DOUBLE_EQ(dump["predicted_us"], 4.25);
    EXPECT_DOUBLE_EQ(dump["machine"]["h2d_gbps"], machine.link.to_device.gbps);
    const auto& tensors = dump["workload"]["tensors"];
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors[1]["bytes"], 300);
    EXPECT_EQ(tensors[0]["persistent"], true);
    const auto& ops = dump["workload"]["ops"];
    ASSERT_EQ(ops.size(), 2u);
    EXPECT_EQ(ops[0]["reads"], nlohmann::json({0}));
    EXPECT_EQ(ops[0]["writes"], nlohmann::json({1}));
    EXPECT_EQ(ops[0]["workspace_bytes"], 16);
    EXPECT_EQ(ops[1]["frees"], nlohmann::json({1}));
    EXPECT_DOUBLE_EQ(ops[1]["duration_us"], 2.5);
    const auto& actions = dump["plan"]["actions"];
    ASSERT_EQ(actions.size(), 3u);
    EXPECT_EQ(actions[0]["do"], "copy");
    EXPECT_EQ(actions[0]["after"], 0);
    EXPECT_FALSE(actions[0].contains("bytes"));
    EXPECT_EQ(actions[1]["do"], "drop");
    EXPECT_EQ(actions[2]["at"], 1);
    EXPECT_EQ(actions[2]["bytes"], 50);
}

}  // namespace
}  // namespace libswap
