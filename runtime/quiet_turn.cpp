// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/quiet_turn.hpp"

namespace libswap {

bool QuietTurn::ask(StreamTable& streams, std::uint64_t now_ns) noexcept {
    if (!closed_) {
        if (now_ns < may_close_at_ns_) return false;
        gate_.close();
        closed_ = true;
        closed_at_ns_ = now_ns;
    }
    if (gate_.quiet(streams)) return true;
    if (now_ns - closed_at_ns_ > kLongestNs)
        give_up(now_ns);
    else
        asked_ = true;
    return false;
}

void QuietTurn::end_step(std::uint64_t now_ns) noexcept {
    if (!asked_) give_up(now_ns);
    asked_ = false;
}

void QuietTurn::give_up(std::uint64_t now_ns) noexcept {
    if (!closed_) return;
    gate_.open();
    closed_ = false;
    asked_ = false;
    may_close_at_ns_ = now_ns + (now_ns - closed_at_ns_);
}

}  // namespace libswap
