// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace libswap::cost {

/// The ends of a replay's iterations so far. They have settled once one ends in a state that an
/// earlier one ended in.
class ReplayHistory {
  public:
    struct End {
        double now_us = 0;
        double to_host_bytes = 0;  ///< moved so far
        double to_device_bytes = 0;
    };

    ReplayHistory(int min_iterations, int max_iterations)
        : min_(min_iterations), max_(max_iterations) {}

    void add(const End& end, std::uint64_t state);
    bool empty() const { return ends_.empty(); }
    bool settled() const { return settled_; }
    /// What a settled iteration takes and moves; where none has, the mean of the second half.
    End steady() const;

  private:
    int min_;
    int max_;
    std::vector<End> ends_;
    std::unordered_map<std::uint64_t, int> seen_;
    int period_ = 1;
    bool settled_ = false;
};

}  // namespace libswap::cost
