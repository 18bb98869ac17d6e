// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cost/random_workload.hpp"
#include "tests/tools/command.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

using cost::PolicyKind;
using nlohmann::json;

Comparison two_cases() {
    Comparison c;
    c.machine = "pcie4-a100";
    c.policies = {PolicyKind::Libswap, PolicyKind::Tflms};
    c.cases = {{"net", "60%", 0.6, 100.0, 110.0, {{110.0, 1, ""}, {220.0, 1, ""}}},
               {"a<b", "40%", 0.4, 100.0, std::nullopt, {{200.0, 1, ""}, {std::nullopt, 1, "no"}}}};
    return c;
}

TEST(Comparison, MeansAreGeometricAndLeaveOutWhatIsMissing) {
    Comparison c = two_cases();
    EXPECT_DOUBLE_EQ(mean_ratio(c, 0, std::nullopt).value(), 1.0);
    EXPECT_DOUBLE_EQ(mean_ratio(c, 1, 0).value(), 2.0);
    c.cases[1].outcomes[1].iteration_us = 1600.0;
    EXPECT_DOUBLE_EQ(mean_ratio(c, 1, 0).value(), 4.0);  // of 2 and 8
    c.cases.clear();
    EXPECT_FALSE(mean_ratio(c, 0, std::nullopt));
}

TEST(Comparison, TableShowsSlowdownsAndWhatIsMissing) {
    const std::string table = format_table(two_cases());
    EXPECT_NE(table.find("| net | 60% | 1.100 | 1.100 | 2.200 |"), std::string::npos) << table;
    EXPECT_NE(table.find("| a<b | 40% | - | 2.000 | - |"), std::string::npos) << table;
    EXPECT_NE(table.find("| mean of time / bound | | | 1.000 | 2.000 |"), std::string::npos);
}

TEST(Comparison, PictureHasAMarkPerPlanAndEscapesNames) {
    const std::string svg = format_svg(two_cases());
    std::size_t marks = 0;
    for (std::size_t at = svg.find("<circle"); at != std::string::npos;
         at = svg.find("<circle", at + 1)) {
        ++marks;
    }
    EXPECT_EQ(marks, 2U + 3U);  // the legend's and the plans'
    EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Bounds, AreFoundByWorkloadMachineAndShare) {
    const auto bounds = Bounds::parse(
        R"([{"workload": "w", "machine": "m", "share": 0.6, "iteration_us": 5.5, "slots": 120}])");
    ASSERT_TRUE(bounds);
    EXPECT_DOUBLE_EQ(bounds->find_us("w", "m", 0.6).value(), 5.5);
    EXPECT_FALSE(bounds->find_us("w", "m", 0.4));
    EXPECT_FALSE(bounds->find_us("w", "other", 0.6));
    EXPECT_FALSE(Bounds::parse("{\"a\": 1}"));
    EXPECT_FALSE(Bounds::parse("nonsense"));
}

class Compare : public testing::Test {
  protected:
    static CommandResult swapctl(const std::string& arguments) {
        return run_command(fmt::format("{} {}", std::getenv("LIBSWAP_TEST_SWAPCTL"), arguments));
    }
    std::string write_workload(const std::string& name, std::uint32_t seed) {
        const std::string path = folder_.file(name);
        EXPECT_TRUE(write_file(path, format_workload(cost::random_training(seed, 12), {})));
        return path;
    }
    ScratchFolder folder_;
};

/// A share is of each workload's own peak, whatever was parsed before.
TEST_F(Compare, TakesEachBudgetFromItsOwnWorkload) {
    EXPECT_EQ(parse_budget("50%", 1000).value(), 500U);
    EXPECT_EQ(parse_budget("50%", 4000).value(), 2000U);
    const auto result =
        swapctl(fmt::format("compare {} {} --budget 60% --policy libswap,lru --json",
                            write_workload("a.json.gz", 1), write_workload("b.json", 2)));
    ASSERT_EQ(result.status, 0) << result.output;
    const json root = json::parse(result.output);
    ASSERT_EQ(root["cases"].size(), 2U);
    for (const json& one : root["cases"]) {
        EXPECT_NEAR(one["share"].get<double>(), 0.6, 1e-6);
        EXPECT_TRUE(one["policies"]["lru"].contains("iteration_us"));
    }
    EXPECT_EQ(root["cases"][0]["workload"], "a");
    EXPECT_EQ(root["cases"][1]["workload"], "b");
}

TEST_F(Compare, WritesTableAndPictureWithTheBound) {
    const std::string workload = write_workload("net.json.gz", 3);
    const std::string bounds = folder_.file("bounds.json");
    ASSERT_TRUE(write_file(
        bounds,
        R"([{"workload": "net", "machine": "pcie4-a100", "share": 0.6, "iteration_us": 12345}])"));
    const std::string svg = folder_.file("c.svg");
    const auto result =
        swapctl(fmt::format("compare {} --budget 60% --policy libswap,g10 --bounds {} --svg {}",
                            workload, bounds, svg));
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_NE(result.output.find("mean of time / bound"), std::string::npos) << result.output;
    EXPECT_TRUE(read_file(svg)->starts_with("<svg"));
}

TEST_F(Compare, ComplainsOfBadInputInOneLine) {
    const std::string workload = write_workload("net.json.gz", 3);
    for (const std::string arguments :
         {"/no/such/file", "{} --policy magic", "{} --budget 60%,lots", "{} --machine abacus",
          "{} --bounds /no/bounds", "{} --budget 60% --policy lru --svg /no/folder/c.svg"}) {
        const auto result = swapctl("compare " + fmt::format(fmt::runtime(arguments), workload));
        EXPECT_NE(result.status, 0) << arguments;
        EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    }
}

}  // namespace
}  // namespace libswap::tools
