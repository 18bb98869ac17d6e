// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Fetches that are mapped before their copy is done.

#include "tests/runtime/swap_engine_fixture.hpp"

namespace libswap {
namespace {

using testing::Fragmented;
using Start = SwapEngine::Start;
using Way = SwapEngine::Way;

class EarlyFetchesTest : public testing::SwapEngineTest {
  protected:
    EarlyFetchesTest() {
        write(block_, 3);
        write(other_, 4);
        evict(block_);
        evict(other_);
        fake_.operations_per_query = 0;
    }
    static bool is(const Block& block, Residency state) {
        return block.cell.load().state() == state && !block.cell.load().remapping();
    }
    std::uint64_t copies() { return fake_.calls("cuMemcpyHtoDAsync"); }

    Block& block_ = add_block();
    Block& other_ = add_block();
};

TEST_F(EarlyFetchesTest, TheDeviceWaitsForTheCopyAndTheHostDoesNot) {
    ASSERT_EQ(fetch(block_, Way::Early), Start::Started);
    EXPECT_TRUE(is(block_, Residency::Resident));
    EXPECT_NE(block_.arriving.load(), nullptr);
    finish();
    EXPECT_EQ(block_.arriving.load(), nullptr);
    EXPECT_TRUE(holds(block_, 3));
}

TEST_F(EarlyFetchesTest, APlainOneIsMappedWhenItsCopyIsDone) {
    ASSERT_EQ(fetch(block_, Way::Plain), Start::Started);
    swap_->step();
    EXPECT_TRUE(is(block_, Residency::Coming));
    finish();
    EXPECT_TRUE(is(block_, Residency::Resident));
    EXPECT_TRUE(holds(block_, 3));
}

TEST_F(EarlyFetchesTest, WhereTheLinkIsIdleTheCopyDoesNotWaitForTheMapping) {
    const Fragmented memory(device_pool_);
    ASSERT_EQ(fetch(block_, Way::Early), Start::Started);
    EXPECT_EQ(copies(), 2u);
    EXPECT_TRUE(is(block_, Residency::Resident));
    finish();
    EXPECT_TRUE(holds(block_, 3));
}

TEST_F(EarlyFetchesTest, BehindAnotherOneCopyServesABlockWhoseChunksLieApart) {
    const Fragmented memory(device_pool_);
    ASSERT_EQ(fetch(block_, Way::Early), Start::Started);
    const std::uint64_t before = copies();
    ASSERT_EQ(fetch(other_, Way::Early), Start::Started);
    ASSERT_EQ(neighbours(other_.device_chunks(), 0), 1u);
    EXPECT_EQ(copies(), before + 1);
    finish();
    EXPECT_TRUE(holds(block_, 3));
    EXPECT_TRUE(holds(other_, 4));
}

TEST_F(EarlyFetchesTest, OneThatWaitsForTheProgramIsNotMappedEarly) {
    // Who waits for its copy would wait for this operation, which it may be ordered before.
    fake_.hold(stream_, true);
    EXPECT_EQ(block_.cell.pin(true), PinResult::PinnedHost);
    fake_.submit(stream_, [] {});
    block_.publish(streams_.take_place(index_));
    block_.cell.unpin();
    EXPECT_TRUE(streams_.record(index_));
    ASSERT_EQ(fetch(block_, Way::Early), Start::Started);
    ASSERT_EQ(fetch(other_, Way::Early), Start::Started);
    EXPECT_TRUE(is(block_, Residency::Coming));
    EXPECT_TRUE(is(other_, Residency::Coming));
    fake_.hold(stream_, false);
    finish();
    EXPECT_TRUE(holds(block_, 3));
    EXPECT_TRUE(holds(other_, 4));
}

TEST_F(EarlyFetchesTest, AFailureOfAnyCallLeavesTheContent) {
    for (const char* name : {"cuMemcpyHtoDAsync", "cuEventRecord", "cuEventQuery", "cuLaunchKernel",
                             "cuStreamWaitEvent", "cuMemUnmap", "cuMemMap", "cuMemSetAccess"}) {
        for (const std::uint64_t nth : {1, 2, 3, 4}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(nth));
            {
                const Fragmented memory(device_pool_);
                (void)fetch(block_, Way::Early);
                fake_.fail(name, nth, CUDA_ERROR_UNKNOWN);
                (void)fetch(other_, Way::Early);
                finish();
                fake_.clear_faults();
                for (Block* block : {&block_, &other_})
                    EXPECT_TRUE(is(*block, Residency::Resident) || is(*block, Residency::Host));
                EXPECT_TRUE(holds(block_, 3));
                EXPECT_TRUE(holds(other_, 4));
            }
            for (Block* block : {&block_, &other_})
                if (is(*block, Residency::Resident)) evict(*block);
            EXPECT_EQ(device_pool_.free_count(0), 8u);
        }
    }
    EXPECT_FALSE(swap_->lost());
}

TEST_F(EarlyFetchesTest, ACopyOfWhichOnlyAPieceWasSubmittedIsTakenBackOnceThatIsDone) {
    Block& in_pieces = add_block();
    write(in_pieces, 5);
    const Fragmented host_memory(host_pool_);
    evict(in_pieces);
    const Fragmented memory(device_pool_);
    ASSERT_EQ(fetch(block_, Way::Early), Start::Started);
    fake_.fail("cuMemcpyHtoDAsync", 2, CUDA_ERROR_UNKNOWN);
    (void)fetch(in_pieces, Way::Early);
    swap_->step();
    EXPECT_TRUE(in_pieces.cell.load().remapping());
    finish();
    EXPECT_TRUE(is(in_pieces, Residency::Host));
    EXPECT_TRUE(holds(in_pieces, 5));
    EXPECT_TRUE(holds(block_, 3));
    EXPECT_FALSE(swap_->lost());
}

}  // namespace
}  // namespace libswap
