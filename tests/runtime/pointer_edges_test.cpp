// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/pointer_edges.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace libswap {
namespace {

std::vector<std::uint64_t> targets(const PointerEdges& edges, std::uint64_t base,
                                   std::uint64_t bytes) {
    std::vector<std::uint64_t> found;
    edges.for_each(base, bytes, [&](std::uint64_t target) { found.push_back(target); });
    return found;
}

using Targets = std::vector<std::uint64_t>;

TEST(Rows, FindWhereAnAddressIsAmongTheirBytes) {
    const Rows rows{1000, 24, 3, 100, 2, 1000};
    std::size_t offset = 0;
    EXPECT_EQ(rows.span_bytes(), 1224u);
    for (std::size_t i = 0; i < rows.bytes(); ++i) {
        EXPECT_TRUE(rows.find(rows.at(i), 1, &offset));
        EXPECT_EQ(offset, i);
    }
    EXPECT_TRUE(rows.find(2216, 8, &offset));
    EXPECT_EQ(offset, 5u * 24 + 16);
    EXPECT_FALSE(rows.find(2217, 8, &offset)) << "beyond its row";
    EXPECT_FALSE(rows.find(1024, 1, &offset)) << "between two rows";
    EXPECT_FALSE(rows.find(1300, 1, &offset)) << "between two slices";
    EXPECT_FALSE(rows.find(999, 1, &offset));
}

TEST(Rows, OfNothingTouchNothing) {
    std::size_t offset = 0;
    for (const Rows& rows : {Rows{8, 0, 3, 100, 2, 1000}, Rows{8, 24, 0, 100, 2, 1000},
                             Rows{8, 24, 3, 100, 0, 1000}, Rows::range(8, 0)}) {
        EXPECT_EQ(rows.span_bytes(), 0u);
        EXPECT_FALSE(rows.find(8, 1, &offset));
    }
}

TEST(Rows, OfMoreThanThereCanBeAreNotTakenForFew) {
    constexpr std::size_t kHuge = std::size_t{1} << 40;
    EXPECT_EQ((Rows{8, kHuge, kHuge, kHuge, 1, 0}.bytes()), SIZE_MAX);
    EXPECT_EQ((Rows{8, 16, kHuge, 16, kHuge, kHuge}.bytes()), SIZE_MAX);
}

TEST(Rows, ThatOverlapAreNotApart) {
    EXPECT_TRUE((Rows{8, 16, 4, 16, 2, 64}.are_apart()));
    EXPECT_FALSE((Rows{8, 16, 4, 8, 1, 0}.are_apart()));
    EXPECT_FALSE((Rows{8, 16, 4, 16, 2, 48}.are_apart()));
    EXPECT_TRUE(Rows::range(8, 16).are_apart());
}

TEST(PointerEdges, GoWithWhatIsOverwrittenEvenInPart) {
    PointerEdges edges;
    for (std::uint64_t slot = 64; slot < 128; slot += 8) edges.add(slot, slot * 10);
    edges.overwrite(71, 2);
    EXPECT_EQ(targets(edges, 64, 24), (Targets{800}));
    EXPECT_EQ(targets(edges, 80, 48).size(), 6u);
}

TEST(PointerEdges, BetweenRowsStayWhenTheRowsAreOverwritten) {
    PointerEdges edges;
    for (std::uint64_t slot = 0; slot < 96; slot += 8) edges.add(slot, slot + 1);
    edges.overwrite(Rows{0, 8, 3, 32, 1, 0});
    EXPECT_EQ(targets(edges, 0, 96), (Targets{9, 17, 25, 41, 49, 57, 73, 81, 89}));
}

TEST(PointerEdges, MoveWithTheRowsOfACopy) {
    PointerEdges edges;
    for (std::uint64_t slot = 0; slot < 96; slot += 8) edges.add(slot, slot + 1);
    edges.add(1016, 5);
    // Three rows of two words each, packed.
    edges.copy(Rows{1000, 16, 3, 16, 1, 0}, Rows{0, 16, 3, 32, 1, 0});
    EXPECT_EQ(targets(edges, 1000, 48), (Targets{1, 9, 33, 41, 65, 73}));
}

TEST(PointerEdges, AreOneOfSeveralWhereTheOrderOfWritesIsNotKnown) {
    PointerEdges edges;
    edges.add(0, 100);
    edges.add(8, 200);
    EXPECT_TRUE(edges.add_copies(Rows::range(8, 8), Rows::range(0, 8)));
    EXPECT_FALSE(edges.add_copies(Rows::range(8, 8), Rows::range(0, 8)));
    EXPECT_EQ(targets(edges, 8, 8), (Targets{200, 100}));
    edges.copy(Rows::range(80, 16), Rows::range(0, 16));
    EXPECT_EQ(targets(edges, 80, 16), (Targets{100, 200, 100}));
}

}  // namespace
}  // namespace libswap
