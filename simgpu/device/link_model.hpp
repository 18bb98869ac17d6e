// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <limits>

namespace simgpu {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// The link between host and device: two directions, each at its own rate, slower while both are
/// busy. One transfer per direction at a time. Times are simulated ns. Not synchronised.
class LinkModel {
  public:
    enum Direction : int { ToDevice = 0, ToHost = 1 };

    LinkModel(double h2d_gbps, double d2h_gbps, double h2d_duplex_gbps, double d2h_duplex_gbps)
        : single_{h2d_gbps, d2h_gbps}, duplex_{h2d_duplex_gbps, d2h_duplex_gbps} {}

    /// Bytes begin to move; `limit_gbps` bounds the rate (pageable memory).
    void begin(Direction direction, std::uint64_t now_ns, double bytes, double limit_gbps);
    void end(Direction direction, std::uint64_t now_ns);
    bool moving(Direction direction) const { return sides_[direction].moving; }
    /// When the bytes of `direction` have moved, as things are; kNever when nothing moves.
    std::uint64_t finish_ns(Direction direction) const;

  private:
    struct Side {
        bool moving = false;
        double remaining = 0;
        double limit = 0;
        std::uint64_t finish_ns = kNever;
    };
    double rate(int direction) const;
    void settle(std::uint64_t now_ns);
    void forecast(std::uint64_t now_ns);

    double single_[2];
    double duplex_[2];
    Side sides_[2];
    std::uint64_t last_ns_ = 0;
};

}  // namespace simgpu
