// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Plans of a handed workload made with wrong figures, against those made with the truth, where
// ../shared is present.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "cost/planner.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

/// Each operation's time off by up to a quarter.
cost::Workload misjudged(const cost::Workload& truth, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> factor(0.75, 1.25);
    cost::Workload w;
    for (const cost::Tensor& t : truth.tensors()) w.add_tensor(t);
    for (std::size_t i = 0; i < truth.op_count(); ++i) {
        w.add_op(truth.op(i).duration_us * factor(random), truth.op(i).workspace_bytes,
                 truth.uses(i), truth.frees(i));
    }
    return w;
}

cost::Machine with_slower_link(cost::Machine machine) {
    constexpr double kSlower = 0.8;
    machine.link.to_host.gbps *= kSlower;
    machine.link.to_device.gbps *= kSlower;
    machine.link.to_host_duplex_gbps *= kSlower;
    machine.link.to_device_duplex_gbps *= kSlower;
    return machine;
}

/// GPT-2 at 60 % is the worst of the handed cases: the link to the host has little time to spare
/// for copies in advance, and on a slower one those that come too late are made twice.
TEST(WrongFigures, CostLessThanFivePercentWhereCopiesInAdvanceAreTight) {
    const char* shared = std::getenv("LIBSWAP_TEST_SHARED");
    const std::string file =
        std::string(shared == nullptr ? "" : shared) + "/workloads/gpt2-large-adam.json.gz";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no workload " << file;
    const auto truth = load_workload(file);
    ASSERT_TRUE(truth) << truth.error();
    const cost::Machine& machine = *cost::find_machine("pcie4-a100");
    const cost::Machine slow = with_slower_link(machine);
    const std::uint64_t budget = truth->peak_bytes() / 10 * 6;
    const auto knowing = cost::make_plan(*truth, slow, {.budget_bytes = budget});
    ASSERT_TRUE(knowing);
    for (const std::uint32_t seed : {4, 5, 6}) {
        const auto wrong =
            cost::make_plan(misjudged(*truth, seed), machine, {.budget_bytes = budget});
        ASSERT_TRUE(wrong);
        const auto achieved = cost::replay(*truth, slow, budget, wrong->plan);
        ASSERT_TRUE(achieved) << achieved.error().message;
        EXPECT_LT(achieved->iteration_us, 1.05 * knowing->predicted.iteration_us) << seed;
    }
}

}  // namespace
}  // namespace libswap::tools
