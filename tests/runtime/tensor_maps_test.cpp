// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/tensor_maps.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace libswap {
namespace {

using Descriptor = std::array<unsigned char, TensorMaps::kBytes>;

Descriptor descriptor(unsigned char seed) {
    Descriptor bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<unsigned char>(seed * 31 + i * 7);
    return bytes;
}

TEST(TensorMaps, FindsWholeDescriptorsOnly) {
    TensorMaps maps;
    EXPECT_FALSE(maps.any());
    Descriptor first = descriptor(1);
    EXPECT_TRUE(maps.built(first.data(), 0x1000));
    EXPECT_TRUE(maps.any());
    EXPECT_EQ(maps.find(first.data()), 0x1000u);
    first[127] ^= 1;
    EXPECT_EQ(maps.find(first.data()), 0u);
}

TEST(TensorMaps, FindsThemAtAlignedPlacesOfAParameterBlock) {
    TensorMaps maps;
    const Descriptor first = descriptor(1);
    const Descriptor second = descriptor(2);
    maps.built(first.data(), 0x1000);
    maps.built(second.data(), 0x2000);
    std::vector<unsigned char> block(16 + 48 + 128 + 64 + 128);
    std::memcpy(block.data() + 48, first.data(), first.size());
    std::memcpy(block.data() + 48 + 128 + 64, second.data(), second.size());
    std::vector<std::pair<std::size_t, std::uint64_t>> found;
    // The block begins 16 bytes behind an aligned place.
    maps.for_each(block.data(), block.size(), 16, [&](std::size_t offset, std::uint64_t address) {
        found.emplace_back(offset, address);
    });
    EXPECT_EQ(found,
              (std::vector<std::pair<std::size_t, std::uint64_t>>{{48, 0x1000}, {240, 0x2000}}));
    found.clear();
    maps.for_each(block.data(), block.size(), 0, [&](std::size_t offset, std::uint64_t address) {
        found.emplace_back(offset, address);
    });
    EXPECT_TRUE(found.empty());
}

TEST(TensorMaps, ADescriptorThatIsBuiltAgainHasItsNewAddress) {
    TensorMaps maps;
    const Descriptor first = descriptor(1);
    maps.built(first.data(), 0x1000);
    maps.built(first.data(), 0x3000);
    EXPECT_EQ(maps.find(first.data()), 0x3000u);
}

TEST(TensorMaps, SayWhenThereIsNoRoomForMore) {
    TensorMaps maps;
    Descriptor bytes = descriptor(1);
    for (std::uint32_t i = 0; i < TensorMaps::kMost; ++i) {
        std::memcpy(bytes.data(), &i, sizeof i);
        ASSERT_TRUE(maps.built(bytes.data(), 0x1000 + i));
    }
    EXPECT_TRUE(maps.built(bytes.data(), 0x9000));
    const std::uint32_t more = TensorMaps::kMost;
    std::memcpy(bytes.data(), &more, sizeof more);
    EXPECT_FALSE(maps.built(bytes.data(), 0x1000));
}

}  // namespace
}  // namespace libswap
