// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/extents.hpp"

#include <gtest/gtest.h>

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

/// A buffer of six blocks of 4 MiB.
class ExtentsTest : public ::testing::Test {
  protected:
    ExtentsTest() {
        buffer_ = table_.add(kBase, 24 * kMiB, std::vector<ChunkRun>(6, ChunkRun{0, 2}));
        for (std::uint32_t i = 0; i < buffer_->count; ++i)
            table_.name_anew(table_.block(buffer_->first + i));
    }
    void cut(std::uint64_t offset) {
        note_cut(table_.block(buffer_->first + static_cast<std::uint32_t>(offset / (4 * kMiB))),
                 kBase + offset);
    }
    std::pair<std::uint32_t, std::uint32_t> extent(std::uint64_t offset) {
        const BlockSpan span = believed_extent(
            table_, *buffer_, static_cast<std::uint32_t>(offset / (4 * kMiB)), kBase + offset);
        return {span.first, span.end()};
    }

    BlockTable table_;
    Buffer* buffer_ = nullptr;
};

using Blocks = std::pair<std::uint32_t, std::uint32_t>;

TEST_F(ExtentsTest, APointerReachesTheEndWhereNothingElseWasNamed) {
    cut(0);
    EXPECT_EQ(extent(0), Blocks(0, 6));
    cut(5 * kMiB);
    EXPECT_EQ(extent(5 * kMiB), Blocks(1, 6));
}

TEST_F(ExtentsTest, ItReachesToTheNextCut) {
    cut(0);
    cut(9 * kMiB);
    cut(20 * kMiB);
    EXPECT_EQ(extent(0), Blocks(0, 3));         // with the block in which the next one begins
    EXPECT_EQ(extent(9 * kMiB), Blocks(2, 5));  // which begins at a block of its own
    EXPECT_EQ(extent(20 * kMiB), Blocks(5, 6));
}

TEST_F(ExtentsTest, TensorsWithinABlockShareIt) {
    for (std::uint64_t i = 0; i < 4; ++i) cut(i * kMiB);
    EXPECT_EQ(extent(0), Blocks(0, 1));
    EXPECT_EQ(extent(kMiB), Blocks(0, 1));
    EXPECT_EQ(extent(3 * kMiB), Blocks(0, 6));
}

TEST_F(ExtentsTest, CutsNearEachOtherAreOfOneTensor) {
    cut(8 * kMiB - 1024);
    cut(8 * kMiB + 4096);
    EXPECT_EQ(extent(8 * kMiB - 1024), Blocks(1, 6));
    cut(13 * kMiB);
    EXPECT_EQ(extent(8 * kMiB - 1024), Blocks(1, 4));
    EXPECT_EQ(extent(8 * kMiB + 4096), Blocks(2, 4));
}

TEST_F(ExtentsTest, ANewAllocationKnowsNoCuts) {
    cut(9 * kMiB);
    for (std::uint32_t i = 0; i < buffer_->count; ++i)
        table_.name_anew(table_.block(buffer_->first + i));
    EXPECT_EQ(extent(0), Blocks(0, 6));
}

}  // namespace
}  // namespace libswap
