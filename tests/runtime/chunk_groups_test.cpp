// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/chunk_groups.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace libswap {
namespace {

constexpr CUdeviceptr kBase = 0x100000000;
constexpr std::uint64_t kBytes = kChunkBytes[0];

/// A group of which `count` chunks exist.
void add(ChunkGroups& groups, CUdeviceptr base, std::uint32_t count, ChunkClass size_class = 0,
         CUcontext context = nullptr) {
    const ChunkPlaces places = groups.add_group(size_class, base, kGroupChunks, count, context);
    for (std::uint32_t i = 0; i < count; ++i) groups.add(places, i, i + 1);
}

std::vector<Chunk*> take(ChunkGroups& groups, std::size_t count) {
    std::vector<Chunk*> chunks(count);
    if (!groups.take(0, chunks)) chunks.clear();
    return chunks;
}

TEST(ChunkGroups, GivesNeighbours) {
    ChunkGroups groups;
    add(groups, kBase, 32);
    const auto chunks = take(groups, 20);
    EXPECT_EQ(neighbours(chunks, 0), 20u);
    EXPECT_EQ(chunks[19]->alias, kBase + 19 * kBytes);
    EXPECT_TRUE(take(groups, 13).empty());
    EXPECT_EQ(groups.free_count(0), 12u);
}

TEST(ChunkGroups, TakesTheShortestRunThatIsLongEnough) {
    ChunkGroups groups;
    add(groups, kBase, 32);
    const auto all = take(groups, 32);
    for (const int i : {0, 1, 2, 3, 4, 10, 11, 20, 21, 22}) groups.give_back(all[i]);
    EXPECT_EQ(take(groups, 3)[0], all[20]);
    EXPECT_EQ(take(groups, 2)[0], all[10]);
    EXPECT_EQ(take(groups, 3)[0], all[0]);
}

TEST(ChunkGroups, TakesTheLongestRunsWhereNoneIsLongEnough) {
    ChunkGroups groups;
    add(groups, kBase, 32);
    const auto all = take(groups, 32);
    for (const int i : {0, 2, 3, 4, 10, 11}) groups.give_back(all[i]);
    const auto chunks = take(groups, 5);
    EXPECT_EQ(neighbours(chunks, 0), 3u);
    EXPECT_EQ(neighbours(chunks, 3), 2u);
    EXPECT_EQ(chunks[0], all[2]);
}

TEST(ChunkGroups, ChunksOfDifferentGroupsAreNoNeighbours) {
    ChunkGroups groups;
    add(groups, kBase, 32);
    add(groups, kBase + 32 * kBytes, 32);
    std::vector<Chunk*> chunks{nullptr, nullptr};
    const auto all = take(groups, 64);
    ASSERT_EQ(all.size(), 64u);
    for (std::uint32_t i = 0; i < 64; i += neighbours(all, i)) {
        EXPECT_EQ(i % 32, 0u);
        EXPECT_EQ(neighbours(all, i), 32u);
    }
}

TEST(ChunkGroups, NewChunksFillPlacesBeforeThereIsAnotherGroup) {
    ChunkGroups groups;
    add(groups, kBase, 20);
    EXPECT_EQ(groups.claim(0, 13, false).count, 0u);
    const ChunkPlaces claimed = groups.claim(0, 12, false);
    ASSERT_EQ(claimed.count, 12u);
    EXPECT_EQ(claimed.alias(), kBase + 20 * kBytes);
    EXPECT_EQ(groups.claim(0, 1, true).count, 0u);  // nobody else's
    for (std::uint32_t i = 0; i < 10; ++i) groups.add(claimed, i, 1);
    for (std::uint32_t i = 10; i < 12; ++i) groups.cancel(claimed, i);
    EXPECT_EQ(groups.free_count(0), 30u);
    EXPECT_EQ(groups.claim(0, 5, true).count, 2u);  // in pieces: what there is
}

TEST(ChunkGroups, AnotherClassGivesWhereLeastIsFree) {
    ChunkGroups groups;
    add(groups, kBase, 32, 1);
    add(groups, kBase + 32 * kChunkBytes[1], 2, 1);
    const Chunk* chunk = groups.take_other_class(0);
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(chunk->alias, kBase + 32 * kChunkBytes[1]);
    EXPECT_EQ(groups.take_other_class(1), nullptr);
}

TEST(ChunkGroups, AContextTakesItsFreeChunksWithIt) {
    ChunkGroups groups;
    const auto context = reinterpret_cast<CUcontext>(0x10);
    add(groups, kBase, 4, 0, context);
    const auto chunks = take(groups, 1);
    EXPECT_EQ(groups.forget_context(context), 3 * kBytes);
    EXPECT_EQ(groups.free_count(0), 0u);
    groups.give_back(chunks[0]);
    EXPECT_EQ(groups.forget_context(context), kBytes);
    EXPECT_TRUE(groups.is_valid());
}

TEST(ChunkGroups, NobodyGetsAChunkTwice) {
    ChunkGroups groups;
    for (int i = 0; i < 4; ++i) add(groups, kBase + i * 32 * kBytes, 32);
    std::mt19937 random(7);
    std::vector<std::vector<Chunk*>> taken;
    std::set<Chunk*> in_use;
    for (int step = 0; step < 4000; ++step) {
        if (random() % 2 == 0) {
            auto chunks = take(groups, 1 + random() % 32);
            for (Chunk* chunk : chunks) EXPECT_TRUE(in_use.insert(chunk).second);
            if (!chunks.empty()) taken.push_back(chunks);
        } else if (!taken.empty()) {
            std::swap(taken[random() % taken.size()], taken.back());
            for (Chunk* chunk : taken.back()) {
                in_use.erase(chunk);
                groups.give_back(chunk);
            }
            taken.pop_back();
        }
        ASSERT_EQ(groups.free_count(0) + in_use.size(), 128u);
    }
    EXPECT_TRUE(groups.is_valid());
}

}  // namespace
}  // namespace libswap
