// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What launches were seen to write. The first launches of a kind are *trials*: digests of a few
// chunks are taken on their own stream, before and behind them, and compared when both are there.
//
//   program's stream    digest   the launch   digest
//                         |                     '--- same as before: it did not write that chunk
//                         '--- of an operand, or of the block beyond what an operand is believed to
//                              reach
//
// Two things come of it:
//   - beliefs: a launch with this function, grid and these extents left alone the blocks beyond
//     them, or did not. Until that is known it uses all of a buffer that it names a part of;
//   - hints: a word of this function's parameters points at what it never writes. For planning
//     only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "runtime/block_table.hpp"
#include "runtime/digest.hpp"
#include "runtime/function_table.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

enum class Belief : std::uint8_t {
    Unknown,
    Confirmed,  ///< the launch keeps to the extents
    Refuted     ///< it does not: it uses all of each buffer
};

/// A chunk to be watched over a launch. The block is pinned from begin() to end().
struct Watch {
    static constexpr std::uint8_t kBeyond = 255;
    BlockIndex block = kNoBlock;
    std::uint8_t chunk = 0;
    std::uint8_t word = kBeyond;  ///< parameter word whose operand it is, or kBeyond
};

/// @thread any, except as said
class Trials {
  public:
    static constexpr std::size_t kMaxWatches = 12;
    static constexpr std::uint32_t kNoTicket = UINT32_MAX;

    Trials(const Driver& driver, StreamTable& streams, BlockTable& blocks,
           const AddressSpace& space) noexcept;

    /// What is known of a kind of launch. One look-up.
    Belief look(std::uint64_t kind) const noexcept;

    /// Before a launch: submits the first digests. `decides`: its kind is not known, and what is
    /// seen decides. kNoTicket where that cannot be done now; then nothing is learned. The stream's
    /// context must be current, and no capture open.
    std::uint32_t begin(std::uint64_t kind, bool decides, FunctionInfo* function,
                        std::span<const Watch> watches, CUstream stream) noexcept;
    /// Behind it, before its place is taken: the second ones. `launched`: it went out.
    void end(std::uint32_t ticket, CUstream stream, bool launched) noexcept;
    /// Its place, which covers the digests.
    void note_place(std::uint32_t ticket, Use use) noexcept;

    /// Reads the verdicts that are there. True while some are to come. May query events.
    bool settle() noexcept;

    /// Before the context of its digests goes, or after it. No trial is under way.
    void stop(bool context_gone) noexcept;

  private:
    static constexpr std::size_t kTableBits = 14;
    static constexpr std::size_t kProbes = 8;
    static constexpr std::size_t kMaxTrials = 64;
    static constexpr std::uint64_t kBeliefMask = 3;
    /// After so many failures of the driver nothing more is tried.
    static constexpr std::uint32_t kMaxFailures = 16;

    struct Trial {
        enum class State : std::uint8_t { Free, Begun, Ended, Placed } state = State::Free;
        bool good = false;
        bool decides = false;
        std::uint64_t kind = 0;
        FunctionInfo* function = nullptr;
        std::array<Watch, kMaxWatches> watches{};
        std::array<std::uint32_t, 2 * kMaxWatches> slots{};
        std::size_t count = 0;
        Use use;
    };

    bool ready(Trial& trial) noexcept;
    bool submit(Trial& trial, std::size_t first_slot, CUstream stream) noexcept;
    void judge(Trial& trial) noexcept;
    void release(Trial& trial) noexcept;
    void believe(std::uint64_t kind, Belief belief) noexcept;

    StreamTable& streams_;
    BlockTable& blocks_;
    const AddressSpace& space_;
    /// kind with its last bits replaced by the belief; 0: empty.
    std::array<std::atomic<std::uint64_t>, std::size_t{1} << kTableBits> table_{};

    /// Held across driver calls: only trials take it, one after the other.
    std::mutex mutex_;
    Digester digester_;
    bool started_ = false;
    std::uint32_t failures_ = 0;
    std::array<Trial, kMaxTrials> trials_{};
    std::atomic<std::uint32_t> open_{0};
};

}  // namespace libswap
