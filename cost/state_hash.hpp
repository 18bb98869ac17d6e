// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cmath>
#include <cstdint>

namespace libswap::cost {

/// Tells states of a replay apart. Times count to the nanosecond.
class StateHash {
  public:
    void add(std::uint64_t value) {
        hash_ ^= value + 0x9e3779b97f4a7c15ULL + (hash_ << 6) + (hash_ >> 2);
        hash_ *= 0xff51afd7ed558ccdULL;
        hash_ ^= hash_ >> 32;
    }
    void add_us(double us) { add(static_cast<std::uint64_t>(std::llround(us * 1e3))); }
    std::uint64_t value() const { return hash_; }

  private:
    std::uint64_t hash_ = 0;
};

}  // namespace libswap::cost
