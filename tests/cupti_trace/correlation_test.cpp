// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cupti_trace/correlation.hpp"

#include <gtest/gtest.h>

namespace libswap::cupti {
namespace {

constexpr int kLongAfter = 100;  // rounds

TEST(Correlation, PutsTagsAndTimesTogetherInAnyOrder) {
    Correlation correlation;
    correlation.note_tag(1, 100);
    correlation.note_operation(1, 10, 30);
    correlation.note_operation(2, 40, 45);
    std::vector<TaggedTime> first;
    correlation.take(&first);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].tag, 100u);
    EXPECT_EQ(first[0].end_ns - first[0].start_ns, 20u);
    correlation.note_tag(2, 200);
    std::vector<TaggedTime> second;
    correlation.take(&second);
    ASSERT_EQ(second.size(), 1u);
    EXPECT_EQ(second[0].tag, 200u);
}

TEST(Correlation, SpansAllThatACallSubmitted) {
    Correlation correlation;
    correlation.note_tag(7, 1);
    correlation.note_operation(7, 100, 110);
    std::vector<TaggedTime> part;
    correlation.take(&part);
    correlation.note_operation(7, 120, 150);
    std::vector<TaggedTime> whole;
    correlation.take(&whole);
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_EQ(whole[0].start_ns, 100u);
    EXPECT_EQ(whole[0].end_ns, 150u);
}

TEST(Correlation, TellsEachOnce) {
    Correlation correlation;
    correlation.note_tag(1, 100);
    correlation.note_operation(1, 10, 30);
    std::vector<TaggedTime> out;
    correlation.take(&out);
    correlation.take(&out);
    EXPECT_EQ(out.size(), 1u);
}

TEST(Correlation, ForgetsIdsThatComeAgainLater) {
    Correlation correlation;
    correlation.note_tag(1, 100);
    correlation.note_operation(1, 10, 30);
    std::vector<TaggedTime> out;
    for (int i = 0; i < kLongAfter; ++i) correlation.take(&out);
    correlation.note_operation(1, 1000, 1010);
    correlation.note_tag(1, 101);
    std::vector<TaggedTime> again;
    correlation.take(&again);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].tag, 101u);
    EXPECT_EQ(again[0].start_ns, 1000u);
}

/// A host that runs seconds ahead of its device.
TEST(Correlation, WaitsForOperationsThatRunMuchLater) {
    Correlation correlation;
    std::vector<TaggedTime> out;
    for (std::uint32_t id = 1; id <= 1000; ++id) {
        correlation.note_tag(id, 100 + id);
        correlation.take(&out);
    }
    EXPECT_TRUE(out.empty());
    for (std::uint32_t id = 1; id <= 1000; ++id)
        correlation.note_operation(id, 10 * id, 10 * id + 5);
    correlation.take(&out);
    ASSERT_EQ(out.size(), 1000u);
    EXPECT_EQ(out[0].tag - 100, out[0].start_ns / 10);
    for (int i = 0; i < kLongAfter; ++i) correlation.take(&out);
    EXPECT_EQ(out.size(), 1000u);
    EXPECT_EQ(correlation.size(), 0u);
}

TEST(Correlation, ForgetsWhatNobodyTagged) {
    Correlation correlation;
    std::vector<TaggedTime> out;
    for (std::uint32_t id = 1; id <= 1000; ++id) {
        correlation.note_operation(id, 10, 20);
        correlation.take(&out);
    }
    EXPECT_TRUE(out.empty());
    EXPECT_LT(correlation.size(), 100u);
}

TEST(Correlation, RemembersSoManyCallsAndNoMore) {
    Correlation correlation;
    std::vector<TaggedTime> out;
    constexpr std::uint32_t kCalls = Correlation::kMostAwaited + 1000;
    for (std::uint32_t id = 1; id <= kCalls; ++id) correlation.note_tag(id, id);
    correlation.take(&out);
    EXPECT_EQ(correlation.size(), Correlation::kMostAwaited);
    // The oldest are gone.
    correlation.note_operation(1, 10, 20);
    correlation.note_operation(kCalls, 10, 20);
    correlation.take(&out);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].tag, kCalls);
}

}  // namespace
}  // namespace libswap::cupti
