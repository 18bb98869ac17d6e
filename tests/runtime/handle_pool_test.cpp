// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/handle_pool.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class HandlePoolTest : public ::testing::Test {
  protected:
    void open(std::uint64_t limit_bytes, HandlePool::Kind kind = HandlePool::Kind::Device) {
        pool_ = std::make_unique<HandlePool>(
            fake_.table(), HandlePool::Settings{kind, 0, 0, limit_bytes, nullptr});
    }
    std::vector<Chunk*> take(std::size_t count, ChunkClass size_class = 0) {
        std::vector<Chunk*> chunks(count);
        if (!pool_->take_or_grow(size_class, chunks)) chunks.clear();
        return chunks;
    }

    testing::FakeDriver fake_;
    std::unique_ptr<HandlePool> pool_;
};

TEST_F(HandlePoolTest, ChunksOfOneRequestAreNeighbours) {
    open(64 * kMiB);
    const auto chunks = take(32);
    ASSERT_EQ(chunks.size(), 32u);
    EXPECT_EQ(neighbours(chunks, 0), 32u);
    EXPECT_TRUE(take(1).empty());
    pool_->give_back(chunks);
    EXPECT_EQ(take(32).size(), 32u);
    EXPECT_EQ(fake_.calls("cuMemCreate"), 32u);
    EXPECT_TRUE(pool_->is_valid());
}

TEST_F(HandlePoolTest, WhatIsLeftOfTheLimitNeedNotLieSideBySide) {
    open(64 * kMiB);
    const auto all = take(32);
    pool_->give_back({&all[3], 1});
    pool_->give_back({&all[8], 1});
    EXPECT_EQ(take(2).size(), 2u);
    EXPECT_EQ(pool_->existing_bytes(), 64 * kMiB);
}

TEST_F(HandlePoolTest, AnotherClassIsReleasedForWhatTheLimitLeavesNoRoomFor) {
    open(16 * kMiB);
    pool_->give_back(take(8));
    const auto large = take(1, 1);
    ASSERT_EQ(large.size(), 1u);
    EXPECT_EQ(fake_.calls("cuMemRelease"), 8u);
    EXPECT_EQ(fake_.device_used(), 16 * kMiB);
    EXPECT_TRUE(take(1).empty());
    EXPECT_TRUE(pool_->is_valid());
}

TEST_F(HandlePoolTest, AFailureLeavesNothingBehind) {
    for (const char* name : {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemAddressReserve"}) {
        SCOPED_TRACE(name);
        open(64 * kMiB);
        fake_.fail(name, 1, CUDA_ERROR_UNKNOWN, true);
        EXPECT_FALSE(pool_->grow(0, 4).has_value());
        EXPECT_EQ(pool_->existing_bytes(), 0u);
        EXPECT_EQ(fake_.device_used(), 0u);
        fake_.clear_faults();
        const auto chunks = take(32);
        EXPECT_EQ(chunks.size(), 32u);
        EXPECT_TRUE(pool_->is_valid());
        pool_->give_back(chunks);
        pool_.reset();
    }
}

TEST_F(HandlePoolTest, WithoutMoreAddressesPlacesBetweenChunksAreUsed) {
    open(64 * kMiB);
    const auto all = take(32);
    pool_->give_back({&all[3], 1});
    pool_->give_back({&all[8], 1});
    pool_->trim(60 * kMiB);
    fake_.fail("cuMemAddressReserve", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    EXPECT_EQ(take(2).size(), 2u);
    EXPECT_EQ(pool_->existing_bytes(), 64 * kMiB);
}

TEST_F(HandlePoolTest, ScarceAddressesAreUsedUp) {
    fake_.device_bytes = 4 * kGiB;
    fake_.address_bytes = 3 * kGiB;
    open(2 * kGiB);
    EXPECT_TRUE(pool_->grow(0, 32).has_value());
    while (pool_->existing_bytes() < 2 * kGiB) ASSERT_TRUE(pool_->grow(0, 32).has_value());
}

TEST_F(HandlePoolTest, PinnedMemoryGoesWithItsContext) {
    open(64 * kMiB, HandlePool::Kind::Pinned);
    const auto chunks = take(8);
    ASSERT_EQ(chunks.size(), 8u);
    EXPECT_EQ(neighbours(chunks, 0), 8u);
    EXPECT_EQ(fake_.calls("cuMemHostAlloc"), 1u);
    pool_->give_back(chunks);
    pool_->forget_context(testing::FakeDriver::context());
    EXPECT_EQ(pool_->existing_bytes(), 0u);
}

TEST(SplitIntoRuns, CoversABufferByEvenBlocks) {
    for (const std::uint64_t budget : {64 * kMiB, 2 * kGiB, 40 * kGiB, 80 * kGiB}) {
        const ChunkRun largest = largest_run(budget);
        for (const std::uint64_t bytes :
             {1 * kMiB, 2 * kMiB, 31 * kMiB, 64 * kMiB, 65 * kMiB, 200 * kMiB, 3 * kGiB + 1}) {
            std::vector<ChunkRun> runs;
            split_into_runs(bytes, largest, &runs);
            std::uint64_t sum = 0;
            for (const ChunkRun& run : runs) {
                sum += run.bytes();
                EXPECT_LE(run.bytes(), largest.bytes());
                EXPECT_LE(run.count, kMaxChunksPerBlock);
                EXPECT_GE(run.count, 1u);
            }
            EXPECT_EQ(sum, (bytes + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB);
        }
    }
}

TEST(SplitIntoRuns, BudgetsBelow64GiBHaveOneClass) {
    EXPECT_EQ(largest_run(63 * kGiB).size_class, 0);
    EXPECT_EQ(largest_run(63 * kGiB).bytes(), 64 * kMiB);
    EXPECT_EQ(largest_run(80 * kGiB).size_class, 1);
    EXPECT_EQ(largest_run(80 * kGiB).bytes(), 64 * kMiB);
    EXPECT_EQ(largest_run(20 * kMiB).bytes(), 2 * kMiB);
}

}  // namespace
}  // namespace libswap
