// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A 128-bit digest of device memory, computed by a small kernel of our own at memory speed.
// Position matters, the order of computing does not: each 8-byte word is mixed with its index by
// two bijective functions, and the results are summed. The same pass counts words that look like
// our addresses.

#pragma once

#include <array>
#include <cstdint>

#include "runtime/driver.hpp"

namespace libswap {

struct Digest {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint64_t pointers = 0;  ///< words within the address window; not part of the value

    /// A result that never came is like no other, itself included.
    bool known() const noexcept { return pointers != UINT64_MAX; }
    bool operator==(const Digest& other) const noexcept {
        return low == other.low && high == other.high && known() && other.known();
    }
};

/// Runs digests on streams of ours. Results come back into pinned memory, one slot per digest under
/// way. @thread one at a time (the worker)
class Digester {
  public:
    static constexpr std::uint32_t kSlots = 128;
    static constexpr std::uint32_t kNoSlot = UINT32_MAX;
    static constexpr const char* kKernelName = "libswap_digest";

    explicit Digester(const Driver& driver) noexcept : driver_(driver) {}

    /// Loads the kernel and allocates the results. The context must be current.
    Status start() noexcept;
    /// Gives all back, or forgets it where the context is gone.
    void stop(bool context_gone) noexcept;
    bool ready() const noexcept { return function_ != nullptr; }

    /// A slot for a result, or kNoSlot where all are taken.
    std::uint32_t take_slot() noexcept;
    void give_slot(std::uint32_t slot) noexcept;

    /// Submits the digest of a piece whose first word has index `first_word`. The pieces of one
    /// digest are submitted in order on one stream; with the last one the result goes to the host.
    Status add(std::uint32_t slot, CUdeviceptr base, std::uint64_t bytes, std::uint64_t first_word,
               std::uint64_t window_low, std::uint64_t window_bytes, bool last,
               CUstream stream) noexcept;
    /// After the submitted work has completed.
    Digest result(std::uint32_t slot) const noexcept;

  private:
    const Driver& driver_;
    CUmodule module_ = nullptr;
    CUfunction function_ = nullptr;
    /// What the kernel adds to, on the device; zero between digests.
    struct Accumulator {
        std::uint64_t sums[3];
        std::uint32_t blocks_done;
        std::uint32_t unused;
    };
    CUdeviceptr accumulators_ = 0;
    Digest* host_results_ = nullptr;
    CUdeviceptr results_address_ = 0;  ///< of host_results_, for the device
    std::array<bool, kSlots> taken_{};
    std::array<bool, kSlots> spoilt_{};  ///< submitted in part: the accumulator is not zero
    std::uint32_t next_ = 0;
};

/// The kernel's text.
extern const char kDigestPtx[];

}  // namespace libswap
