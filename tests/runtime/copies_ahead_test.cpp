// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Copies in advance: the block stays, and leaves without a copy if it is unchanged by then.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "runtime/swap_engine.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// One block of 4 MiB, the program's stream, and an engine that is stepped by hand.
class CopiesAheadTest : public ::testing::Test {
  protected:
    CopiesAheadTest() {
        SwapEngine::Parts parts;
        parts.driver = &fake_.table();
        parts.device_pool = &device_pool_;
        parts.host_pool = &host_pool_;
        parts.streams = &streams_;
        parts.blocks = &blocks_;
        parts.space = &space_;
        parts.remapper = &remapper_;
        parts.gate = &gate_;
        parts.believed = &believed_gate_;
        parts.counters = &counters_;
        parts.copy_times = &copy_times_;
        swap_.emplace(parts);
        EXPECT_TRUE(swap_->open());
        stream_ = fake_.make_stream();
        index_ = streams_.find(fake_.context(), stream_);
        const auto base = space_.take(4 * kMiB);
        Buffer* buffer = blocks_.add(*base, 4 * kMiB, {{0, 2}});
        block_ = &blocks_.block(buffer->first);
        EXPECT_TRUE(device_pool_.take_or_grow(0, block_->device_chunks()));
        EXPECT_TRUE(remapper_.map(block_->base, block_->device_chunks()));
        blocks_.name_anew(*block_);
        block_->cell.born(Residency::Resident);
        write(1);
    }
    ~CopiesAheadTest() override {
        finish();
        swap_->close(false);
    }

    /// An operation of the program, which fills the block; it runs once the stream is pumped.
    void write(unsigned char value) {
        EXPECT_NE(block_->cell.pin(false), PinResult::Absent);
        void* const memory = reinterpret_cast<void*>(std::uint64_t{block_->base});
        fake_.submit(stream_, [=] { std::memset(memory, value, 4 * kMiB); });
        block_->publish(streams_.take_place(index_));
        block_->cell.unpin();
        EXPECT_TRUE(streams_.record(index_));
        fake_.pump();
    }
    void finish() {
        for (int i = 0; i < 200 && swap_->jobs() != 0; ++i) {
            fake_.pump();
            swap_->step();
            swap_->map_one();
        }
        EXPECT_EQ(swap_->jobs(), 0u);
    }
    /// Until the copy was submitted, and is not done.
    void step_to_the_copy() {
        for (int i = 0; i < 20 && !block_->arriving.load(); ++i) swap_->step();
        EXPECT_NE(block_->arriving.load(), nullptr);
    }
    void copy_ahead() {
        EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::Started);
        finish();
    }
    void evict() {
        EXPECT_EQ(swap_->evict(*block_, false, 0), SwapEngine::Start::Started);
        finish();
        EXPECT_EQ(block_->cell.load().state(), Residency::Host);
    }
    bool holds(unsigned char value) const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(std::uint64_t{block_->base});
        for (std::uint64_t i = 0; i < 4 * kMiB; i += 4096)
            if (bytes[i] != value) return false;
        return true;
    }

    testing::FakeDriver fake_;
    HandlePool device_pool_{fake_.table(), {HandlePool::Kind::Device, 0, 0, 16 * kMiB, nullptr}};
    HandlePool host_pool_{fake_.table(), {HandlePool::Kind::Host, 0, 0, 16 * kMiB, nullptr}};
    AddressSpace space_{fake_.table(), 64 * kMiB};
    Remapper remapper_{fake_.table(), 0};
    StreamTable streams_{fake_.table()};
    BlockTable blocks_;
    Gate gate_;
    Gate believed_gate_;
    Counters counters_;
    CopyTimes copy_times_{fake_.table(), {}};
    std::optional<SwapEngine> swap_;
    CUstream stream_ = nullptr;
    StreamIndex index_ = 0;
    Block* block_ = nullptr;
};

TEST_F(CopiesAheadTest, LeavesLaterWithoutACopy) {
    copy_ahead();
    EXPECT_EQ(block_->cell.load().state(), Residency::Resident);
    EXPECT_EQ(counters_.copies_ahead.load(), 1u);
    EXPECT_EQ(block_->arriving.load(), nullptr);
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
    // Of what it had, every other chunk stays somebody else's.
    std::array<Chunk*, 4> taken{};
    ASSERT_TRUE(device_pool_.take_or_grow(0, taken));
    device_pool_.give_back(std::span(taken).subspan(0, 1));
    device_pool_.give_back(std::span(taken).subspan(2, 1));
    EXPECT_EQ(swap_->fetch(*block_, SwapEngine::Way::Plain, 0), SwapEngine::Start::Started);
    finish();
    ASSERT_EQ(neighbours(block_->device_chunks(), 0), 1u);
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
    device_pool_.give_back(std::span(taken).subspan(1, 1));
    device_pool_.give_back(std::span(taken).subspan(3, 1));
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
    EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::Started);
    // Not yet: nobody waits for the digest.
    EXPECT_EQ(block_->arriving.load(), nullptr);
    fake_.pump();
    step_to_the_copy();
    EXPECT_EQ(block_->cell.pin(false), PinResult::Pinned);
    block_->cell.unpin();
    fake_.pump();
    swap_->step();
    EXPECT_EQ(block_->arriving.load(), nullptr);
}

TEST_F(CopiesAheadTest, AUseBehindTheDigestEndsIt) {
    fake_.operations_per_query = 0;
    EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::Started);
    write(2);
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_FALSE(block_->record_valid.load());
    evict();
    EXPECT_TRUE(holds(2));
}

TEST_F(CopiesAheadTest, ItDoesNotBeginWhileTheBlockIsUsed) {
    fake_.hold(stream_, true);
    write(2);
    EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::NotNow);
    fake_.hold(stream_, false);
    fake_.pump();
    copy_ahead();
    evict();
    EXPECT_EQ(counters_.bytes_out.load(), 4 * kMiB);
    EXPECT_TRUE(holds(2));
}

TEST_F(CopiesAheadTest, WhatIsToLeaveEndsACopyThatHasNotBegun) {
    fake_.operations_per_query = 0;
    EXPECT_TRUE(swap_->end_copy_ahead(*block_));
    EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::Started);
    EXPECT_FALSE(swap_->end_copy_ahead(*block_));
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_TRUE(swap_->end_copy_ahead(*block_));
}

TEST_F(CopiesAheadTest, AFreedBlockIsNotCopied) {
    EXPECT_EQ(swap_->copy_ahead(*block_, 0), SwapEngine::Start::Started);
    Residency before;
    EXPECT_TRUE(block_->cell.free(&before));
    finish();
    EXPECT_EQ(counters_.copies_ahead.load(), 0u);
    EXPECT_FALSE(block_->busy.load());
}

TEST_F(CopiesAheadTest, AFailureOfAnyCallLeavesTheBlockAsItWas) {
    unsigned char value = 1;
    for (const char* name :
         {"cuLaunchKernel", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery"}) {
        for (const std::uint64_t nth : {1, 2, 3}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(nth));
            write(++value);
            fake_.fail(name, nth, CUDA_ERROR_UNKNOWN);
            (void)swap_->copy_ahead(*block_, 0);
            finish();
            fake_.clear_faults();
            EXPECT_EQ(block_->cell.load().state(), Residency::Resident);
            EXPECT_EQ(block_->arriving.load(), nullptr);
            evict();
            EXPECT_TRUE(holds(value));
            EXPECT_EQ(swap_->fetch(*block_, SwapEngine::Way::Plain, 0), SwapEngine::Start::Started);
            finish();
        }
    }
    EXPECT_FALSE(swap_->lost());
}

}  // namespace
}  // namespace libswap
