// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Transforms without a driver, against the sums that define them: device addresses are host
// addresses here.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "simgpu/cufft/fourier.hpp"
#include "simgpu/cufft/kernels.hpp"

namespace libswap::simgpu::cufft {
namespace {

template <typename T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
    std::vector<T> values(count);
    for (T& value : values) {
        seed = seed * 1664525U + 1013904223U;
        value = static_cast<T>(seed >> 20) / 2048 - 1;
    }
    return values;
}

std::vector<Complex> complex_numbers(std::size_t count, unsigned seed) {
    const auto all = numbers<double>(2 * count, seed);
    std::vector<Complex> values;
    for (std::size_t i = 0; i < count; ++i) values.emplace_back(all[2 * i], all[2 * i + 1]);
    return values;
}

Complex root(std::size_t k, std::size_t n, int sign) {
    return std::polar(
        1.0, 2 * std::numbers::pi * sign * static_cast<double>(k % n) / static_cast<double>(n));
}

/// Of an n0 by n1 array, element (j0, j1) of its transform.
Complex element(const std::vector<Complex>& x, std::size_t n0, std::size_t n1, std::size_t j0,
                std::size_t j1, int sign) {
    Complex sum;
    for (std::size_t k0 = 0; k0 < n0; ++k0)
        for (std::size_t k1 = 0; k1 < n1; ++k1)
            sum += x[k0 * n1 + k1] * root(j0 * k0, n0, sign) * root(j1 * k1, n1, sign);
    return sum;
}

void run(const TransformParams& params) {
    double flops = -1;
    double bytes = -1;
    SimgpuHostLaunch launch{};
    launch.params = &params;
    launch.param_bytes = sizeof params;
    launch.span = [](const SimgpuHostLaunch*, std::uint64_t va, std::size_t, int) {
        return reinterpret_cast<void*>(va);
    };
    launch.flops = &flops;
    launch.bytes = &bytes;
    host_transform(&launch);
    EXPECT_GT(flops, 0);
    EXPECT_GT(bytes, 0);
}

Layout simple(std::int64_t n0, std::int64_t n1, bool is_complex) {
    return {{n0, n1, 0}, 1, n0 * n1, Precision::Double, is_complex};
}

template <typename T>
std::uint64_t address(const std::vector<T>& values) {
    return reinterpret_cast<std::uint64_t>(values.data());
}

TEST(Fourier, IsTheSumThatDefinesItForAnyLength) {
    for (const std::size_t n : {1U, 2U, 3U, 4U, 6U, 12U, 35U, 64U, 101U})
        for (const int sign : {-1, 1}) {
            const auto x = complex_numbers(n, 7);
            auto y = x;
            Fourier(static_cast<std::int64_t>(n), sign)(y);
            for (std::size_t j = 0; j < n; ++j)
                EXPECT_LT(std::abs(y[j] - element(x, 1, n, 0, j, sign)), 1e-11) << n << " " << j;
        }
}

TEST(Transform, OfComplexArraysGoesBothWays) {
    const auto x = complex_numbers(2 * 3 * 4, 1);
    std::vector<Complex> y(x.size());
    for (const int sign : {-1, 1}) {
        run({address(x),
             address(y),
             simple(3, 4, true),
             simple(3, 4, true),
             {3, 4, 0},
             2,
             2,
             sign});
        const std::vector<Complex> second(x.begin() + 12, x.end());
        for (std::size_t j = 0; j < 12; ++j)
            EXPECT_LT(std::abs(y[12 + j] - element(second, 3, 4, j / 4, j % 4, sign)), 1e-12);
    }
}

TEST(Transform, OfRealArraysGivesHalfOfIt) {
    for (const std::size_t n1 : {4U, 5U}) {
        const std::size_t half = n1 / 2 + 1;
        const auto x = numbers<double>(3 * n1, 2);
        std::vector<Complex> y(3 * half);
        const auto length = static_cast<std::int64_t>(n1);
        run({address(x),
             address(y),
             simple(3, length, false),
             simple(3, static_cast<std::int64_t>(half), true),
             {3, length, 0},
             1,
             2,
             -1});
        const std::vector<Complex> all(x.begin(), x.end());
        for (std::size_t j = 0; j < y.size(); ++j)
            EXPECT_LT(std::abs(y[j] - element(all, 3, n1, j / half, j % half, -1)), 1e-12);
        std::vector<double> back(x.size());
        run({address(y),
             address(back),
             simple(3, static_cast<std::int64_t>(half), true),
             simple(3, length, false),
             {3, length, 0},
             1,
             2,
             1});
        for (std::size_t i = 0; i < x.size(); ++i)
            EXPECT_NEAR(back[i], x[i] * 3 * static_cast<double>(n1), 1e-12);
    }
}

TEST(Transform, FindsElementsWhereTheLayoutSays) {
    // Every second element of rows of five, of which three are used.
    const auto x = complex_numbers(2 * 5 * 4, 3);
    std::vector<Complex> y(3 * 4, Complex(9, 9));
    Layout from{{4, 5, 0}, 2, 0, Precision::Double, true};
    run({address(x), address(y), from, simple(4, 3, true), {4, 3, 0}, 1, 2, -1});
    std::vector<Complex> used;
    for (std::size_t i = 0; i < 12; ++i) used.push_back(x[2 * (i / 3 * 5 + i % 3)]);
    for (std::size_t j = 0; j < 12; ++j)
        EXPECT_LT(std::abs(y[j] - element(used, 4, 3, j / 3, j % 3, -1)), 1e-12);
}

}  // namespace
}  // namespace libswap::simgpu::cufft
