// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/residency.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace libswap {
namespace {

TEST(Residency, PinningALeavingBlockKeepsItAndEndsTheEviction) {
    ResidencyCell cell;
    cell.born(Residency::Resident);
    std::uint64_t generation = 0;
    ASSERT_TRUE(cell.begin_evict(&generation));
    EXPECT_EQ(cell.pin(false), PinResult::Cancelled);
    EXPECT_EQ(cell.load().state(), Residency::Resident);
    EXPECT_FALSE(cell.begin_remap(Residency::Leaving, generation));
    cell.unpin();
    EXPECT_FALSE(cell.begin_remap(Residency::Leaving, generation));
}

TEST(Residency, NothingBeginsWhilePinned) {
    ResidencyCell cell;
    cell.born(Residency::Resident);
    std::uint64_t generation = 0;
    ASSERT_EQ(cell.pin(false), PinResult::Pinned);
    EXPECT_FALSE(cell.begin_evict(&generation));
    Residency before{};
    EXPECT_FALSE(cell.free(&before));
    cell.unpin();
    EXPECT_TRUE(cell.begin_evict(&generation));
}

TEST(Residency, AHostBlockIsPinnedOnlyByWhoMayUseTheHostCopy) {
    ResidencyCell cell;
    cell.born(Residency::Host);
    std::uint64_t generation = 0;
    EXPECT_EQ(cell.pin(false), PinResult::Absent);
    EXPECT_EQ(cell.pin(true), PinResult::PinnedHost);
    EXPECT_FALSE(cell.begin_fetch(&generation));
    cell.unpin();
    ASSERT_TRUE(cell.begin_fetch(&generation));
    EXPECT_EQ(cell.pin(true), PinResult::Busy);
}

TEST(Residency, NobodyPinsDuringARemap) {
    ResidencyCell cell;
    cell.born(Residency::Resident);
    std::uint64_t generation = 0;
    ASSERT_TRUE(cell.begin_evict(&generation));
    ASSERT_TRUE(cell.begin_remap(Residency::Leaving, generation));
    EXPECT_EQ(cell.pin(true), PinResult::Busy);
    Residency before{};
    EXPECT_FALSE(cell.free(&before));
    cell.end_remap(Residency::Host);
    EXPECT_EQ(cell.load().state(), Residency::Host);
    EXPECT_TRUE(cell.free(&before));
    EXPECT_EQ(before, Residency::Host);
    EXPECT_EQ(cell.pin(true), PinResult::Gone);
}

TEST(Residency, FreeEndsWhatWasBegun) {
    for (const Residency start : {Residency::Resident, Residency::Host}) {
        ResidencyCell cell;
        cell.born(start);
        std::uint64_t generation = 0;
        const bool begun = start == Residency::Resident ? cell.begin_evict(&generation)
                                                        : cell.begin_fetch(&generation);
        ASSERT_TRUE(begun);
        const Residency moving = cell.load().state();
        Residency before{};
        ASSERT_TRUE(cell.free(&before));
        EXPECT_EQ(before, moving);
        cell.born(start);
        EXPECT_FALSE(cell.begin_remap(moving, generation));
        EXPECT_FALSE(cell.cancel(moving, generation, start));
    }
}

TEST(Residency, PinsOfManyThreadsAddUp) {
    ResidencyCell cell;
    cell.born(Residency::Resident);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                std::uint64_t generation = 0;
                if (i % 64 == 0) cell.begin_evict(&generation);
                const PinResult result = cell.pin(false);
                ASSERT_TRUE(result == PinResult::Pinned || result == PinResult::Cancelled);
                ASSERT_TRUE(cell.load().is_valid());
                cell.unpin();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cell.load().pins(), 0u);
}

}  // namespace
}  // namespace libswap
