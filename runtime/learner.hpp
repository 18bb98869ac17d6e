// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Finds the program's iteration in the stream of its operations.
//
//   observe() --> ring of the last operations, with operands, frees and times
//       |              |
//       |              +-- contexts: hashes of the last 1, 4, 16, 64 signatures -> where they ended
//       |              |   last. The longest that is known gives a cursor into the past; while the
//       |              |   past goes on as the present does, the cursor moves along.
//       |              +-- cursor at distance d for d operations: the last two stretches of d are
//       |                  equal. That stretch is a loop, if it used the same blocks both times.
//       +-- loops known so far. On a loop, an operation has a phase; an operation that does not
//       match
//           ends that ("lost"), and a context that belongs to one place of a loop takes it up
//           again.
//       +-- iterations of a loop that are alike only every few of them, by what is freed: those few
//       are
//           a loop of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/iteration.hpp"
#include "runtime/iteration_cycle.hpp"

namespace libswap {

using LoopId = std::uint32_t;
inline constexpr LoopId kNoLoop = UINT32_MAX;

struct LearnerLimits {
    std::size_t max_period = std::size_t{1} << 14;    ///< operations of one iteration
    std::size_t max_operands = std::size_t{1} << 17;  ///< operands remembered, over all operations
    std::size_t max_loops = 4;                        ///< the oldest unused one is forgotten
};

/// Where an operation stands.
struct Step {
    std::uint64_t serial = 0;  ///< number of the operation, from 0; names it in set_duration
    LoopId loop = kNoLoop;     ///< the loop the program is in, or none; ids are never used twice
    std::uint32_t phase = 0;   ///< of this operation in the loop
    bool locked = false;       ///< a new loop was found with this operation: time to plan
    bool entered = false;  ///< `loop` begins or goes on here, at any phase, after something else
    bool lost = false;     ///< did not match: what was forecast for the loop is void
    bool begins = false;   ///< the first operation of the iteration that is planned for
};

/// Learns the iteration. Memory is reserved once, and observe() allocates nothing; its cost is O(1)
/// amortised per operation and linear in its operands.
/// @thread one at a time: the caller serialises
class Learner {
  public:
    explicit Learner(const LearnerLimits& limits = {});

    /// An operation is about to be issued. `signature` says what it does, not to what: function,
    /// grid, operand sizes and roles, never an address. Operands come in an order that is the same
    /// each time (parameter order, blocks of one buffer ascending).
    Step observe(std::uint64_t signature, std::span<const cost::TracedOperand> operands);

    /// A block was freed, after the operations seen so far.
    void note_free(std::uint64_t block);

    /// How long an operation took, and the device had waited for the program before it (negative:
    /// not known). Ignored if it is no longer remembered.
    void set_duration(std::uint64_t serial, double duration_us, double late_us = -1);

    /// Workspace that an operation used beside its operands. As set_duration.
    void set_workspace(std::uint64_t serial, std::uint64_t bytes);

    /// What observe() was given, or 0 if it is no longer remembered.
    std::uint64_t signature_of(std::uint64_t serial) const;

    /// With the sizes of its operands (SizedSignature); without them if only they are no longer
    /// remembered.
    std::uint64_t sized_signature_of(std::uint64_t serial) const;

    /// Operations of one iteration of a loop, or 0 if it is not known (any more).
    std::size_t period(LoopId loop) const;

    /// The last two iterations up to now of the loop the program is in, phase 0 first, for
    /// cost::build_iteration on another thread. False, and `out` empty, while fewer than two lie
    /// behind without a break. Allocates; not for every operation.
    bool snapshot(cost::Trace& out) const;

  private:
    static constexpr std::array<std::size_t, 4> kOrders{1, 4, 16, 64};

    struct Remembered {
        std::uint64_t signature = 0;
        std::uint64_t prefix_hash = 0;
        std::uint64_t workspace_bytes = 0;
        std::uint64_t operands_end = 0;
        std::uint64_t frees_end = 0;
        float duration_us = -1;
        float late_us = -1;
    };
    struct Context {
        std::uint64_t hash = 0;
        std::uint64_t end = 0;  ///< serial of the operation after it
    };
    /// Where in a loop a context ends; only if nowhere else in that loop.
    struct Place {
        std::uint64_t hash = 0;
        LoopId loop = kNoLoop;
        std::uint32_t phase = 0;
        bool ambiguous = false;
    };
    struct Loop {
        LoopId id = kNoLoop;
        std::uint64_t last_used = 0;
        std::vector<std::uint64_t> signatures;
    };

    const Remembered& at(std::uint64_t serial) const { return ring_[serial & ring_mask_]; }
    Remembered& at(std::uint64_t serial) { return ring_[serial & ring_mask_]; }
    std::uint64_t context_hash(std::uint64_t end, std::size_t order) const;
    void remember(std::uint64_t signature, std::span<const cost::TracedOperand> operands);
    void follow_cursor();
    void find_cursor();
    void extend_back();
    void index_contexts();
    bool follow_loop(std::uint64_t signature, Step& step);
    void resume_loop(Step& step);
    void lock_loop(Step& step);
    void lock_period(std::uint64_t period, Step& step);
    void look_for_cycle(Step& step);
    void enter_cycle(std::uint64_t length, Step& step);
    Loop* find_cycle(std::uint64_t length);
    std::uint64_t frees_behind(std::uint64_t serial) const;
    std::uint64_t hash_of_frees(std::uint64_t begin, std::uint64_t end) const;
    Loop& add_loop();
    bool uses_same_blocks(std::uint64_t period);
    bool already_served(std::uint64_t period) const;
    Loop* find_loop(LoopId id);
    const Loop* find_loop(LoopId id) const;
    void index_loop(const Loop& loop);
    void forget_loop(Loop& loop);

    LearnerLimits limits_;
    std::vector<Remembered> ring_;
    std::uint64_t ring_mask_ = 0;
    std::vector<cost::TracedOperand> operands_;
    std::uint64_t operand_mask_ = 0;
    std::uint64_t operands_end_ = 0;
    std::vector<std::uint64_t> frees_;
    std::uint64_t frees_mask_ = 0;
    std::uint64_t frees_end_ = 0;
    std::vector<std::uint64_t> freed_;  ///< scratch of uses_same_blocks, reserved
    std::uint64_t recheck_at_ = 0;      ///< no loop is looked at before this operation
    std::uint64_t next_ = 0;            ///< serial of the next operation

    std::array<std::vector<Context>, kOrders.size()> contexts_;
    std::array<std::uint64_t, kOrders.size()> order_powers_{};
    std::uint64_t cursor_ = 0;  ///< operation that the next one is expected to equal
    std::uint64_t match_ = 0;   ///< operations before the cursor that equal the last ones; 0: none
    std::uint64_t credit_ = 0;  ///< operations that extend_back may still compare

    std::vector<Loop> loops_;
    std::array<std::vector<Place>, kOrders.size()> places_;
    LoopId next_loop_ = 0;
    std::uint64_t off_loop_ = 0;  ///< operations since one was on a loop
    LoopId current_ = kNoLoop;
    std::uint32_t phase_ = 0;    ///< expected of the next operation
    std::uint64_t on_loop_ = 0;  ///< operations in a row that matched the current loop
    IterationCycle cycle_;       ///< of the current loop
};

}  // namespace libswap
