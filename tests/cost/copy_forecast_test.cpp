// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/copy_forecast.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace libswap::cost {
namespace {

constexpr std::uint64_t kMb = 1'000'000;

/// 10 bytes per ns to the host, 20 to the device, half of that where both move; 5 us to begin.
LinkModel link() {
    LinkModel model;
    model.to_host = {.latency_us = 3, .overhead_us = 1, .gap_us = 1, .gbps = 10};
    model.to_device = {.latency_us = 3, .overhead_us = 1, .gap_us = 1, .gbps = 20};
    model.to_host_duplex_gbps = 5;
    model.to_device_duplex_gbps = 10;
    return model;
}

CopySpan out(double begin_us, double end_us, std::uint64_t bytes = kMb, std::uint32_t count = 1) {
    return {Direction::ToHost, begin_us, end_us, bytes, count};
}
CopySpan in(double begin_us, double end_us, std::uint64_t bytes = kMb) {
    return {Direction::ToDevice, begin_us, end_us, bytes, 1};
}

CopyForecast first_of(std::vector<CopySpan> spans) { return forecast_copy(link(), spans, 0); }

TEST(CopyForecast, OfACopyAloneIsSetupAndBytes) {
    const CopyForecast forecast = first_of({out(100, 400)});
    EXPECT_DOUBLE_EQ(forecast.us, 5 + 100);
    EXPECT_EQ(forecast.busy_share, 0);
}

TEST(CopyForecast, OfSeveralMessagesBeginsOnceAndPausesBetweenThem) {
    EXPECT_DOUBLE_EQ(first_of({out(0, 0, kMb, 3)}).us, 5 + 2 * 1 + 300);
}

TEST(CopyForecast, IsAtTheSlowRateWhileTheOtherDirectionMoves) {
    const CopyForecast forecast = first_of({out(0, 0), in(-50, 1000)});
    EXPECT_DOUBLE_EQ(forecast.us, 5 + 200);
    EXPECT_DOUBLE_EQ(forecast.busy_share, 1);
}

TEST(CopyForecast, ChangesItsRateWhereTheOtherBeginsAndEnds) {
    // Bytes move from 5 on; the other's from 25 to 65: 20 us at 10, 40 us at 5 and 60 us at 10.
    const CopyForecast forecast = first_of({out(0, 0), in(20, 65)});
    EXPECT_DOUBLE_EQ(forecast.us, 5 + 20 + 40 + 60);
    EXPECT_DOUBLE_EQ(forecast.busy_share, 40.0 / 120);
}

TEST(CopyForecast, FindsTheOthersInAnyOrder) {
    const CopyForecast forecast = first_of({out(0, 0), in(60, 75), in(0, 15), in(300, 400)});
    // Busy from 5 to 15 and from 65 to 75.
    EXPECT_DOUBLE_EQ(forecast.us, 5 + 20 + 90);
}

TEST(CopyForecast, OfTheOthersOnlyTheirBytesCount) {
    // It is over before any byte of it moves.
    EXPECT_DOUBLE_EQ(first_of({out(0, 0), in(30, 34)}).us, 105);
}

TEST(CopyForecast, IsNotSlowedByItsOwnDirection) {
    EXPECT_DOUBLE_EQ(first_of({out(0, 105), out(105, 300), out(-200, 0)}).us, 105);
}

TEST(CopyForecast, LooksAtNothingBehindItsEnd) {
    EXPECT_DOUBLE_EQ(first_of({out(0, 500), in(150, 400)}).us, 105);
}

}  // namespace
}  // namespace libswap::cost
