// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/linear_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace libswap::cost {
namespace {

TEST(LinearProgram, FindsTheCornerOfASmallCase) {
    LinearProgram lp(2);
    lp.set_right(0, 4);
    lp.set_right(1, 6);
    lp.add_column(-3, LinearProgram::kUnlimited, {{0, 1}, {1, 2}});
    lp.add_column(-2, 1.5, {{0, 1}, {1, 1}});
    lp.add_column(0, LinearProgram::kUnlimited, {{0, 1}});
    lp.add_column(0, LinearProgram::kUnlimited, {{1, 1}});
    const auto x = lp.solve().values;
    ASSERT_EQ(x.size(), 4U);
    EXPECT_NEAR(x[0], 2.25, 1e-3);
    EXPECT_NEAR(x[1], 1.5, 1e-3);
}

TEST(LinearProgram, SolvesTheFractionalKnapsackAsTheGreedyMethodDoes) {
    std::mt19937 random(5);
    for (int round = 0; round < 20; ++round) {
        LinearProgram lp(1);
        std::vector<std::pair<double, double>> items;  // value per weight, weight
        std::vector<double> values;
        for (int i = 0; i < 40; ++i) {
            const double weight = 1 + random() % 20;
            const double value = 1 + random() % 50;
            lp.add_column(-value, 1, {{0, weight}});
            items.emplace_back(value / weight, weight);
            values.push_back(value);
        }
        lp.add_column(0, LinearProgram::kUnlimited, {{0, 1}});
        lp.set_right(0, 100);
        std::sort(items.rbegin(), items.rend());
        double room = 100;
        double best = 0;
        for (const auto& [density, weight] : items) {
            const double taken = std::min(room, weight);
            best += density * taken;
            room -= taken;
        }
        const auto x = lp.solve().values;
        ASSERT_EQ(x.size(), 41U);
        double found = 0;
        for (std::size_t i = 0; i < 40; ++i) {
            EXPECT_GE(x[i], 0);
            EXPECT_LE(x[i], 1);
            found += values[i] * x[i];
        }
        EXPECT_NEAR(found / best, 1, 1e-4);
    }
}

TEST(LinearProgram, SaysWhenItDoesNotConverge) {
    LinearProgram lp(1);
    lp.set_right(0, -1);  // x = -1 with x >= 0
    lp.add_column(1, LinearProgram::kUnlimited, {{0, 1}});
    EXPECT_TRUE(lp.solve().values.empty());
}

}  // namespace
}  // namespace libswap::cost
