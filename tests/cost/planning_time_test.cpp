// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How long planning takes, in processor time: of about 5,000 operations, and how it grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <utility>

#include "cost/generate/generate.hpp"
#include "cost/planner.hpp"

namespace libswap::cost {
namespace {

const Machine& a100() { return *find_machine("pcie4-a100"); }

Workload accumulated(std::int64_t repetitions) {
    GenerateOptions options;
    options.batch = repetitions;
    options.accumulation = static_cast<std::size_t>(repetitions);
    options.ceilings = a100().ceilings;
    auto w = generate_workload("gpt2", options);
    EXPECT_TRUE(w);
    return std::move(*w);
}

/// The least of a few runs: what else the machine does makes them longer, never shorter.
double planning_ms(const Workload& w, int runs) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < runs; ++i) {
        const std::clock_t before = std::clock();
        EXPECT_TRUE(make_plan(w, a100(), {.budget_bytes = w.peak_bytes() * 6 / 10}));
        least = std::min(least, 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
    }
    return least;
}

TEST(PlanningTime, GrowsNoFasterThanNLogN) {
    const Workload small = accumulated(7);
    const Workload large = accumulated(288);
    ASSERT_NEAR(static_cast<double>(small.op_count()), 5000, 300);
    ASSERT_GT(large.op_count(), 200000U);
    const double small_ms = planning_ms(small, 5);
    const double large_ms = planning_ms(large, 2);
    const auto n_log_n = [](const Workload& w) {
        const auto n = static_cast<double>(w.op_count());
        return n * std::log(n);
    };
    RecordProperty("small_ms", std::to_string(small_ms));
    RecordProperty("large_ms", std::to_string(large_ms));
    std::printf("%zu operations: %.0f ms; %zu: %.0f ms\n", small.op_count(), small_ms,
                large.op_count(), large_ms);
    EXPECT_LT(large_ms / small_ms, 1.25 * n_log_n(large) / n_log_n(small));
#if defined(NDEBUG) || defined(__OPTIMIZE__)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // 100 ms on a core of its own; beside other work its caches and clock are not.
    EXPECT_LT(small_ms * 5000 / static_cast<double>(small.op_count()), 150);
#endif
#endif
}

}  // namespace
}  // namespace libswap::cost
