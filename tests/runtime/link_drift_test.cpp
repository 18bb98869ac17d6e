// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/link_drift.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/link_driver.hpp"

namespace libswap::testing {
namespace {

using cost::Direction;

constexpr std::uint64_t kBytes = 2'000'000;
constexpr double kAloneUs = 5 + 1 + 200;
constexpr double kBusyUs = 5 + 1 + 400;

class Link : public ::testing::Test {
  protected:
    Link() : times_(driver_.table, link_of_tests()), drift_(link_of_tests()) {
        times_.open(LinkDriver::stream(Direction::ToHost), LinkDriver::stream(Direction::ToDevice));
    }
    /// How often it moved, in so many copies to the host that take a multiple of the model's time.
    int moved_by(double factor, std::uint64_t copies) {
        int moved = 0;
        for (std::uint64_t k = 0; k < copies; ++k) {
            driver_.copy(times_, Direction::ToHost, kBytes, factor * kAloneUs);
            times_.collect();
            moved += drift_.look(times_);
        }
        return moved;
    }
    LinkDriver driver_;
    CopyTimes times_;
    LinkDrift drift_;
};

TEST_F(Link, ThatIsAsTheModelSaysIsLeftAlone) {
    EXPECT_EQ(moved_by(1.0, 2000), 0);
    EXPECT_EQ(moved_by(1.1, 2000), 0);
    EXPECT_EQ(drift_.link().to_host.gbps, 20);
}

TEST_F(Link, ThatIsAFifthSlowerIsFollowedOnce) {
    EXPECT_EQ(moved_by(1.2, 2000), 1);
    EXPECT_NEAR(drift_.link().to_host.gbps, 20 / 1.2, 0.1);
    // Not known to be another one where both move: as far off as alone.
    EXPECT_NEAR(drift_.link().to_host_duplex_gbps, 10 / 1.2, 0.1);
    // Of the other direction nothing is known.
    EXPECT_EQ(drift_.link().to_device.gbps, 20);
    EXPECT_EQ(drift_.link().to_device_duplex_gbps, 10);
}

TEST_F(Link, ThatIsFasterIsFollowedToo) {
    EXPECT_EQ(moved_by(0.6, 200), 1);
    EXPECT_NEAR(drift_.link().to_host.gbps, 20 / 0.6, 0.1);
}

TEST_F(Link, ThatComesBackIsFollowedBack) {
    EXPECT_EQ(moved_by(1.5, 1000), 1);
    // The mean of the last copies is on its way when it is followed first.
    EXPECT_LE(moved_by(1.0, 2000), 2);
    EXPECT_NEAR(drift_.link().to_host.gbps, 20, 0.5);
}

TEST_F(Link, ThatIsNeverTheSameIsFollowedEverMoreRarely) {
    int moved = 0;
    std::uint64_t copies = 0;
    for (int k = 0; k < 200; ++k) {
        moved += moved_by(k % 2 == 0 ? 2.0 : 1.0, 512);
        copies += 512;
    }
    EXPECT_GE(moved, 3);
    // Each time takes twice as many timed copies as the one before, of which one in eight is timed.
    EXPECT_LE(moved, 12);
    EXPECT_EQ(copies, 200U * 512);
}

TEST_F(Link, WhereBothMoveHasItsOwnRate) {
    int moved = 0;
    double begin_us = 0;
    for (int k = 0; k < 200; ++k) {
        // One in all along, one out beside it at two thirds of the rate.
        begin_us += 2000;
        driver_.copy(times_, Direction::ToDevice, 4 * kBytes, 1500, begin_us);
        driver_.copy(times_, Direction::ToHost, kBytes, 1.5 * kBusyUs, begin_us + 100);
        times_.collect();
        moved += drift_.look(times_);
        // And one alone, as the model says.
        driver_.copy(times_, Direction::ToHost, kBytes, kAloneUs, begin_us + 1600);
        times_.collect();
        moved += drift_.look(times_);
    }
    EXPECT_GE(moved, 1);
    EXPECT_NEAR(drift_.link().to_host_duplex_gbps, 10 / 1.5, 0.1);
    EXPECT_NEAR(drift_.link().to_host.gbps, 20, 0.1);
}

TEST_F(Link, IsNeverTakenForMoreThanEightTimesOff) {
    EXPECT_EQ(moved_by(100, 200), 1);
    EXPECT_DOUBLE_EQ(drift_.link().to_host.gbps, 20.0 / 8);
}

}  // namespace
}  // namespace libswap::testing
