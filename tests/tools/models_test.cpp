// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// swapctl generate and fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/planner.hpp"
#include "tests/cost/random_workload.hpp"
#include "tests/tools/command.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

using nlohmann::json;

class Models : public testing::Test {
  protected:
    static CommandResult swapctl(const std::string& arguments) {
        return run_command(fmt::format("{} {}", std::getenv("LIBSWAP_TEST_SWAPCTL"), arguments));
    }
    static void expect_complaint(const std::string& arguments, const std::string& about) {
        const CommandResult result = swapctl(arguments);
        EXPECT_NE(result.status, 0) << arguments;
        EXPECT_NE(result.output.find(about), std::string::npos) << arguments << result.output;
        EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    }
    static json figures(const std::string& arguments) {
        const CommandResult result = swapctl(arguments + " --json");
        EXPECT_EQ(result.status, 0) << result.output;
        return json::parse(result.output);
    }
    ScratchFolder folder_;
};

TEST_F(Models, GeneratesAWorkloadThatPlanTakes) {
    const std::string file = folder_.file("resnet50.json.gz");
    const CommandResult result = swapctl("generate resnet50 --batch 16 -o " + file);
    ASSERT_EQ(result.status, 0) << result.output;
    const auto text = read_file(file);
    ASSERT_TRUE(text);
    EXPECT_EQ(json::parse(*text)["meta"]["batch"], 16);
    EXPECT_EQ(json::parse(*text)["meta"]["model"], "resnet50");
    const json planned = figures("plan " + file + " --budget 70%");
    EXPECT_GT(planned["peak_bytes"].get<double>(), 1e9);
    EXPECT_GE(planned["slowdown"].get<double>(), 0.999999);
}

TEST_F(Models, FindsTheSmallestBudgetThatIsFastEnough) {
    const cost::Workload w = cost::random_training(4, 20);
    const std::string file = folder_.file("w.json.gz");
    ASSERT_TRUE(write_file(file, format_workload(w, {})));
    const json loose = figures(fmt::format("fit {} --max-slowdown 2", file));
    const json tight = figures(fmt::format("fit {} --max-slowdown 1.05", file));
    EXPECT_LE(loose["slowdown"].get<double>(), 2);
    EXPECT_LE(tight["slowdown"].get<double>(), 1.05);
    const auto budget = [](const json& f) { return f["budget_bytes"].get<std::uint64_t>(); };
    EXPECT_LT(budget(loose), budget(tight));
    EXPECT_LE(budget(tight), w.peak_bytes());
    const auto plan =
        cost::make_plan(w, *cost::find_machine("pcie4-a100"), {.budget_bytes = budget(loose)});
    ASSERT_TRUE(plan);
    EXPECT_LE(plan->predicted.iteration_us, 2 * w.compute_us());
}

TEST_F(Models, FindsTheLargestBatchThatFits) {
    const auto batch = [&](const std::string& more) {
        return figures("fit mlp --memory 1100MiB " + more)["batch"].get<std::int64_t>();
    };
    const std::int64_t without = batch("--max-slowdown 1");
    EXPECT_GT(without, 100);
    EXPECT_GT(batch("--max-slowdown 1.5"), without);
    EXPECT_EQ(batch("--max-slowdown 1 --accumulate 4") % 4, 0);
}

TEST_F(Models, ComplainOfBadInputInOneLine) {
    expect_complaint("generate alexnet", "unknown model alexnet");
    expect_complaint("generate resnet50 --batch 0", "batch");
    expect_complaint("generate resnet50 --batch 8 --accumulate 3", "micro-batches");
    expect_complaint("generate resnet50 --dtype fp8", "unknown data type fp8");
    expect_complaint("generate mlp --freeze 99", "frozen");
    expect_complaint("generate mlp -o /no/folder/w.json", "/no/folder");
    expect_complaint("fit /no/such/file", "/no/such/file");
    expect_complaint("fit mlp --memory lots", "lots");
    expect_complaint("fit mlp --memory 1KiB", "not even");
    expect_complaint("fit mlp --memory 1GiB --max-slowdown 0.5", "max-slowdown");
}

}  // namespace
}  // namespace libswap::tools
