// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/spare_events.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/link_driver.hpp"

namespace libswap::testing {
namespace {

class Spare : public ::testing::Test {
  protected:
    LinkDriver driver_;
    SpareEvents events_{driver_.table};
};

TEST_F(Spare, EventsAreUsedAgain) {
    const CUevent first = events_.take();
    const CUevent second = events_.take();
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    EXPECT_NE(first, second);
    events_.give_back(first);
    EXPECT_EQ(events_.take(), first);
    const CUevent third = events_.take();
    EXPECT_NE(third, first);
    EXPECT_NE(third, second);
}

TEST_F(Spare, NoneIsNoEvent) {
    driver_.fails = true;
    EXPECT_FALSE(events_.take());
    driver_.fails = false;
    events_.give_back(nullptr);
    EXPECT_TRUE(events_.take());
}

TEST_F(Spare, WhatLiesHereIsDestroyedAtTheEnd) {
    const CUevent out = events_.take();
    events_.give_back(events_.take());
    ASSERT_EQ(driver_.events(), 2U);
    events_.close(false);
    EXPECT_EQ(driver_.events(), 1U);
    // What is out may still come back, and goes at the next end.
    events_.give_back(out);
    events_.close(false);
    EXPECT_EQ(driver_.events(), 0U);
}

TEST_F(Spare, WhatWentWithItsContextIsNotTouched) {
    events_.give_back(events_.take());
    events_.close(true);
    EXPECT_EQ(driver_.events(), 1U);
    events_.close(false);
    EXPECT_EQ(driver_.events(), 1U);
}

}  // namespace
}  // namespace libswap::testing
