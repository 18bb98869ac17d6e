// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/copy_times.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/link_driver.hpp"

namespace libswap::testing {
namespace {

using cost::Direction;

constexpr std::uint64_t kBytes = 2'000'000;
/// Two messages alone, and where the other direction moves all the time.
constexpr double kAloneUs = 5 + 1 + 200;
constexpr double kBusyUs = 5 + 1 + 400;

class Copies : public ::testing::Test {
  protected:
    Copies() : times_(driver_.table, link_of_tests()) {
        times_.open(LinkDriver::stream(Direction::ToHost), LinkDriver::stream(Direction::ToDevice));
    }
    bool out(double us, double begin_us = 0) {
        return driver_.copy(times_, Direction::ToHost, kBytes, us, begin_us);
    }
    bool in(double us, double begin_us = 0) {
        return driver_.copy(times_, Direction::ToDevice, kBytes, us, begin_us);
    }
    LinkDriver driver_;
    CopyTimes times_;
};

TEST_F(Copies, ThatTakeWhatTheModelSaysHaveNoError) {
    for (int k = 0; k < 10; ++k) EXPECT_TRUE(out(kAloneUs));
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 10U);
    EXPECT_NEAR(times_.error(Direction::ToHost).mean_percent(), 0, 0.01);
    EXPECT_EQ(times_.error(Direction::ToDevice).count(), 0U);
}

TEST_F(Copies, ThatTakeLongerShowByHowMuch) {
    for (int k = 0; k < 20; ++k) in(1.25 * kAloneUs);
    times_.collect();
    const ModelError error = times_.error(Direction::ToDevice);
    EXPECT_NEAR(error.mean_percent(), 20, 0.1);
    EXPECT_NEAR(error.ratio(), 1.25, 0.001);
    EXPECT_TRUE(error.drifts());
}

TEST_F(Copies, AreNotLookedAtBeforeAllOfThemAreDone) {
    out(kAloneUs);
    out(kAloneUs);
    driver_.done_until_us = kAloneUs + 1;
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 0U);
    driver_.done_until_us = 2 * kAloneUs + 1;
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 2U);
}

TEST_F(Copies, BesideTheOtherDirectionAreHeldAgainstItsRates) {
    // The copy in moves bytes from 5 us until behind the end of the one out.
    in(1000);
    out(kBusyUs);
    times_.collect();
    EXPECT_NEAR(times_.error(Direction::ToHost).mean_percent(), 0, 0.01);
    EXPECT_EQ(times_.error_where(Direction::ToHost, true).count(), 1U);
    EXPECT_EQ(times_.error_where(Direction::ToHost, false).count(), 0U);
}

TEST_F(Copies, WithCompanyForAPartOfTheTimeAreNeitherAloneNorBeside) {
    in(5 + 100);
    // Bytes move from 6 us on: 99 us at half the rate, the other 150.5 us alone.
    out(6 + 99 + 150.5);
    times_.collect();
    const ModelError error = times_.error(Direction::ToHost);
    EXPECT_EQ(error.count(), 1U);
    EXPECT_NEAR(error.mean_percent(), 0, 0.01);
    EXPECT_EQ(times_.error_where(Direction::ToHost, true).count(), 0U);
    EXPECT_EQ(times_.error_where(Direction::ToHost, false).count(), 0U);
}

TEST_F(Copies, AreTimedInBursts) {
    std::uint64_t timed = 0;
    for (std::uint64_t k = 0; k < 10 * (CopyTimes::kBurst + CopyTimes::kPause); ++k) {
        timed += out(kAloneUs);
        times_.collect();
    }
    EXPECT_EQ(timed, 10 * CopyTimes::kBurst);
    EXPECT_EQ(times_.error(Direction::ToHost).count(), timed);
    EXPECT_LE(driver_.events(), 2 * CopyTimes::kBurst + 2);
}

TEST_F(Copies, ThatMayHaveOverlappedOneBeforeTheBurstDoNotCount) {
    // A copy in from before the burst is under way until 500 us.
    driver_.now_us(Direction::ToDevice) = 500;
    out(kBusyUs);        // until 406
    out(kAloneUs, 510);  // alone, and known to be
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 1U);
    EXPECT_NEAR(times_.error(Direction::ToHost).mean_percent(), 0, 0.01);
}

TEST_F(Copies, ThatMayHaveOverlappedOneBehindTheBurstDoNotCount) {
    in(kAloneUs);
    for (std::uint64_t k = 2; k < CopyTimes::kBurst; ++k) out(kAloneUs, 1000);
    out(kBusyUs);  // beside the next, of which nobody knows when it ran
    EXPECT_FALSE(in(5000, driver_.now_us(Direction::ToHost) - kBusyUs));
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToDevice).count(), 1U);
    // Of those out, none is known to have been alone.
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 0U);
}

TEST_F(Copies, WaitForWhatIsUnderWayBeforeTheBurst) {
    driver_.now_us(Direction::ToDevice) = 10'000;
    out(kAloneUs);
    driver_.done_until_us = 5000;
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 0U);
    EXPECT_EQ(driver_.events(), 4U);
}

TEST_F(Copies, AreComparedWithWhatPlansWentByToo) {
    for (int k = 0; k < 20; ++k) out(1.25 * kAloneUs);
    times_.collect();
    cost::LinkModel slower = link_of_tests();
    slower.to_host.gbps = 20 * 200 / (1.25 * kAloneUs - 6);
    times_.plan_with(slower);
    for (int k = 0; k < 20; ++k) out(1.25 * kAloneUs);
    times_.collect();
    EXPECT_NEAR(times_.error(Direction::ToHost).mean_percent(), 20, 0.1);
    EXPECT_NEAR(times_.error_of_plans(Direction::ToHost).mean_percent(), 10, 0.1);
}

TEST_F(Copies, GoOnUntimedWhereThereAreNoEvents) {
    driver_.fails = true;
    for (int k = 0; k < 100; ++k) EXPECT_FALSE(out(kAloneUs));
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 0U);
    driver_.fails = false;
    std::uint64_t timed = 0;
    for (std::uint64_t k = 0; k < 2 * (CopyTimes::kBurst + CopyTimes::kPause); ++k)
        timed += out(kAloneUs);
    EXPECT_GT(timed, 0U);
}

TEST_F(Copies, ThatFailBetweenTheEventsLeaveNothingBehind) {
    for (int k = 0; k < 10; ++k) EXPECT_TRUE(times_.begin(Direction::ToHost));
    EXPECT_LE(driver_.events(), 4U);
    times_.collect();
    EXPECT_EQ(times_.error(Direction::ToHost).count(), 0U);
}

TEST_F(Copies, GiveAllEventsBack) {
    out(kAloneUs);
    in(kAloneUs);
    times_.collect();
    out(kAloneUs);
    (void)times_.begin(Direction::ToDevice);
    times_.close(false);
    EXPECT_EQ(driver_.events(), 0U);
}

TEST_F(Copies, MakeNoCallWhereTheContextIsGone) {
    out(kAloneUs);
    const std::size_t events = driver_.events();
    times_.close(true);
    EXPECT_EQ(driver_.events(), events);
    EXPECT_TRUE(out(kAloneUs));  // in another context
    EXPECT_GT(driver_.events(), events);
}

}  // namespace
}  // namespace libswap::testing
