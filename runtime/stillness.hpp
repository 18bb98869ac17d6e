// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// While a program fits, nothing can move: there is no worker. Then an operation pins nothing and
// publishes its place in no block; it only counts itself, for as long as it is being issued. When
// somebody needs the worker, that ends, for good: whoever comes later pins, and the worker begins
// once nobody is left who did not. Every block may have been used at every place taken so far.
//
//   operation:  count, then look             who ends it:  end(), then look
//               is it still? issue, place
//               uncount                                    drained? then begin
//
// Both look after they have said what they do, so at least one sees the other
// (tests/model/residency.pml, -DSTILL).

#pragma once

#include <atomic>
#include <cstdint>

namespace libswap {

/// Numbers the operations of a device, and knows those that are being issued without pins.
/// @thread any
class Stillness {
  public:
    /// An operation is about to be issued, and gets a number. True while nothing can move: then
    /// leave() must follow, once its place is taken.
    bool enter() noexcept {
        if (over_.load(std::memory_order_relaxed)) {
            pass();
            return false;
        }
        word_.fetch_add(kOperation + 1, std::memory_order_seq_cst);
        if (!over_.load(std::memory_order_seq_cst)) return true;
        leave();
        return false;
    }
    /// An operation that pins in any case gets a number.
    void pass() noexcept { word_.fetch_add(kOperation, std::memory_order_relaxed); }
    void leave() noexcept { word_.fetch_sub(1, std::memory_order_release); }
    /// Of the latest operation; the first is 1.
    std::uint64_t number() const noexcept {
        return word_.load(std::memory_order_relaxed) / kOperation;
    }

    /// Something may move from now on. Does not wait.
    void end() noexcept { over_.store(true, std::memory_order_seq_cst); }
    /// After end(): true once no operation without pins is being issued. Their places are visible.
    bool drained() const noexcept {
        return word_.load(std::memory_order_seq_cst) % kOperation == 0;
    }

  private:
    /// Below are operations being issued, one per thread at most; from here on the number.
    static constexpr std::uint64_t kOperation = std::uint64_t{1} << 20;

    std::atomic<std::uint64_t> word_{0};
    std::atomic<bool> over_{false};
};

}  // namespace libswap
