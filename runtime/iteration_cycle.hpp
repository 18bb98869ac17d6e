// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Iterations of the same operations may be alike in memory only every few of them: those of a
// program that frees all it has after every third, for example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace libswap {

/// @thread one at a time
class IterationCycle {
  public:
    /// Iterations of a cycle.
    static constexpr std::size_t kMost = 8;

    void restart() { count_ = 0; }
    /// The next iteration. `frees`: what was freed when, as a hash. `last_frees`: how many blocks
    /// were between its last operation and the next one's first.
    void add(std::uint64_t frees, std::uint64_t last_frees);
    /// How many iterations make a cycle: the last ones were alike so many apart, twice over, and
    /// not less. 0 while there is none; 1 where all are alike.
    std::size_t length() const;
    /// The last one of `length` iterations freed the most behind it: a cycle ends best there.
    bool ends(std::size_t length) const;

  private:
    struct Iteration {
        std::uint64_t frees = 0;
        std::uint64_t last_frees = 0;
    };
    /// 0: the last one.
    const Iteration& back(std::size_t i) const { return last_[(count_ - 1 - i) % last_.size()]; }
    bool repeats(std::size_t length) const;

    std::array<Iteration, 2 * kMost> last_{};
    std::size_t count_ = 0;
};

}  // namespace libswap
