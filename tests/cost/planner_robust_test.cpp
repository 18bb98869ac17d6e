// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Plans made with wrong figures, and plans of long iterations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "cost/planner.hpp"
#include "tests/cost/random_workload.hpp"

namespace libswap::cost {
namespace {

const Machine& a100() { return *find_machine("pcie4-a100"); }

/// Each operation's time off by up to a quarter.
Workload misjudged(const Workload& truth, std::mt19937& random) {
    std::uniform_real_distribution<double> factor(0.75, 1.25);
    Workload w;
    for (const Tensor& t : truth.tensors()) w.add_tensor(t);
    for (std::size_t i = 0; i < truth.op_count(); ++i) {
        w.add_op(truth.op(i).duration_us * factor(random), truth.op(i).workspace_bytes,
                 truth.uses(i), truth.frees(i));
    }
    return w;
}

Machine with_slower_link(Machine machine) {
    machine.link.to_host.gbps *= 0.8;
    machine.link.to_device.gbps *= 0.8;
    machine.link.to_host_duplex_gbps *= 0.8;
    machine.link.to_device_duplex_gbps *= 0.8;
    return machine;
}

TEST(PlannerWithWrongFigures, LosesLittleToAPlanMadeWithTheTruth) {
    std::mt19937 random(3);
    const Machine slow = with_slower_link(a100());
    double logs = 0;
    int count = 0;
    for (std::uint32_t seed = 20; seed < 30; ++seed) {
        const Workload truth = random_training(seed, 40);
        const std::uint64_t budget = truth.peak_bytes() * (4 + seed % 4) / 10;
        const auto knowing = make_plan(truth, slow, {.budget_bytes = budget});
        const auto wrong = make_plan(misjudged(truth, random), a100(), {.budget_bytes = budget});
        ASSERT_TRUE(knowing && wrong);
        const auto achieved = replay(truth, slow, budget, wrong->plan);
        ASSERT_TRUE(achieved) << achieved.error().message;
        const double loss = achieved->iteration_us / knowing->predicted.iteration_us;
        EXPECT_LT(loss, 1.10) << seed;
        logs += std::log(loss);
        ++count;
    }
    EXPECT_LT(std::exp(logs / count), 1.05);
}

double planning_seconds(int layers) {
    const Workload w = random_training(7, layers);
    const std::uint64_t budget = w.peak_bytes() / 5;
    const std::clock_t before = std::clock();
    EXPECT_TRUE(make_plan(w, a100(), {.budget_bytes = budget}));
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

TEST(PlannerOfLongIterations, TakesAboutProportionallyLonger) {
    const double small = planning_seconds(1500);
    const double large = planning_seconds(6000);
    EXPECT_LT(large, 4 * 3 * small);
}

}  // namespace
}  // namespace libswap::cost
