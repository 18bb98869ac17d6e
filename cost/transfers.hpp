// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "cost/copy_engine.hpp"
#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/state_hash.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// In a replay: where every tensor's bytes are, what memory is free, and what moves between the
/// device and the host. Operations are by their index in the iteration, times in us since the
/// replay's start.
class Transfers {
  public:
    enum class Refusal : std::uint8_t { None, BeingFetched, NoHostCopy };

    /// Persistent tensors begin on the host, as a first iteration's demand paging would leave them.
    Transfers(const Workload& workload, const Machine& machine, std::uint64_t budget_bytes);

    // -- operations --

    /// All that it needs is wholly here or not yet alive, and there is room for the rest.
    bool can_start(std::size_t op) const;
    /// Takes the memory of new tensors and workspace. kNoTensor, or a tensor that the operation
    /// reads and nothing has written.
    TensorIndex start(std::size_t op);
    /// Gives back workspace and what it frees.
    void end(std::size_t op);
    /// Memory that it would take to start.
    std::int64_t takes(std::size_t op) const;
    bool needs(std::size_t op, TensorIndex tensor) const;
    /// Those of its tensors that are not wholly here.
    std::vector<TensorIndex> absent(std::size_t op) const;

    // -- actions --

    /// Queues what is missing, at most `want` bytes of it.
    void fetch(TensorIndex tensor, std::uint64_t want, std::uint32_t action = kNoAction);
    /// Out, Drop and Copy.
    Refusal evict(const Action& action, double now_us);
    /// Fetches all of these before anything else. False if that changes nothing.
    bool fetch_first(const std::vector<TensorIndex>& tensors);

    // -- division of late fetches, where asked for --

    /// From now on, where the link would idle until a fetch of the plan has room or is mapped, the
    /// part that has room, or is mapped sooner, goes first. Parts have `least_bytes` or more and
    /// are multiples of `unit_bytes`.
    void divide_late_fetches(std::uint64_t least_bytes, std::uint64_t unit_bytes);
    /// Each time that one was divided, since it was called last.
    std::vector<Division> take_divisions() { return std::exchange(divisions_, {}); }

    // -- times of fetches, where asked for --

    /// From now on, notes for each action of a plan when its fetch took its memory, and arrived.
    void note_fetch_times(std::size_t actions) { fetch_times_.resize(actions); }
    /// Times are those since the replay's start.
    const std::vector<FetchTime>& fetch_times() const { return fetch_times_; }

    // -- time --

    /// Fetches take memory in order. What the next operation still has to take is left to it, but
    /// for fetches that it needs. `running`: the next one has taken its memory already.
    void claim_memory(std::size_t op, bool running, double now_us);
    void start_engines();
    /// Until something of this ends; infinity if nothing is under way.
    double next_event_us(double now_us) const;
    /// Lets dt pass, until `now_us`: at most next_event_us.
    void advance(double dt_us, double now_us);

    // -- what a director sees --

    double fetch_backlog_us() const;
    double needed_backlog_us(std::size_t op) const;
    double eviction_backlog_us() const;
    bool is_leaving(TensorIndex tensor) const { return state_[tensor].leaving != 0; }

    std::int64_t free_bytes() const { return free_; }
    std::int64_t leaving_bytes() const { return leaving_; }  ///< evicted, and not yet free
    std::int64_t peak_used_bytes() const { return peak_used_; }
    std::int64_t host_peak_bytes() const { return host_peak_; }
    std::int64_t to_host_bytes() const { return out_.moved_bytes; }
    std::int64_t to_device_bytes() const { return in_.moved_bytes; }
    /// All that the future depends on, as the referee has it.
    void add_state(StateHash& hash, double now_us) const;

  private:
    struct TensorState {
        std::int64_t here = 0;     // bytes on the device; kGone: not alive
        std::int64_t clean = 0;    // bytes of current content that the host holds
        std::int64_t leaving = 0;  // queued or in flight to the host, then released
        std::int64_t copying = 0;  // queued or in flight to the host, and kept
        std::int64_t coming = 0;   // queued or in flight to the device
    };
    static constexpr std::int64_t kGone = -1;

    struct Timer {
        double at_us = 0;
        std::uint64_t tick = 0;
        enum class What : std::uint8_t { OutReady, InReady, Release } what = What::Release;
        std::int64_t arg = 0;  // job id, or bytes
        bool operator>(const Timer& other) const {
            return at_us != other.at_us ? at_us > other.at_us : tick > other.tick;
        }
    };

    std::int64_t bytes(TensorIndex t) const {
        return static_cast<std::int64_t>(work_.tensors()[t].bytes);
    }
    void set_clean(TensorIndex t, std::int64_t n);
    void take(std::int64_t n);
    void forget(TensorIndex t);
    void void_copies(TensorIndex t);
    void copy(TensorIndex t, std::uint64_t want, double now_us);
    void queue_out(TensorIndex t, std::int64_t n, bool kept, double now_us);
    void left(const TransferJob& job, double now_us);
    void arrived(const TransferJob& job);
    bool divide_front(std::int64_t room);
    void release_after_unmap(std::int64_t n, double at_us);
    void add_timer(double at_us, Timer::What what, std::int64_t arg);
    void fire(const Timer& due);
    double backlog_us(const CopyEngine& engine, Direction direction, bool other_busy) const;

    const Workload& work_;
    const Machine& machine_;
    CopyEngine out_;
    CopyEngine in_;
    std::vector<TensorState> state_;
    std::int64_t free_;
    std::int64_t budget_;
    std::int64_t leaving_ = 0;
    std::int64_t peak_used_ = 0;
    std::int64_t host_ = 0;
    std::int64_t host_peak_ = 0;
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
    std::uint64_t tick_ = 0;
    std::uint32_t next_job_ = 0;
    std::int64_t least_part_ = 0;  ///< of fetches that are divided; 0: none are
    std::int64_t part_unit_ = 1;
    std::vector<Division> divisions_;
    std::vector<FetchTime> fetch_times_;
    mutable std::size_t awaited_ = 0;  // of the uses of the next operation, one that was away
    std::size_t unclaimed_ = 0;        // fetches before this one in the queue have their memory
};

}  // namespace libswap::cost
