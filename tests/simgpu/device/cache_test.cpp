// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <gtest/gtest.h>

#include <set>

#include "simgpu/device/cache_model.hpp"

namespace simgpu {
namespace {

CacheShape shape(std::uint32_t sets, std::uint32_t ways, Replacement replacement,
                 SetIndex index = SetIndex::Modulo) {
    return {sets, ways, 128, replacement, index};
}

TEST(CacheTags, LruThrowsOutWhatWasUsedLongestAgo) {
    CacheTags cache(shape(1, 2, Replacement::Lru), 1, 1);
    EXPECT_FALSE(cache.access(1));
    EXPECT_FALSE(cache.access(2));
    EXPECT_TRUE(cache.access(1));
    EXPECT_FALSE(cache.access(3));  // in the place of 2
    EXPECT_TRUE(cache.access(1));
    EXPECT_FALSE(cache.access(2));
}

TEST(CacheTags, FifoThrowsOutWhatCameFirst) {
    CacheTags cache(shape(1, 2, Replacement::Fifo), 1, 1);
    cache.access(1);
    cache.access(2);
    EXPECT_TRUE(cache.access(1));
    EXPECT_FALSE(cache.access(3));  // in the place of 1
    EXPECT_TRUE(cache.access(2));
    EXPECT_FALSE(cache.access(1));
}

TEST(CacheTags, PseudoLruNeverThrowsOutWhatWasUsedLast) {
    CacheTags cache(shape(1, 6, Replacement::PseudoLru), 1, 1);
    for (std::uint64_t line = 0; line < 500; ++line) {
        cache.access(line * 7 % 13);
        EXPECT_TRUE(cache.access(line * 7 % 13));
        cache.access(100 + line);
        EXPECT_TRUE(cache.access(line * 7 % 13));
    }
}

TEST(CacheTags, WhatFitsMissesOnceWhateverIsReplaced) {
    for (const auto replacement :
         {Replacement::Lru, Replacement::PseudoLru, Replacement::Random, Replacement::Fifo}) {
        for (const auto index : {SetIndex::Modulo, SetIndex::Hashed}) {
            CacheTags cache(shape(16, 3, replacement, index), 1, 1);
            int missed = 0;
            for (int round = 0; round < 3; ++round) {
                for (std::uint64_t line = 0; line < 48; ++line)
                    missed += cache.access(4096 + line) ? 0 : 1;
            }
            EXPECT_EQ(missed, 48);
        }
    }
}

TEST(CacheTags, AHashedIndexSpreadsAlignedRunsOverAllSets) {
    const CacheTags cache(shape(32, 4, Replacement::Lru, SetIndex::Hashed), 1, 1);
    for (std::uint64_t run = 0; run < 50; ++run) {
        std::set<std::uint32_t> sets;
        for (std::uint64_t line = 0; line < 32; ++line) sets.insert(cache.set_of(run * 32 + line));
        EXPECT_EQ(sets.size(), 32U);
    }
    EXPECT_NE(cache.set_of(0), cache.set_of(32));
}

TEST(CacheTags, SectorsComeOneByOneAndLeaveTogether) {
    CacheTags cache(shape(1, 1, Replacement::Lru), 4, 1);
    EXPECT_FALSE(cache.access(1, 0));
    EXPECT_FALSE(cache.access(1, 3));
    EXPECT_TRUE(cache.access(1, 0));
    EXPECT_FALSE(cache.access(2, 0));
    EXPECT_FALSE(cache.access(1, 3));
}

CacheProfile two_levels() {
    auto profile = parse_cache_profile(R"({
        "caches": [
          {"name": "L1", "scope": "sm", "bytes": 1024, "line_bytes": 128, "ways": 2, "virtual": true, "latency_cycles": 30},
          {"name": "L2", "bytes": 8192, "line_bytes": 128, "ways": 4, "latency_cycles": 200}],
        "tlbs": [{"entries": 2, "ways": 2, "page_bytes": 65536, "miss_cycles": 50}],
        "memory_latency_cycles": 500})",
                                       "two levels");
    EXPECT_TRUE(profile) << profile.error();
    return *profile;
}

std::uint32_t load(CacheModel& model, std::uint64_t address, LoadPath path, std::uint32_t sm = 0) {
    return model.load({&address, 1}, path, sm);
}

TEST(CacheModel, ALoadTakesTheTimeOfTheLevelThatHasIt) {
    CacheModel model(two_levels(), 2);
    model.start_kernel();
    EXPECT_EQ(load(model, 0, LoadPath::Data), 550U);  // and its page is not known yet
    EXPECT_EQ(load(model, 64, LoadPath::Data), 30U);
    EXPECT_EQ(load(model, 64, LoadPath::Data, 1), 200U);  // another SM
    EXPECT_EQ(load(model, 64, LoadPath::Global), 200U);   // passes the nearest
    model.start_kernel();
    EXPECT_EQ(load(model, 0, LoadPath::ReadOnly), 200U);  // the nearest is empty again
    load(model, 1 << 20, LoadPath::Global);
    load(model, 2 << 20, LoadPath::Global);
    EXPECT_EQ(load(model, 0, LoadPath::Global), 250U);  // two pages have come since
}

TEST(CacheModel, AWarpWaitsForItsSlowestLane) {
    CacheModel model(two_levels(), 1);
    const std::uint64_t lanes[] = {0, 4, 128, 132};
    EXPECT_EQ(model.load(lanes, LoadPath::Data, 0), 550U);
    EXPECT_EQ(model.load(lanes, LoadPath::Data, 0), 30U);
}

TEST(CacheProfile, SaysWhatIsWrong) {
    const char* wrong[] = {
        "[]",
        "{}",
        R"({"memory_latency_cycles": -1})",
        R"({"memory_latency_cycles": 500, "noise": "much"})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 1000, "line_bytes": 128, "ways": 2, "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 1024, "line_bytes": 100, "ways": 2, "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 1024, "line_bytes": 128, "ways": 3, "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 768, "line_bytes": 128, "ways": 2, "index": "hashed", "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 1024, "line_bytes": 128, "ways": 2, "replacement": "best", "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": [{"bytes": 1024, "line_bytes": 128, "sector_bytes": 256, "ways": 2, "latency_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "tlbs": [{"entries": 3, "ways": 2, "page_bytes": 65536, "miss_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "tlbs": [{"entries": 2, "ways": 2, "page_bytes": 0, "miss_cycles": 1}]})",
        R"({"memory_latency_cycles": 500, "caches": 7})",
    };
    for (const char* text : wrong) {
        const auto profile = parse_cache_profile(text, "p");
        EXPECT_FALSE(profile) << text;
        if (!profile) {
            EXPECT_EQ(profile.error().find('\n'), std::string::npos);
        }
    }
}

TEST(CacheProfile, ShippedOnesAreRight) {
    for (const char* name : {"a100", "h100", "v100"}) {
        const auto profile = load_cache_profile(name, {std::string(MACHINES_DIR) + "/caches"});
        ASSERT_TRUE(profile) << profile.error();
        EXPECT_EQ(profile->caches.size(), 2U);
    }
    EXPECT_FALSE(load_cache_profile("none", {std::string(MACHINES_DIR) + "/caches"}));
}

}  // namespace
}  // namespace simgpu
