// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>
#include <cstring>

namespace random_programs {

/// The same numbers everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
    std::uint32_t next() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        std::uint64_t x = state_ ^ (state_ >> 33);
        x *= 0xff51afd7ed558ccdull;
        return static_cast<std::uint32_t>(x >> 32);
    }
    std::uint32_t below(std::uint32_t n) { return n ? next() % n : 0; }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

  private:
    std::uint64_t state_;
};

class Digest {
  public:
    void add(const void* data, std::size_t bytes) {
        const auto* p = static_cast<const unsigned char*>(data);
        std::size_t i = 0;
        for (; i + 8 <= bytes; i += 8) {
            std::uint64_t w;
            std::memcpy(&w, p + i, 8);
            word(w);
        }
        for (; i < bytes; ++i) word(p[i]);
    }
    void word(std::uint64_t w) { value_ = (value_ ^ w) * 0x100000001b3ull ^ (value_ >> 29); }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace random_programs
