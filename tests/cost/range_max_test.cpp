// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/range_max.hpp"

#include <gtest/gtest.h>

#include <random>

namespace libswap::cost {
namespace {

TEST(RangeMax, IsTheGreatestOfWhatWasAdded) {
    std::mt19937 random(1);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    for (int round = 0; round < 300; ++round) {
        const std::size_t count = 1 + below(40);
        std::vector<std::int64_t> values(count);
        for (auto& v : values) v = static_cast<std::int64_t>(below(1000)) - 500;
        RangeMax ranges(values);
        for (int step = 0; step < 60; ++step) {
            const std::size_t first = below(2 * count);
            const std::size_t last = first + below(count + 1);
            if (step % 2 == 0) {
                const auto delta = static_cast<std::int64_t>(below(200)) - 100;
                ranges.add(first, last, delta);
                for (std::size_t i = first; i < last; ++i) values[i % count] += delta;
            } else if (first < last) {
                std::int64_t most = INT64_MIN;
                for (std::size_t i = first; i < last; ++i) {
                    most = std::max(most, values[i % count]);
                }
                ASSERT_EQ(ranges.max(first, last), most) << count << ' ' << first << ' ' << last;
            }
            ASSERT_EQ(ranges.values(), values);
        }
    }
}

}  // namespace
}  // namespace libswap::cost
