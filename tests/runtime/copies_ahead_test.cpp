// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Copies in advance: the block stays, and leaves without a copy if it is unchanged by then.

#include "tests/runtime/swap_engine_fixture.hpp"

namespace libswap {
namespace {

using testing::Fragmented;
using testing::kMiB;

class CopiesAheadTest : public testing::SwapEngineTest {
  protected:
    void write(unsigned char value) { SwapEngineTest::write(block_, value); }
    void evict() { SwapEngineTest::evict(block_); }
    bool holds(unsigned char value) const { return SwapEngineTest::holds(block_, value); }
    /// Until the copy was submitted, and is not done.
    void step_to_the_copy() {
        for (int i = 0; i < 20 && !block_.arriving.load(); ++i) swap_->step();
        EXPECT_NE(block_.arriving.load(), nullptr);
    }
    void copy_ahead() {
        EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::Started);
        finish();
    }

    Block& block_ = add_block();
};

TEST_F(CopiesAheadTest, LeavesLaterWithoutACopy) {
    copy_ahead();
    EXPECT_EQ(block_.cell.load().state(), Residency::Resident);
    EXPECT_EQ(counters_.copies_ahead.load(), 1u);
    EXPECT_EQ(block_.arriving.load(), nullptr);
    evict();
    EXPECT_EQ(counters_.bytes_out.load(), 4 * kMiB);
    EXPECT_EQ(counters_.bytes_clean.load(), 4 * kMiB);
    EXPECT_TRUE(holds(1));
}

TEST_F(CopiesAheadTest, OneCopyServesAllThatLiesSideBySide) {
    copy_ahead();
    EXPECT_EQ(fake_.calls("cuMemcpyDtoHAsync"), 1u);
}

TEST_F(CopiesAheadTest, OneCopyAndOneDigestServeABlockWhoseChunksLieApart) {
    evict();
    const Fragmented memory(device_pool_);
    EXPECT_EQ(fetch(block_, SwapEngine::Way::Plain), SwapEngine::Start::Started);
    finish();
    ASSERT_EQ(neighbours(block_.device_chunks(), 0), 1u);
    write(2);
    const auto launches = fake_.calls("cuLaunchKernel");
    const auto copies = fake_.calls("cuMemcpyDtoHAsync");
    copy_ahead();
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), launches + 1);
    EXPECT_EQ(fake_.calls("cuMemcpyDtoHAsync"), copies + 1);
    write(3);
    evict();
    EXPECT_EQ(fake_.calls("cuMemcpyDtoHAsync"), copies + 2);
    EXPECT_TRUE(holds(3));
}

TEST_F(CopiesAheadTest, WhatIsWrittenAfterwardsIsCopiedAgain) {
    copy_ahead();
    write(2);
    evict();
    EXPECT_EQ(counters_.bytes_out.load(), 8 * kMiB);
    EXPECT_TRUE(holds(2));
}

TEST_F(CopiesAheadTest, WhoUsesTheBlockHasAnEventToWaitFor) {
    fake_.operations_per_query = 0;
    EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::Started);
    // Not yet: nobody waits for the digest.
    EXPECT_EQ(block_.arriving.load(), nullptr);
    fake_.pump();
    step_to_the_copy();
    EXPECT_EQ(block_.cell.pin(false), PinResult::Pinned);
    block_.cell.unpin();
    fake_.pump();
    swap_->step();
    EXPECT_EQ(block_.arriving.load(), nullptr);
}

TEST_F(CopiesAheadTest, AUseBehindTheDigestEndsIt) {
    fake_.operations_per_query = 0;
    EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::Started);
    write(2);
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_FALSE(block_.record_valid.load());
    evict();
    EXPECT_TRUE(holds(2));
}

TEST_F(CopiesAheadTest, ItDoesNotBeginWhileTheBlockIsUsed) {
    fake_.hold(stream_, true);
    write(2);
    EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::NotNow);
    fake_.hold(stream_, false);
    fake_.pump();
    copy_ahead();
    evict();
    EXPECT_EQ(counters_.bytes_out.load(), 4 * kMiB);
    EXPECT_TRUE(holds(2));
}

TEST_F(CopiesAheadTest, WhatIsToLeaveEndsACopyThatHasNotBegun) {
    fake_.operations_per_query = 0;
    EXPECT_TRUE(swap_->end_copy_ahead(block_));
    EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::Started);
    EXPECT_FALSE(swap_->end_copy_ahead(block_));
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_TRUE(swap_->end_copy_ahead(block_));
}

TEST_F(CopiesAheadTest, AFreedBlockIsNotCopied) {
    EXPECT_EQ(swap_->copy_ahead(block_, 0), SwapEngine::Start::Started);
    Residency before;
    EXPECT_TRUE(block_.cell.free(&before));
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_FALSE(block_.busy.load());
}

TEST_F(CopiesAheadTest, AFailureOfAnyCallLeavesTheBlockAsItWas) {
    unsigned char value = 1;
    for (const char* name :
         {"cuLaunchKernel", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery"}) {
        for (const std::uint64_t nth : {1, 2, 3}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(nth));
            write(++value);
            fake_.fail(name, nth, CUDA_ERROR_UNKNOWN);
            (void)swap_->copy_ahead(block_, 0);
            finish();
            fake_.clear_faults();
            EXPECT_EQ(block_.cell.load().state(), Residency::Resident);
            EXPECT_EQ(block_.arriving.load(), nullptr);
            evict();
            EXPECT_TRUE(holds(value));
            EXPECT_EQ(fetch(block_, SwapEngine::Way::Plain), SwapEngine::Start::Started);
            finish();
        }
    }
    EXPECT_FALSE(swap_->lost());
}

}  // namespace
}  // namespace libswap
