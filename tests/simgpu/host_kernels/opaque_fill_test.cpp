// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/opaque_fill.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "simgpu/half_float.hpp"

namespace simgpu {
namespace {

TEST(OpaqueFill, DependsOnEveryByteItStirs) {
    std::vector<unsigned char> data(4099);
    std::iota(data.begin(), data.end(), 0);
    std::set<std::uint64_t> digests{stir(1, data.data(), data.size())};
    for (std::size_t i = 0; i < data.size(); i += 37) {
        data[i] ^= 1;
        EXPECT_TRUE(digests.insert(stir(1, data.data(), data.size())).second) << i;
        data[i] ^= 1;
    }
    EXPECT_FALSE(digests.insert(stir(1, data.data(), data.size())).second);
    EXPECT_TRUE(digests.insert(stir(2, data.data(), data.size())).second);
}

TEST(OpaqueFill, MakesSmallFiniteNumbers) {
    std::vector<float> floats(1000);
    fill_from(7, FillType::Float, floats.data(), floats.size() * 4);
    for (const float x : floats) EXPECT_LE(std::fabs(x), 0.0625F);
    EXPECT_GT(std::set<float>(floats.begin(), floats.end()).size(), 900U);
    std::vector<double> doubles(1000);
    fill_from(7, FillType::Double, doubles.data(), doubles.size() * 8);
    for (const double x : doubles) EXPECT_LE(std::fabs(x), 0.125);
    std::vector<std::uint16_t> halves(1000);
    fill_from(7, FillType::Half, halves.data(), halves.size() * 2);
    for (const auto x : halves) EXPECT_LE(std::fabs(half_to_float(x)), 0.125F);
    fill_from(7, FillType::BFloat, halves.data(), halves.size() * 2);
    for (const auto x : halves) EXPECT_LE(std::fabs(bf16_to_float(x)), 0.125F);
    std::vector<std::int64_t> integers(1000);
    fill_from(7, FillType::Long, integers.data(), integers.size() * 8);
    for (const auto x : integers) EXPECT_TRUE(x >= 0 && x < 8);
}

TEST(OpaqueFill, FollowsFromTheSeedAlone) {
    std::vector<float> a(64);
    std::vector<float> b(64);
    fill_from(3, FillType::Float, a.data(), 256);
    fill_from(3, FillType::Float, b.data(), 256);
    EXPECT_EQ(a, b);
    fill_from(4, FillType::Float, b.data(), 256);
    EXPECT_NE(a, b);
}

}  // namespace
}  // namespace simgpu
