// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Remaps between launches. Who closes a gate and waits until all that passed it is done may change
// a mapping that they might have used. Launches wait meanwhile, so the gate is open again at least
// as long as it was closed, and it is never closed for long.
//
//   launches   ==|==|==|            |==|==|==|==|==
//   gate          close | quiet: remaps | open
#pragma once

#include <cstdint>

#include "runtime/gate.hpp"

namespace libswap {

/// @thread the worker
class QuietTurn {
  public:
    /// What has passed and is not done after so long may wait for what is kept out.
    static constexpr std::uint64_t kLongestNs = 200'000'000;

    /// The gate must outlive this. It is left open.
    explicit QuietTurn(Gate& gate) noexcept : gate_(gate) {}

    /// True while the gate is closed and nothing that passed it is under way. False: to be asked
    /// again in the next step. May query events.
    bool ask(StreamTable& streams, std::uint64_t now_ns) noexcept;
    /// Opens the gate, unless somebody still waits.
    void end_step(std::uint64_t now_ns) noexcept;
    /// Whoever waits has given up.
    void give_up(std::uint64_t now_ns) noexcept;

  private:
    Gate& gate_;
    bool closed_ = false;
    bool asked_ = false;  ///< in this step, and was told to wait
    std::uint64_t closed_at_ns_ = 0;
    std::uint64_t may_close_at_ns_ = 0;
};

}  // namespace libswap
