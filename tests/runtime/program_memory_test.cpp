// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/program_memory.hpp"

#include <gtest/gtest.h>

#include "runtime/host_limit.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

ProgramAllocation allocation(std::uint64_t bytes) { return {bytes, MemoryPlace::Device, nullptr}; }

TEST(ProgramMemory, GivesBackWhatWasAddedOnce) {
    ProgramMemory memory;
    ProgramAllocation replaced;
    ProgramAllocation freed;
    memory.add(0x1000, allocation(kMiB), &replaced);
    EXPECT_EQ(replaced.bytes, 0u);
    EXPECT_TRUE(memory.remove(0x1000, &freed));
    EXPECT_EQ(freed.bytes, kMiB);
    EXPECT_FALSE(memory.remove(0x1000, &freed));
}

TEST(ProgramMemory, AKeyThatComesAgainReplacesWhatWasNotSeenToGo) {
    ProgramMemory memory;
    ProgramAllocation replaced;
    memory.add(0x1000, allocation(kMiB), &replaced);
    memory.add(0x1000, allocation(2 * kMiB), &replaced);
    EXPECT_EQ(replaced.bytes, kMiB);
}

TEST(ProgramMemory, PhysicalMemoryLivesUntilItsLastHandleAndMapping) {
    ProgramMemory memory;
    ProgramAllocation freed;
    std::uint64_t gone = 0;
    const auto count = [&](const ProgramAllocation& allocation) { gone += allocation.bytes; };
    memory.handle_created(7, allocation(2 * kMiB));
    memory.mapped(0x10000000, 7);
    EXPECT_FALSE(memory.handle_released(7, &freed));
    memory.unmapped(0x10000000, 2 * kMiB, count);
    EXPECT_EQ(gone, 2 * kMiB);

    memory.handle_created(8, allocation(4 * kMiB));
    memory.handle_retained(8);
    memory.mapped(0x20000000, 8);
    memory.unmapped(0x20000000, 4 * kMiB, count);
    EXPECT_EQ(gone, 2 * kMiB);
    EXPECT_FALSE(memory.handle_released(8, &freed));
    EXPECT_TRUE(memory.handle_released(8, &freed));
    EXPECT_EQ(freed.bytes, 4 * kMiB);
}

TEST(ProgramMemory, AHandleNumberMayComeAgainWhileTheOldMemoryIsMapped) {
    ProgramMemory memory;
    ProgramAllocation freed;
    std::uint64_t gone = 0;
    memory.handle_created(7, allocation(2 * kMiB));
    memory.mapped(0x10000000, 7);
    EXPECT_FALSE(memory.handle_released(7, &freed));
    memory.handle_created(7, allocation(8 * kMiB));
    EXPECT_TRUE(memory.handle_released(7, &freed));
    EXPECT_EQ(freed.bytes, 8 * kMiB);
    memory.unmapped(0x10000000, 2 * kMiB,
                    [&](const ProgramAllocation& allocation) { gone += allocation.bytes; });
    EXPECT_EQ(gone, 2 * kMiB);
}

TEST(ProgramMemory, HandlesThatWereNotSeenToBeMadeAreLeftAlone) {
    ProgramMemory memory;
    ProgramAllocation freed;
    memory.mapped(0x10000000, 9);
    memory.handle_retained(9);
    EXPECT_FALSE(memory.handle_released(9, &freed));
}

TEST(HostLimit, IsSharedByPoolsAndTheProgram) {
    HostLimit limit(10 * kMiB);
    EXPECT_TRUE(limit.take(6 * kMiB));
    EXPECT_FALSE(limit.take(6 * kMiB));
    limit.program_took(3 * kMiB);
    EXPECT_FALSE(limit.take(2 * kMiB));
    EXPECT_EQ(limit.room_bytes(), kMiB);
    limit.program_took(20 * kMiB);  // its right
    EXPECT_EQ(limit.room_bytes(), 0u);
    limit.program_gave_back(23 * kMiB);
    limit.give_back(6 * kMiB);
    EXPECT_EQ(limit.room_bytes(), 10 * kMiB);
}

}  // namespace
}  // namespace libswap
