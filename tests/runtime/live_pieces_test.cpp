// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/live_pieces.hpp"

#include <gtest/gtest.h>

namespace libswap {
namespace {

TEST(LivePieces, AnAddressIsOfThePieceItLiesIn) {
    LivePieces pieces;
    pieces.begin(1000, 100);
    pieces.begin(1100, 50);
    for (const std::uint64_t address : {1000, 1050, 1099}) {
        ASSERT_TRUE(pieces.find(address)) << address;
        EXPECT_EQ(pieces.find(address)->base, 1000u);
        EXPECT_EQ(pieces.find(address)->end(), 1100u);
    }
    EXPECT_EQ(pieces.find(1100)->base, 1100u);
    EXPECT_FALSE(pieces.find(999));
    EXPECT_FALSE(pieces.find(1150));
}

TEST(LivePieces, WhatWasGivenBackIsKnownNoMore) {
    LivePieces pieces;
    pieces.begin(1000, 100);
    pieces.begin(1100, 50);
    pieces.end(1000);
    pieces.end(1120);  // none begins there
    EXPECT_FALSE(pieces.find(1050));
    EXPECT_TRUE(pieces.find(1120));
}

TEST(LivePieces, OneThatOverlapsOthersTakesTheirPlace) {
    LivePieces pieces;
    pieces.begin(1000, 100);
    pieces.begin(1100, 100);
    pieces.begin(1200, 100);
    pieces.begin(1050, 100);
    EXPECT_FALSE(pieces.find(1040));
    EXPECT_EQ(pieces.find(1149)->base, 1050u);
    EXPECT_FALSE(pieces.find(1150));
    EXPECT_EQ(pieces.find(1200)->base, 1200u);
}

TEST(LivePieces, OfAnotherBufferNothingIsKnown) {
    LivePieces pieces;
    pieces.begin(900, 100);
    pieces.begin(1000, 100);
    pieces.begin(1900, 100);
    pieces.begin(2000, 100);
    pieces.forget(1000, 1000);
    EXPECT_TRUE(pieces.find(999));
    EXPECT_FALSE(pieces.find(1000));
    EXPECT_FALSE(pieces.find(1999));
    EXPECT_TRUE(pieces.find(2000));
}

}  // namespace
}  // namespace libswap
