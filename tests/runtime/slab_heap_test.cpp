// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/slab_heap.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace libswap {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

/// As the device does: claims and publishes pages until the piece fits.
std::uint64_t take(SlabHeap& heap, std::uint64_t bytes) {
    std::uint64_t base = heap.take(bytes, nullptr);
    while (!base) {
        SlabHeap::Claim claim = heap.claim(bytes);
        if (claim.pages == 0) {
            static std::uint64_t next = kBase;
            heap.add_slab(next);
            next += SlabHeap::kSlabBytes;
            continue;
        }
        heap.publish(claim);
        base = heap.take(bytes, nullptr);
    }
    return base;
}

TEST(SlabHeap, PiecesLieAcrossPagesWithLittleLost) {
    SlabHeap heap;
    std::uint64_t asked = 0;
    for (int i = 0; i < 36; ++i) {
        take(heap, 590'000);
        asked += 590'000;
    }
    EXPECT_LE(heap.mapped_bytes(), asked + 2 * kPageBytes);
    EXPECT_TRUE(heap.is_valid());
}

TEST(SlabHeap, PiecesNeverOverlapAndAreFound) {
    SlabHeap heap;
    std::mt19937 random(7);
    std::map<std::uint64_t, std::uint64_t> live;
    const std::uint64_t first = take(heap, 1) / SlabHeap::kSlabBytes * SlabHeap::kSlabBytes;
    for (int i = 0; i < 2000; ++i) {
        if (live.size() > 40 && random() % 2) {
            auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
            const auto slab =
                static_cast<std::uint32_t>((victim->first - first) / SlabHeap::kSlabBytes);
            ASSERT_TRUE(heap.free(slab, victim->first));
            ASSERT_FALSE(heap.free(slab, victim->first));
            live.erase(victim);
            continue;
        }
        const std::uint64_t bytes = 1 + random() % 300'000;
        const std::uint64_t base = take(heap, bytes);
        ASSERT_EQ(base % SlabHeap::kUnitBytes, 0u);
        auto next = live.lower_bound(base);
        if (next != live.end()) {
            ASSERT_LE(base + bytes, next->first);
        }
        if (next != live.begin()) {
            --next;
            ASSERT_LE(next->first + next->second, base);
        }
        live[base] = bytes;
    }
    for (const auto& [base, bytes] : live) {
        SlabPiece piece;
        const auto slab = static_cast<std::uint32_t>((base - first) / SlabHeap::kSlabBytes);
        ASSERT_TRUE(heap.find(slab, base + bytes - 1, &piece));
        EXPECT_EQ(piece.base, base);
        EXPECT_EQ(piece.bytes, bytes);
    }
    EXPECT_TRUE(heap.is_valid());
}

}  // namespace
}  // namespace libswap
