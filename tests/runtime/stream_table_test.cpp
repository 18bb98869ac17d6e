// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/stream_table.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

const CUcontext kOther = reinterpret_cast<CUcontext>(0x2000);

class StreamTableTest : public ::testing::Test {
  protected:
    StreamTableTest() : table_(fake_.table()), streams_(table_) {}

    testing::FakeDriver fake_;
    Driver table_;
    StreamTable streams_;
};

TEST_F(StreamTableTest, AStreamBelongsToTheContextItWasMadeInWhicheverIsCurrent) {
    table_.cuStreamGetCtx = [](CUstream, CUcontext* context) {
        *context = testing::FakeDriver::context();
        return CUDA_SUCCESS;
    };
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(kOther, stream);
    EXPECT_EQ(streams_.context(index), fake_.context());
    EXPECT_EQ(streams_.find(fake_.context(), stream), index);
    EXPECT_EQ(streams_.find(kOther, stream), index);
    EXPECT_EQ(streams_.count(), 1);
}

TEST_F(StreamTableTest, EachContextHasDefaultStreamsOfItsOwn) {
    for (const CUstream stream : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD})
        EXPECT_NE(streams_.find(kOther, stream), streams_.find(fake_.context(), stream));
}

TEST_F(StreamTableTest, WhatWasIssuedLastIsCoveredHoweverFarTheProgramRunsAhead) {
    const CUstream stream = fake_.make_stream();
    fake_.hold(stream, true);
    const StreamIndex index = streams_.find(fake_.context(), stream);
    bool ran = false;
    Use last;
    for (std::size_t i = 0; i < 3 * StreamTable::kEventsPerStream; ++i) {
        fake_.submit(stream, [&ran] { ran = true; });
        last = streams_.take_place(index);
        ASSERT_TRUE(streams_.record(index));
        ASSERT_TRUE(streams_.is_covered(last));
        ASSERT_NE(streams_.covering_event(last), nullptr);
        ran = false;
    }
    EXPECT_FALSE(streams_.is_complete(last));
    EXPECT_FALSE(ran);
    fake_.hold(stream, false);
    fake_.pump();
    EXPECT_TRUE(streams_.is_complete(last));
    EXPECT_TRUE(ran);
}

TEST_F(StreamTableTest, WithoutAnyEventWhatIsDoneIsKnownOnceTheStreamHasRunDry) {
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(fake_.context(), stream);
    fake_.fail("cuEventCreate", 1, CUDA_ERROR_NOT_SUPPORTED, true);
    fake_.submit(stream, [] {});
    const Use use = streams_.take_place(index);
    fake_.hold(stream, true);
    EXPECT_FALSE(streams_.record(index));
    EXPECT_FALSE(streams_.is_complete(use));
    fake_.hold(stream, false);
    fake_.pump();
    EXPECT_TRUE(streams_.record(index));
    EXPECT_TRUE(streams_.is_complete(use));
}

TEST_F(StreamTableTest, WorkOfAStreamThatIsGoneIsKnownToBeDoneWithoutAnEventToo) {
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(fake_.context(), stream);
    fake_.submit(stream, [] {});
    const Use use = streams_.take_place(index);
    fake_.fail("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    streams_.retire_handle(stream);
    EXPECT_FALSE(streams_.alive(index));
    EXPECT_TRUE(streams_.known_complete(use));
}

TEST_F(StreamTableTest, WhereTheDriverMakesNoEventTheErrorIsItsOwn) {
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(fake_.context(), stream);
    fake_.fail("cuEventCreate", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    fake_.hold(stream, true);
    fake_.submit(stream, [] {});
    (void)streams_.take_place(index);
    const Status refused = streams_.record(index);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, CUDA_ERROR_OUT_OF_MEMORY);
    fake_.clear_faults();
    EXPECT_TRUE(streams_.record(index));
    fake_.fail("cuEventCreate", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    const Use last = streams_.take_place(index);
    EXPECT_TRUE(streams_.record(index)) << "one that is there serves again";
    EXPECT_TRUE(streams_.is_covered(last));
}

TEST_F(StreamTableTest, ALookAtWhatNoEventCoversMakesTheNextOneKnow) {
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(fake_.context(), stream);
    fake_.submit(stream, [] {});
    const Use use = streams_.take_place(index);
    EXPECT_FALSE(streams_.look(use));
    EXPECT_TRUE(streams_.is_covered(use));
    fake_.pump();
    EXPECT_TRUE(streams_.look(use));
    EXPECT_EQ(fake_.calls("cuEventRecord"), 1u);
}

TEST_F(StreamTableTest, QueriesThatOnlyFailShowThatNothingIsAnswered) {
    const CUstream stream = fake_.make_stream();
    const StreamIndex index = streams_.find(fake_.context(), stream);
    fake_.hold(stream, true);
    fake_.submit(stream, [] {});
    const Use use = streams_.take_place(index);
    ASSERT_TRUE(streams_.record(index));
    const auto ask = [&](CUresult code, std::uint32_t times) {
        fake_.fail("cuEventQuery", 1, code, true);
        for (std::uint32_t i = 0; i < times; ++i) EXPECT_FALSE(streams_.is_complete(use));
        fake_.clear_faults();
    };
    ask(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 2 * StreamTable::kMaxQueryFailures);
    EXPECT_TRUE(streams_.answered());
    ask(CUDA_ERROR_UNKNOWN, StreamTable::kMaxQueryFailures - 1);
    EXPECT_TRUE(streams_.answered());
    EXPECT_FALSE(streams_.is_complete(use)) << "an answer, so they count from one again";
    ask(CUDA_ERROR_UNKNOWN, StreamTable::kMaxQueryFailures - 1);
    EXPECT_TRUE(streams_.answered());
    ask(CUDA_ERROR_UNKNOWN, 1);
    EXPECT_FALSE(streams_.answered());
    streams_.forget_context(fake_.context());
    EXPECT_TRUE(streams_.answered());
}

}  // namespace
}  // namespace libswap
