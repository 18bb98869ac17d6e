// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What hooks cost the program's threads: from entry to exit, without the calls of the driver that
// the program made. Measured with LIBSWAP_MODE=observe alone; else a hook tests one flag for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace libswap {

/// Set once, before the first hook that has an engine.
extern std::atomic<bool> g_hooks_timed;

/// Processor time of all threads together, those that have ended too. @thread any
std::uint64_t hook_time_ns() noexcept;

/// Around what a hook does. In a hook inside another one it does not exist.
class HookTimer {
  public:
    HookTimer() noexcept {
        if (g_hooks_timed.load(std::memory_order_relaxed)) begin();
    }
    ~HookTimer() {
        if (start_ns_ != 0) end();
    }
    HookTimer(const HookTimer&) = delete;
    HookTimer& operator=(const HookTimer&) = delete;

  private:
    void begin() noexcept;
    void end() noexcept;
    std::uint64_t start_ns_ = 0;
};

/// Around the program's own call of the driver: what that takes is none of the hook's.
class RealCallTimer {
  public:
    RealCallTimer() noexcept {
        if (g_hooks_timed.load(std::memory_order_relaxed)) begin();
    }
    ~RealCallTimer() {
        if (start_ns_ != 0) end();
    }
    RealCallTimer(const RealCallTimer&) = delete;
    RealCallTimer& operator=(const RealCallTimer&) = delete;

  private:
    void begin() noexcept;
    void end() noexcept;
    std::uint64_t start_ns_ = 0;
};

}  // namespace libswap
