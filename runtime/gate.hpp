// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/stream_table.hpp"

namespace libswap {

/// Unexplained launches, and the gate that keeps them out while something unexplained could go
/// wrong.
/// @thread any
class Gate {
  public:
    /// Before an unexplained launch: false while the gate is closed. After true, leave() must
    /// follow.
    bool enter() noexcept {
        pending_.fetch_add(1, std::memory_order_seq_cst);
        if (closed_.load(std::memory_order_seq_cst) == 0) return true;
        pending_.fetch_sub(1, std::memory_order_seq_cst);
        return false;
    }
    /// After its place is noted by note().
    void leave() noexcept { pending_.fetch_sub(1, std::memory_order_seq_cst); }
    void note(Use use) noexcept;

    void close() noexcept { closed_.fetch_add(1, std::memory_order_seq_cst); }
    void open() noexcept { closed_.fetch_sub(1, std::memory_order_seq_cst); }
    bool closed() const noexcept { return closed_.load(std::memory_order_seq_cst) != 0; }

    /// No unexplained launch is being issued or in flight. May query events.
    bool quiet(StreamTable& streams) noexcept;
    /// Any unexplained launch not known to be done, without asking the driver.
    bool maybe_busy(const StreamTable& streams) const noexcept;
    std::uint32_t pending() const noexcept { return pending_.load(std::memory_order_seq_cst); }

    /// Threads that wait for it to open: then nothing is begun that nobody waits for.
    std::atomic<std::uint32_t> waiters{0};

  private:
    std::atomic<std::uint32_t> pending_{0};
    std::atomic<std::uint32_t> closed_{0};
    /// Last place per stream index, and how many of them are in use.
    std::array<std::atomic<std::uint64_t>, 64> places_{};
    std::atomic<std::uint64_t> overflow_{0};
};

/// An operation's way through a gate, if it has to pass it.
class GatePass {
  public:
    GatePass(Gate& gate, bool needed) noexcept : gate_(gate), needed_(needed) {}
    GatePass(const GatePass&) = delete;
    ~GatePass() { leave(); }

    /// False while the gate is closed.
    bool enter() noexcept {
        if (needed_ && !entered_) entered_ = gate_.enter();
        return !needed_ || entered_;
    }
    /// `wait`: bool(Gate&), enters it.
    template <typename Wait>
    bool wait_for(const Wait& wait) {
        return entered_ = wait(gate_);
    }
    void leave(Use use = {}) noexcept {
        if (!entered_) return;
        if (use) gate_.note(use);
        gate_.leave();
        entered_ = false;
    }

  private:
    Gate& gate_;
    bool needed_;
    bool entered_ = false;
};

}  // namespace libswap
