// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>

#include <vector>

#include "runtime/device.hpp"
#include "runtime/host_memory.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSegment = 2 * kMiB;  // a block, where the device is so small

/// A program with an allocator of its own that gives out parts of segments, on a device of 16 MiB.
class Lives : public ::testing::Test {
  protected:
    void SetUp() override {
        config_.lifetimes = true;
        open();
    }
    void open() {
        config_.budget.kind = Amount::Kind::Bytes;
        config_.budget.bytes = 16 * kMiB;
        config_.host_limit.kind = Amount::Kind::Bytes;
        config_.host_limit.bytes = 256 * kMiB;
        config_.min_swap_bytes = kMiB;
        host_limit_ = std::make_unique<HostLimit>(host_limit_of(config_));
        device_ = Device::open(fake_.table(), config_, nullptr, 0, fake_.context(),
                               host_limit_.get(), &edges_);
        ASSERT_TRUE(device_);
    }
    std::uint64_t alloc(std::uint64_t bytes = kSegment) {
        CUdeviceptr ptr = 0;
        EXPECT_EQ(device_->mem_alloc(&ptr, bytes, fake_.context()), CUDA_SUCCESS);
        return ptr;
    }
    void launch(std::uint64_t buffer, std::function<void()> work) {
        Operation op;
        device_->name_address(op, buffer);
        op.signature = 1;
        EXPECT_EQ(device_->run(op, fake_.context(), CU_STREAM_LEGACY,
                               [&] { return fake_.submit(CU_STREAM_LEGACY, work); }),
                  CUDA_SUCCESS);
    }
    void write(std::uint64_t buffer, std::uint64_t value, std::uint64_t bytes = kSegment) {
        launch(buffer, [=] {
            auto* words = reinterpret_cast<std::uint64_t*>(buffer);
            for (std::uint64_t i = 0; i < bytes / 8; ++i) words[i] = value + i;
        });
    }
    bool holds(std::uint64_t buffer, std::uint64_t value, std::uint64_t bytes = kSegment) {
        bool good = true;
        launch(buffer, [=, result = &good] {
            const auto* words = reinterpret_cast<const std::uint64_t*>(buffer);
            for (std::uint64_t i = 0; i < bytes / 8; ++i) *result &= words[i] == value + i;
        });
        fake_.pump();
        return good;
    }
    /// Uses other memory of the device's size, so that all else has to leave.
    void press() {
        while (others_.size() < 8) others_.push_back(alloc());
        for (const std::uint64_t other : others_) write(other, 0);
        fake_.pump();
    }
    /// How many blocks a launch uses that names this address.
    std::size_t used(std::uint64_t address) {
        EXPECT_TRUE(device_->by_parts());
        Operation op;
        op.by_parts = device_->by_parts();
        device_->name_address(op, address);
        return op.blocks.size();
    }
    std::uint64_t copied_out() { return device_->counters().bytes_out.load(); }
    std::uint64_t ended() { return device_->counters().contents_ended.load(); }

    testing::FakeDriver fake_;
    Config config_;
    std::unique_ptr<HostLimit> host_limit_;
    PointerEdges edges_;
    std::unique_ptr<Device> device_;
    std::vector<std::uint64_t> others_;
};

TEST_F(Lives, WhatWasGivenBackLeavesWithoutACopy) {
    press();
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    write(segment, 7);
    fake_.pump();
    device_->content_ends(segment, kSegment);
    EXPECT_EQ(ended(), 1u);
    const std::uint64_t before = copied_out();
    press();  // all others fit again without the segment
    EXPECT_EQ(copied_out(), before);
    EXPECT_GE(device_->counters().bytes_fresh.load(), kSegment);
}

TEST_F(Lives, OfWhichAPartIsInUseAllIsKept) {
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kMiB);
    device_->content_begins(segment + kMiB, kMiB);
    write(segment, 7);
    device_->content_ends(segment + kMiB, kMiB);
    EXPECT_EQ(ended(), 0u);
    press();
    EXPECT_TRUE(holds(segment, 7));
}

TEST_F(Lives, WhatIsGivenOutAgainIsKeptAgain) {
    const std::uint64_t segment = alloc();
    for (std::uint64_t round = 1; round <= 6; ++round) {
        device_->content_begins(segment, kSegment);
        if (round % 2) press();  // it is on the host when it is first written
        write(segment, round);
        press();
        EXPECT_TRUE(holds(segment, round)) << round;
        device_->content_ends(segment, kSegment);
        if (round % 3) press();
    }
    EXPECT_EQ(ended(), 6u);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(Lives, WhoWritesWithoutItsHavingBeenGivenOutKeepsIt) {
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    device_->content_ends(segment, kSegment);
    write(segment, 3);
    press();
    EXPECT_TRUE(holds(segment, 3));
}

TEST_F(Lives, BlocksOfWhichAllWasGivenBackEnd) {
    const std::uint64_t segment = alloc(3 * kSegment);
    device_->content_begins(segment, 3 * kSegment);
    write(segment, 5, 3 * kSegment);
    device_->content_ends(segment + 512, 3 * kSegment - 1024);
    EXPECT_EQ(ended(), 1u);
    device_->content_ends(segment + 3 * kSegment - 512, 512);
    EXPECT_EQ(ended(), 2u);
    device_->content_ends(segment, 512);
    EXPECT_EQ(ended(), 3u);
}

TEST_F(Lives, MoreBackThanWasGivenOutSaysNothing) {
    const std::uint64_t segment = alloc();
    write(segment, 9);
    device_->content_ends(segment, kSegment);  // given out before anybody listened
    device_->content_begins(segment, kMiB);
    device_->content_ends(segment, 2 * kMiB);
    EXPECT_EQ(ended(), 0u);
    press();
    EXPECT_TRUE(holds(segment, 9));
}

TEST_F(Lives, OnceAStreamWasCapturedNothingEnds) {
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    write(segment, 4);
    device_->begin_capture();
    device_->end_capture();
    device_->content_ends(segment, kSegment);
    EXPECT_EQ(ended(), 0u);
    press();
    EXPECT_TRUE(holds(segment, 4));
}

TEST_F(Lives, WhereFreedMemoryIsToBeTheSameInEveryRunNothingEnds) {
    config_.fill = {true, 0xA5};
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    write(segment, 4);
    device_->content_ends(segment, kSegment);
    press();
    EXPECT_TRUE(holds(segment, 4));
}

TEST_F(Lives, WhatWasGivenBackHasNoContentUntilItIsNamed) {
    const std::uint64_t segment = alloc();
    EXPECT_FALSE(device_->has_no_content(segment));
    device_->content_begins(segment, kSegment);
    device_->content_ends(segment, kSegment);
    EXPECT_TRUE(device_->has_no_content(segment + 100));
    EXPECT_FALSE(device_->has_no_content(0x1000));
    write(segment, 1);
    EXPECT_FALSE(device_->has_no_content(segment));
    device_->content_begins(segment, kSegment);
    EXPECT_FALSE(device_->has_no_content(segment));
}

TEST_F(Lives, OfAPoolThatTheProgramCutsItselfNotAllIsKnown) {
    const std::uint64_t segment = alloc();
    device_->content_begins(segment + kMiB, kMiB / 2);
    write(segment, 6);
    device_->content_ends(segment + kMiB, kMiB / 2);
    device_->content_begins(segment, kMiB);
    device_->content_ends(segment, kMiB);
    EXPECT_EQ(ended(), 0u);
    press();
    EXPECT_TRUE(holds(segment, 6));
}

TEST_F(Lives, WhoWasSeenToWriteWithoutNamingKeepsWhatHeWritesOnTheHost) {
    device_->counters().hidden_functions = 1;
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    write(segment, 1);
    fake_.pump();
    device_->content_ends(segment, kSegment);
    press();
    device_->content_begins(segment, kSegment);
    launch(others_[0], [=] {
        auto* words = reinterpret_cast<std::uint64_t*>(segment);
        for (std::uint64_t i = 0; i < kSegment / 8; ++i) words[i] = 77 + i;
    });
    fake_.pump();
    EXPECT_TRUE(holds(segment, 77));
}

TEST_F(Lives, NobodyWaitsForALongKernelInFreedMemory) {
    const CUstream other = fake_.make_stream();
    press();
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    write(segment, 1);
    fake_.pump();
    fake_.hold(other, true);
    Operation op;
    device_->name_address(op, segment);
    op.signature = 2;
    ASSERT_EQ(device_->run(op, fake_.context(), other, [&] { return fake_.submit(other, [] {}); }),
              CUDA_SUCCESS);
    device_->content_ends(segment, kSegment);
    for (std::size_t i = 0; i < 3; ++i) write(others_[i], 5);
    EXPECT_EQ(device_->counters().stalls.load(), 0u);
    fake_.hold(other, false);
    fake_.pump();
}

TEST_F(Lives, OfOtherMemoryNothingIsNoted) {
    device_->content_begins(0x1000, kMiB);
    device_->content_ends(0x1000, kMiB);
    const std::uint64_t small = alloc(1000);
    device_->content_begins(small, 512);
    device_->content_ends(small, 512);
    EXPECT_EQ(ended(), 0u);
}

/// A free with work in flight: what is behind it on the stream sees none of the new content, and
/// what was before it all of the old.
TEST_F(Lives, EarlierWorkStillHasWhatItReads) {
    const std::uint64_t segment = alloc();
    device_->content_begins(segment, kSegment);
    fake_.hold(CU_STREAM_LEGACY, true);
    write(segment, 11);
    bool good = true;
    launch(segment, [=, result = &good] {
        const auto* words = reinterpret_cast<const std::uint64_t*>(segment);
        for (std::uint64_t i = 0; i < kSegment / 8; ++i) *result &= words[i] == 11 + i;
    });
    device_->content_ends(segment, kSegment);
    fake_.hold(CU_STREAM_LEGACY, false);
    press();
    EXPECT_TRUE(good);
}

TEST_F(Lives, ALaunchUsesThePieceThatItNamesWhateverWasThereBefore) {
    press();
    const std::uint64_t segment = alloc(4 * kSegment);
    for (std::uint64_t at = segment; at < segment + 4 * kSegment; at += kSegment) {
        device_->content_begins(at, kSegment);
        EXPECT_EQ(used(at), 1u);
    }
    for (std::uint64_t at = segment; at < segment + 3 * kSegment; at += kSegment)
        device_->content_ends(at, kSegment);
    device_->content_begins(segment, 3 * kSegment - kMiB);
    EXPECT_EQ(used(segment), 3u);
    EXPECT_EQ(used(segment + kSegment), 3u) << "a view of it";
    EXPECT_EQ(used(segment + 3 * kSegment - kMiB), 4u) << "nobody has been told of that";
    EXPECT_EQ(used(segment + 3 * kSegment), 1u);
}

TEST_F(Lives, WhereReportsDoNotHoldALaunchUsesAllOfASegment) {
    config_.lifetimes = false;
    device_.reset();
    open();
    press();
    const std::uint64_t segment = alloc(4 * kSegment);
    for (std::uint64_t at = segment; at < segment + 4 * kSegment; at += kSegment) {
        device_->content_begins(at, kSegment);
        EXPECT_EQ(used(at), 4u);
    }
}

TEST_F(Lives, OfASegmentThatWasFreedNoPieceIsKnown) {
    press();
    const std::uint64_t segment = alloc(4 * kSegment);
    device_->content_begins(segment, kSegment);
    device_->content_begins(segment + kSegment, kSegment);
    EXPECT_EQ(device_->mem_free(segment), CUDA_SUCCESS);
    ASSERT_EQ(alloc(4 * kSegment), segment) << "it takes the same place";
    device_->content_begins(segment, kSegment);
    EXPECT_EQ(used(segment + kSegment), 4u);
}

}  // namespace
}  // namespace libswap
