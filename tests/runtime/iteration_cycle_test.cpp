// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/iteration_cycle.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace libswap {
namespace {

/// Lengths after each iteration, of which each frees what its number says.
std::vector<std::size_t> lengths(const std::vector<std::uint64_t>& iterations) {
    IterationCycle cycle;
    std::vector<std::size_t> all;
    for (const std::uint64_t frees : iterations) {
        cycle.add(frees, 0);
        all.push_back(cycle.length());
    }
    return all;
}

TEST(IterationCycle, IsThereOnceItWasSeenTwice) {
    EXPECT_EQ(lengths({1, 2, 1, 2}), (std::vector<std::size_t>{0, 0, 0, 2}));
    EXPECT_EQ(lengths({1, 2, 3, 1, 2, 3}), (std::vector<std::size_t>{0, 0, 0, 0, 0, 3}));
}

TEST(IterationCycle, IsOneWhereTheLastTwoAreAlike) {
    EXPECT_EQ(lengths({1, 1, 2, 1, 1, 2}), (std::vector<std::size_t>{0, 1, 0, 0, 1, 3}));
}

TEST(IterationCycle, IsNoneBeyondTheMost) {
    std::vector<std::uint64_t> iterations;
    for (std::uint64_t i = 0; i < 4 * (IterationCycle::kMost + 1); ++i)
        iterations.push_back(i % (IterationCycle::kMost + 1));
    EXPECT_EQ(lengths(iterations), std::vector<std::size_t>(iterations.size(), 0));
}

TEST(IterationCycle, BeginsAnew) {
    IterationCycle cycle;
    for (const std::uint64_t frees : {1, 2, 1}) cycle.add(frees, 0);
    cycle.restart();
    cycle.add(2, 0);
    EXPECT_EQ(cycle.length(), 0u);
}

TEST(IterationCycle, EndsBehindTheMostFrees) {
    IterationCycle cycle;
    cycle.add(1, 5);
    cycle.add(2, 9);
    EXPECT_TRUE(cycle.ends(2));
    cycle.add(3, 7);
    EXPECT_FALSE(cycle.ends(3));
    EXPECT_TRUE(cycle.ends(1));
}

}  // namespace
}  // namespace libswap
