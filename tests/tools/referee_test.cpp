// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Our replay and planner against the independent judge in ../shared/referee, where that is present.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/planner.hpp"
#include "cost/policies/policy.hpp"
#include "cost/replay.hpp"
#include "tests/cost/random_workload.hpp"
#include "tests/tools/command.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

using nlohmann::json;

std::string shared_folder() {
    const char* folder = std::getenv("LIBSWAP_TEST_SHARED");
    return folder == nullptr ? "" : folder;
}

class Referee : public testing::Test {
  protected:
    void SetUp() override {
        const std::string program = shared_folder() + "/referee/referee.py";
        if (!std::filesystem::exists(program)) GTEST_SKIP() << "no referee at " << program;
        if (run_command("python3 --version").status != 0) GTEST_SKIP() << "no python3";
        check_ = fmt::format("python3 {} check", program);
    }

    json judge(const std::string& workload_file, std::uint64_t budget, const cost::Plan& plan,
               const cost::Workload& workload) {
        const std::string plan_file = folder_.file("plan.json");
        EXPECT_TRUE(write_file(plan_file, format_plan(plan, workload)));
        const CommandResult result = run_command(
            fmt::format("{} {} --budget {} --plan {}", check_, workload_file, budget, plan_file));
        return json::parse(result.output);
    }

    void expect_agreement(const json& theirs,
                          const tl::expected<cost::ReplayResult, cost::ReplayError>& ours) {
        if (theirs.contains("error")) {
            EXPECT_FALSE(ours) << "the referee refuses: " << theirs["error"];
            return;
        }
        ASSERT_TRUE(ours) << ours.error().message << ", the referee: " << theirs;
        EXPECT_NEAR(ours->iteration_us / theirs["iteration_us"].get<double>(), 1, 1e-6);
        EXPECT_DOUBLE_EQ(ours->to_host_bytes, theirs["d2h_bytes"].get<double>());
        EXPECT_DOUBLE_EQ(ours->to_device_bytes, theirs["h2d_bytes"].get<double>());
        EXPECT_EQ(ours->peak_used_bytes, theirs["peak_used_bytes"].get<std::uint64_t>());
    }

    ScratchFolder folder_;
    std::string check_;
};

std::uint64_t budget_of(const cost::Workload& w, double share) {
    std::uint64_t least = 0;
    for (std::size_t i = 0; i < w.op_count(); ++i) least = std::max(least, w.op_bytes(i));
    return std::max(least, static_cast<std::uint64_t>(share * static_cast<double>(w.peak_bytes())));
}

/// Changes a plan at random, so that it may break rules, copy in advance and drop.
cost::Plan disturbed(cost::Plan plan, const cost::Workload& w, std::mt19937& random) {
    for (cost::Action& a : plan.actions) {
        switch (random() % 90) {
            case 0:
                a.op = static_cast<cost::OpIndex>((a.op + 1) % w.op_count());
                break;
            case 1:
                if (a.kind == cost::ActionKind::Out) a.kind = cost::ActionKind::Copy;
                break;
            case 2:
                a.bytes = w.tensors()[a.tensor].bytes / 2;
                break;
            default:
                break;
        }
    }
    return plan;
}

TEST_F(Referee, AgreesOnRandomWorkloads) {
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    int refused = 0;
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
        const cost::Workload w = cost::random_training(100 + seed, 4 + 2 * static_cast<int>(seed));
        const std::string file = folder_.file("workload.json.gz");
        ASSERT_TRUE(write_file(file, format_workload(w, {})));
        const std::uint64_t budget = budget_of(w, 0.4 + 0.04 * seed);
        const auto planned = cost::make_plan(w, machine, {.budget_bytes = budget});
        ASSERT_TRUE(planned) << planned.error().message;
        const json verdict = judge(file, budget, planned->plan, w);
        EXPECT_FALSE(verdict.contains("error")) << seed << ": " << verdict;
        expect_agreement(verdict, cost::replay(w, machine, budget, planned->plan));
        std::mt19937 random(seed);
        const cost::Plan odd = disturbed(planned->plan, w, random);
        const json odd_verdict = judge(file, budget, odd, w);
        refused += odd_verdict.contains("error");
        expect_agreement(odd_verdict, cost::replay(w, machine, budget, odd));
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 12);
}

TEST_F(Referee, AcceptsThePlansOfEveryPolicy) {
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    for (std::uint32_t seed = 0; seed < 2; ++seed) {
        const cost::Workload w = cost::random_training(300 + seed, 8 + 8 * static_cast<int>(seed));
        const std::string file = folder_.file("workload.json.gz");
        ASSERT_TRUE(write_file(file, format_workload(w, {})));
        const std::uint64_t budget = budget_of(w, 0.7 - 0.2 * seed);
        for (const cost::PolicyKind kind : cost::all_policies()) {
            const auto planned = cost::make_policy_plan(kind, w, machine, {.budget_bytes = budget});
            ASSERT_TRUE(planned) << planned.error().message;
            const json verdict = judge(file, budget, planned->result.plan, w);
            EXPECT_FALSE(verdict.contains("error")) << cost::policy_name(kind) << verdict;
            expect_agreement(verdict, planned->result.predicted);
        }
    }
}

TEST_F(Referee, AcceptsThePlansOfTheHandedWorkloads) {
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    for (const char* name : {"bert-base-b256", "inceptionv3-b512"}) {
        const std::string file = fmt::format("{}/workloads/{}.json.gz", shared_folder(), name);
        const auto text = read_file(file);
        ASSERT_TRUE(text) << text.error();
        const auto w = parse_workload(*text);
        ASSERT_TRUE(w) << w.error();
        for (const double share : {0.8, 0.4}) {
            const std::uint64_t budget = budget_of(*w, share);
            const auto planned = cost::make_plan(*w, machine, {.budget_bytes = budget});
            ASSERT_TRUE(planned) << planned.error().message;
            const json verdict = judge(file, budget, planned->plan, *w);
            EXPECT_FALSE(verdict.contains("error")) << name << ": " << verdict;
            expect_agreement(verdict, planned->predicted);
        }
    }
}

std::vector<std::string> handed_workloads() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(shared_folder() + "/workloads")) {
        const std::string name = entry.path().filename();
        if (const auto end = name.find(".json.gz"); end != std::string::npos) {
            names.push_back(name.substr(0, end));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// One policy and budget per workload; all of them with LIBSWAP_TEST_ALL=1, which takes the referee
/// half an hour.
TEST_F(Referee, AgreesOnHandedWorkloadsUnderEveryPolicy) {
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    const bool all = std::getenv("LIBSWAP_TEST_ALL") != nullptr;
    constexpr std::array<double, 3> kShares{0.8, 0.6, 0.4};
    const auto policies = cost::all_policies();
    std::size_t turn = 0;
    for (const std::string& name : handed_workloads()) {
        const std::string file = fmt::format("{}/workloads/{}.json.gz", shared_folder(), name);
        const auto w = load_workload(file);
        ASSERT_TRUE(w) << w.error();
        const std::size_t chosen = turn++;
        for (std::size_t p = 0; p < policies.size(); ++p) {
            for (std::size_t s = 0; s < kShares.size(); ++s) {
                if (!all && (p != chosen % policies.size() || s != chosen % kShares.size())) {
                    continue;
                }
                const std::uint64_t budget = budget_of(*w, kShares[s]);
                const auto planned =
                    cost::make_policy_plan(policies[p], *w, machine, {.budget_bytes = budget});
                ASSERT_TRUE(planned) << planned.error().message;
                const json verdict = judge(file, budget, planned->result.plan, *w);
                SCOPED_TRACE(
                    fmt::format("{} {} {}", name, cost::policy_name(policies[p]), kShares[s]));
                ASSERT_FALSE(verdict.contains("error")) << verdict;
                EXPECT_NEAR(
                    planned->result.predicted.iteration_us / verdict["iteration_us"].get<double>(),
                    1, 1e-3);
            }
        }
    }
}

TEST_F(Referee, IsFiftyTimesSlowerThanOurReplay) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "checked code is several times slower, and Python is not checked";
#endif
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    const cost::Workload w = cost::random_training(5, 200);
    const std::string file = folder_.file("workload.json.gz");
    ASSERT_TRUE(write_file(file, format_workload(w, {})));
    const std::uint64_t budget = budget_of(w, 0.5);
    const auto planned = cost::make_plan(w, machine, {.budget_bytes = budget});
    ASSERT_TRUE(planned) << planned.error().message;
    const std::string plan_file = folder_.file("plan.json");
    ASSERT_TRUE(write_file(plan_file, format_plan(planned->plan, w)));
    const std::string program = fmt::format(
        "import json, sys, time; sys.path.insert(0, '{0}/referee'); import referee; "
        "work = referee.Workload('{1}'); plan = json.load(open('{2}')); "
        "machine = json.load(open('{0}/referee/machines.json'))['pcie4-a100']; "
        "begin = time.process_time(); referee.Replay(work, machine, {3}, plan).run(); "
        "print(time.process_time() - begin)",
        shared_folder(), file, plan_file, budget);
    const CommandResult theirs = run_command(fmt::format("python3 -c \"{}\"", program));
    ASSERT_EQ(theirs.status, 0) << theirs.output;
    constexpr int kRounds = 10;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(cost::replay(w, machine, budget, planned->plan));
    }
    const double ours_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kRounds;
    EXPECT_GT(std::stod(theirs.output), 50 * ours_s);
}

}  // namespace
}  // namespace libswap::tools
