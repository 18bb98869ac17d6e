// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/reach.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

/// 8 MiB are believed, from 16 MiB on, of a buffer of 64 MiB.
constexpr Reach kReach{kBase + 17 * kMiB, kBase + 16 * kMiB, kBase + 24 * kMiB, kBase,
                       kBase + 64 * kMiB};

TEST(Reach, IsLeftByAnIndexOfElementsOfAnySize) {
    EXPECT_FALSE(kReach.is_left_by(0));
    EXPECT_FALSE(kReach.is_left_by(7 * kMiB / 16 - 1));
    EXPECT_TRUE(kReach.is_left_by(7 * kMiB / 16));
    EXPECT_TRUE(kReach.is_left_by(7 * kMiB / 4));
    EXPECT_TRUE(kReach.is_left_by(7 * kMiB));
    EXPECT_TRUE(kReach.is_left_by(47 * kMiB - 1));
}

TEST(Reach, IsLeftBackwardsToo) {
    EXPECT_TRUE(kReach.is_left_by(-static_cast<std::int64_t>(2 * kMiB)));
    EXPECT_FALSE(kReach.is_left_by(-static_cast<std::int64_t>(kMiB / 16)));
}

TEST(Reach, IsNotLeftForPlacesOutsideOfTheBuffer) {
    EXPECT_FALSE(kReach.is_left_by(47 * kMiB));
    EXPECT_FALSE(kReach.is_left_by(-static_cast<std::int64_t>(18 * kMiB)));
    EXPECT_FALSE(kReach.is_left_by(std::numeric_limits<std::int64_t>::max()));
    EXPECT_FALSE(kReach.is_left_by(std::numeric_limits<std::int64_t>::min()));
}

TEST(Reach, KnowsHowManyElementsATensorHas) {
    for (const unsigned bytes : {1u, 2u, 4u, 8u, 16u})
        EXPECT_TRUE(counts_elements(6 * kMiB, static_cast<std::int64_t>(6 * kMiB / bytes)));
    EXPECT_TRUE(counts_elements(6 * kMiB + 512, 6 * kMiB / 4)) << "the next one is aligned";
    EXPECT_FALSE(counts_elements(6 * kMiB, 5 * kMiB / 4));
    EXPECT_FALSE(counts_elements(6 * kMiB, 7 * kMiB / 4));
    EXPECT_FALSE(counts_elements(6 * kMiB, 0));
}

std::vector<std::int64_t> numbers_of(const void* memory, std::size_t bytes) {
    std::vector<std::int64_t> values;
    for_each_number(
        memory, bytes, [](std::uint64_t word) { return word == kBase; },
        [&](const LaunchNumber& number) {
            if (!number.like_float) values.push_back(number.value);
        });
    return values;
}

TEST(LaunchNumbers, AreFoundInPlainParametersAndInStructures) {
    const std::int32_t plain = -5;
    EXPECT_EQ(numbers_of(&plain, sizeof plain), (std::vector<std::int64_t>{4294967291, -5}));
    const std::int64_t large = 5'000'000'000;
    EXPECT_EQ(numbers_of(&large, sizeof large)[0], large);
    const std::uint8_t tiny = 200;
    EXPECT_EQ(numbers_of(&tiny, sizeof tiny), (std::vector<std::int64_t>{200}));
    const struct {
        std::uint64_t pointer = kBase;
        std::int32_t count = 70'000;
        float scale = 0.125f;
    } structure;
    const auto found = numbers_of(&structure, sizeof structure);
    EXPECT_EQ(found.size(), 2u);  // as half of a word of 8 bytes, and alone
    EXPECT_EQ(found.back(), 70'000);
}

NumbersHash hash_of(const std::vector<std::int64_t>& numbers) {
    NumbersHash hash;
    for (std::size_t i = 0; i < numbers.size(); ++i) hash.add(4 * i, numbers[i]);
    return hash;
}

TEST(SeenNumbers, HaveAnIndexUntilSeenAndOnceOneChangedAlone) {
    auto seen = std::make_unique<SeenNumbers>();
    EXPECT_TRUE(seen->may_have_index(1000, hash_of({7, 128, 3})));
    EXPECT_FALSE(seen->may_have_index(1000, hash_of({7, 128, 3})));
    EXPECT_TRUE(seen->may_have_index(2000, hash_of({8})));
    EXPECT_TRUE(seen->may_have_index(1000, hash_of({7, 129, 3})));
    EXPECT_TRUE(seen->may_have_index(1000, hash_of({7, 128, 3})));
    EXPECT_FALSE(seen->may_have_index(2000, hash_of({8})));
}

TEST(SeenNumbers, OfAnotherTensorInTheSamePlaceAreNoIndex) {
    auto seen = std::make_unique<SeenNumbers>();
    EXPECT_TRUE(seen->may_have_index(1000, hash_of({128, 128, 22960, 22960, 1})));
    EXPECT_FALSE(seen->may_have_index(1000, hash_of({128, 128, 8640, 8640, 1})));
    EXPECT_FALSE(seen->may_have_index(1000, hash_of({128, 128, 22960, 22960, 1})));
}

TEST(SeenNumbers, ThatAreForgottenMayHaveAnIndex) {
    auto seen = std::make_unique<SeenNumbers>();
    for (std::uint64_t key = 1; key < 100'000; ++key)
        EXPECT_TRUE(seen->may_have_index(key << 8, hash_of({7})));
    EXPECT_TRUE(seen->may_have_index(std::uint64_t{1} << 8, hash_of({7})));
}

}  // namespace
}  // namespace libswap
