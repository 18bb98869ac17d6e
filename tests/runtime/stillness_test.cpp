// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/stillness.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace libswap {
namespace {

TEST(Stillness, LetsOperationsInUntilItEnds) {
    Stillness stillness;
    ASSERT_TRUE(stillness.enter());
    stillness.leave();
    stillness.end();
    EXPECT_FALSE(stillness.enter());
    EXPECT_TRUE(stillness.drained());
}

TEST(Stillness, IsNotDrainedWhileAnOperationIsInside) {
    Stillness stillness;
    ASSERT_TRUE(stillness.enter());
    stillness.end();
    EXPECT_FALSE(stillness.drained());
    EXPECT_FALSE(stillness.enter());
    EXPECT_FALSE(stillness.drained());
    stillness.leave();
    EXPECT_TRUE(stillness.drained());
}

TEST(Stillness, WhoSeesItDrainedSeesWhatTheOperationsDidAndNoneAfterThem) {
    constexpr int kRounds = 40;
    constexpr int kThreads = 3;
    for (int round = 0; round < kRounds; ++round) {
        Stillness stillness;
        std::atomic<bool> moving{false};
        std::atomic<int> begun{0};
        bool late = false;
        std::vector<std::uint64_t> done(kThreads, 0);  // plain: only the drain orders it
        std::vector<std::uint64_t> counted(kThreads, 0);
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i)
            threads.emplace_back([&, i] {
                begun.fetch_add(1);
                while (stillness.enter()) {
                    if (moving.load(std::memory_order_relaxed)) late = true;
                    ++done[i];
                    stillness.leave();
                    ++counted[i];
                }
            });
        while (begun.load() != kThreads) std::this_thread::yield();
        stillness.end();
        while (!stillness.drained()) std::this_thread::yield();
        moving.store(true, std::memory_order_relaxed);
        const std::vector<std::uint64_t> seen = done;
        for (std::thread& thread : threads) thread.join();
        ASSERT_FALSE(late);
        ASSERT_EQ(seen, counted);
    }
}

}  // namespace
}  // namespace libswap
