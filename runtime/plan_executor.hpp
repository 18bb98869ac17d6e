// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Turns a plan into what to do at each operation.
//
// A plan speaks of tensors and of operations of one iteration; the engine has blocks, which are
// other ones each iteration where buffers are freed and allocated again. The executor keeps, per
// tensor, the block that filled one of its operand slots last (see cost/iteration.hpp), and names
// that block when an action is due. The engine still checks that the block lives and what state it
// is in: every command is a hint, and may name a block that was freed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "cost/iteration.hpp"
#include "cost/plan.hpp"
#include "runtime/host_lead.hpp"
#include "runtime/learner.hpp"

namespace libswap {

/// Something to do with a block once operation `after_serial` (Step::serial) and all before it have
/// completed on the device.
struct SwapCommand {
    enum class Kind : std::uint8_t {
        Evict,  ///< copy to the host if that is not up to date, then release
        Copy,   ///< copy to the host in advance, keep
        Fetch,
    };
    Kind kind = Kind::Evict;
    std::uint32_t run = 0;  ///< void once PlanExecutor::run() is another
    std::uint64_t block = 0;
    std::uint64_t after_serial = 0;  ///< may lie ahead of what has been issued
    std::uint32_t op = 0;            ///< position in the plan's iteration, for the log
    std::uint32_t rank = 0;          ///< of a fetch among those after one operation, in plan order
    /// Of a fetch that cannot be late: what operations behind this one take comes after its memory.
    std::uint64_t claim_serial = kNoClaim;
    std::uint64_t use_serial = kNoClaim;  ///< of a fetch: the operation that uses the block

    static constexpr std::uint64_t kNoClaim = UINT64_MAX;
};

/// @thread one at a time: the caller serialises (with the Learner)
class PlanExecutor {
  public:
    static constexpr std::size_t kMaxPlans = 4;

    struct Options {
        /// Fetches are given out this many operations before the one they are due at, so that the
        /// worker has them when the host thread waits.
        std::uint32_t hand_out_ahead = 8;
        /// Fetches may begin this many operations earlier than planned, to cover the time that the
        /// worker takes to notice.
        std::uint32_t lead_ops = 0;
    };

    /// Takes a plan for a loop, in place of the one it had, and keeps those of other loops (of the
    /// oldest ones, kMaxPlans in all). The plan must move whole tensors, and `iteration` must be
    /// the one it was made for. `claims`: as cost::critical_claims, or empty. Allocates; begins at
    /// the next step of the loop.
    tl::expected<void, std::string> install(LoopId loop, std::size_t period,
                                            cost::Iteration iteration, const cost::Plan& plan,
                                            std::span<const cost::OpIndex> claims = {});
    void clear(LoopId loop);
    void clear();

    /// The same operation that Learner::observe has just seen, before it is issued. What is
    /// returned is valid until the next call, in the order to act in, and empty while the program
    /// is not in the plan's loop. At the first operation after a break, it also evicts what the
    /// plan has absent at this point. Allocates nothing.
    std::span<const SwapCommand> step(const Step& step,
                                      std::span<const cost::TracedOperand> operands);

    bool installed() const { return !plans_.empty(); }
    /// The plan is being followed.
    bool active() const { return current_ != nullptr; }
    /// Changes whenever commands given out before are void: on install, clear and each mismatch.
    std::uint32_t run() const { return run_; }
    /// Once this operation and all before it have completed, the program's thread is near the
    /// device, as HostLead has it, until the next step.
    std::uint64_t near_serial() const { return near_serial_; }
    /// An event is wanted behind the operation of the last step, to tell that.
    bool wants_event() const { return wants_event_; }
    /// Operations that the plan covered, and times it was dropped because one did not match.
    std::uint64_t covered_ops() const { return covered_ops_; }
    std::uint64_t dropped() const { return dropped_; }

    Options options;

  private:
    static constexpr std::uint32_t kNoClaim = UINT32_MAX;
    struct Due {
        SwapCommand::Kind kind = SwapCommand::Kind::Evict;
        cost::TensorIndex tensor = 0;
        std::uint32_t due_op = 0;  ///< before which a fetch is due, after which the others are
        std::uint32_t lead = 0;    ///< operations that a fetch may begin earlier
        std::uint32_t rank = 0;    ///< place in the plan
        std::uint32_t claim = 0;   ///< as SwapCommand's, in operations from due_op on; or kNoClaim
        std::uint32_t use = 0;     ///< as SwapCommand's, in operations from due_op on
    };
    /// What is handed out at each operation of the plan: one array, cut by `ends`.
    struct Schedule {
        std::vector<Due> due;
        std::vector<std::uint32_t> ends;
        std::span<const Due> at(std::uint32_t op) const;
    };

    struct Installed {
        LoopId loop = kNoLoop;
        std::uint32_t period = 0;
        cost::Iteration iteration;
        Schedule fetches;                  ///< by the operation at which they are handed out
        Schedule evictions;                ///< by the operation they follow
        std::vector<std::uint64_t> live;   ///< block of each tensor, 0: not known
        std::vector<std::uint8_t> absent;  ///< scratch of catch_up, one per tensor
        std::vector<Due> in_order;
        HostLead lead;
        bool has_claims = false;
        std::uint32_t ahead = 0;  ///< most operations that a fetch is handed out ahead
    };

    static Schedule bucket(std::uint32_t period,
                           std::vector<std::pair<std::uint32_t, Due>> entries);
    static std::vector<Due> sorted(std::span<const std::pair<std::uint32_t, Due>> fetches,
                                   std::span<const std::pair<std::uint32_t, Due>> evictions);
    static std::uint64_t fetch_after(std::uint64_t serial, std::uint32_t lead);
    Installed* find(LoopId loop);
    void drop();
    void cancel_eviction(std::uint64_t block, std::size_t first);
    void emit(const Due& due, std::uint64_t after_serial, std::uint32_t op,
              std::uint64_t claim_serial = SwapCommand::kNoClaim,
              std::uint64_t use_serial = SwapCommand::kNoClaim);
    void emit_fetch(const Due& due, std::uint64_t serial);
    void note_lead(const Step& step, std::uint32_t op);
    void catch_up(const Step& step, std::uint32_t op);

    std::vector<std::unique_ptr<Installed>> plans_;
    Installed* current_ = nullptr;  ///< of the loop that the last step was in
    std::vector<SwapCommand> commands_;
    std::uint64_t near_serial_ = 0;
    bool wants_event_ = false;
    std::uint32_t run_ = 0;
    std::uint64_t covered_ops_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace libswap
