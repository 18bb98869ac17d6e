// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <atomic>
#include <cstdint>

namespace libswap {

/// The host memory that all devices of a process may pin together, and what the program has pinned
/// itself, which counts against it. @thread any
class HostLimit {
  public:
    explicit HostLimit(std::uint64_t total_bytes) noexcept : total_bytes_(total_bytes) {}

    /// Takes `bytes` for one of our pools; false, and nothing taken, if that is beyond the limit.
    bool take(std::uint64_t bytes) noexcept {
        std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
        do {
            if (used + bytes > total_bytes_) return false;
        } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
        return true;
    }
    void give_back(std::uint64_t bytes) noexcept { used_bytes_.fetch_sub(bytes); }

    /// The program pinned memory: that is its right, and may go beyond the limit.
    void program_took(std::uint64_t bytes) noexcept {
        used_bytes_.fetch_add(bytes);
        program_bytes_.fetch_add(bytes);
    }
    void program_gave_back(std::uint64_t bytes) noexcept {
        used_bytes_.fetch_sub(bytes);
        program_bytes_.fetch_sub(bytes);
    }

    std::uint64_t total_bytes() const noexcept { return total_bytes_; }
    std::uint64_t program_bytes() const noexcept { return program_bytes_.load(); }
    /// What our pools could still take.
    std::uint64_t room_bytes() const noexcept {
        const std::uint64_t used = used_bytes_.load();
        return used < total_bytes_ ? total_bytes_ - used : 0;
    }

  private:
    const std::uint64_t total_bytes_;
    std::atomic<std::uint64_t> used_bytes_{0};
    std::atomic<std::uint64_t> program_bytes_{0};
};

}  // namespace libswap
