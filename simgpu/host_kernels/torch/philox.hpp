// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace simgpu::torch {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), seeded as
/// cuRAND's generator of that name: a stream of words for each thread.
class Philox {
  public:
    /// `thread`: which stream. `offset`: words of it that are used already.
    Philox(std::uint64_t seed, std::uint64_t thread, std::uint64_t offset)
        : seed_(seed), thread_(thread), at_(offset) {}

    std::uint32_t word() {
        if (at_ % 4 == 0 || !drawn_) block_ = draw(at_ / 4);
        drawn_ = true;
        return block_[at_++ % 4];
    }
    std::uint64_t two_words() {
        const std::uint64_t high = word();
        return high << 32 | word();
    }
    /// From 0, which it is not, to 1.
    float uniform() {
        constexpr float kStep = 0x1p-32F;
        return std::fma(static_cast<float>(word()), kStep, kStep / 2);
    }
    double uniform_double() {
        const std::uint64_t low = word();
        const std::uint64_t bits = low ^ std::uint64_t{word()} << 21;
        return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
    }
    /// Two numbers of mean 0 and variance 1.
    std::array<double, 2> normal_pair(bool wide) {
        constexpr double kTwoPi = 6.283185307179586;
        const double u = wide ? uniform_double() : static_cast<double>(uniform());
        const double v = wide ? uniform_double() : static_cast<double>(uniform());
        const double length = std::sqrt(-2 * std::log(u));
        return {length * std::sin(kTwoPi * v), length * std::cos(kTwoPi * v)};
    }

  private:
    std::array<std::uint32_t, 4> draw(std::uint64_t block) const {
        std::array<std::uint32_t, 4> c{
            static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
            static_cast<std::uint32_t>(thread_), static_cast<std::uint32_t>(thread_ >> 32)};
        auto key =
            std::array{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)};
        for (int round = 0; round < 10; ++round) {
            const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
            const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
            c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1],
                 static_cast<std::uint32_t>(a)};
            key[0] += 0x9E3779B9;
            key[1] += 0xBB67AE85;
        }
        return c;
    }

    std::uint64_t seed_;
    std::uint64_t thread_;
    std::uint64_t at_;
    bool drawn_ = false;
    std::array<std::uint32_t, 4> block_{};
};

}  // namespace simgpu::torch
