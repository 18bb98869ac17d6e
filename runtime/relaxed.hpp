// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <type_traits>

namespace libswap {

/// A value that may be read while another thread changes it: the reader gets the old or the new
/// one, whole, and nothing else is ordered by it. Costs what a plain one does. @thread any
template <typename T>
class Relaxed {
  public:
    constexpr Relaxed() noexcept = default;
    constexpr Relaxed(T value) noexcept : value_(value) {}
    Relaxed& operator=(T value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    /// By one writer at a time.
    Relaxed& operator+=(T more) noexcept { return *this = static_cast<T>(*this) + more; }
    operator T() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    static_assert(std::is_trivially_copyable_v<T> && std::atomic<T>::is_always_lock_free);
    std::atomic<T> value_{};
};

}  // namespace libswap
