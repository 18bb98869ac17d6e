// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <thread>
#include <vector>

#include "simgpu/device/delays.hpp"
#include "simgpu/device/host_threads.hpp"
#include "simgpu/device/link_model.hpp"
#include "simgpu/device/machine.hpp"
#include "simgpu/device/op.hpp"

namespace simgpu {

/// The simulated clock, and everything that happens in its order.
///
/// A discrete-event simulation with the program's own threads in the loop.
///
/// *Operations.* An operation is ready when its stream's previous one and what it waits for are
/// done. A kernel (also memsets and device to device copies) then pays its launch latency, queues
/// for the device's one compute engine by priority and age, and has it alone until its end: kernels
/// of different streams overlap with each other's latencies, not with each other's bodies, since
/// each body is modelled as filling the device. A transfer takes its direction's copy engine, pays
/// its latency there, and moves its bytes at the rate that the other direction leaves (LinkModel).
///
/// *Work.* The data work of an operation is done when the clock reaches its start, never earlier,
/// so nothing is seen before its time. A kernel's duration follows from what its work counted;
/// until the work is done the clock stands at its start. A copy's end is known beforehand; the
/// clock may go on until there, and stands there until the work is done. An operation is complete,
/// for whoever asks or waits, when its work is done and the clock has reached its end.
///
/// *The clock moves* in two ways, and never past an event:
/// 1. It jumps to the next event when no thread of the program can go on by itself: each is in a
/// blocking call of ours (Blocked), or was last
///    told NOT_READY by a query (Polling), or is asleep as /proc tells. A poller that has just been
///    given reason (what it asked about is done) counts as running until it has asked again, or has
///    slept for kNoticeNs of real time nevertheless.
/// 2. Else it follows the processor time of the program's threads: a thread that returned from a
/// call at clock b and has used c ns of
///    processor since then is at b + c, and the clock is at least there. Processor time instead of
///    real time, so that a loaded machine gives the same figures. Time a thread spends inside our
///    calls does not count; what a call costs on a real machine is charged by the profile. While
///    the clock stands for unfinished work, the time of running threads is not counted at all. A
///    thread's sleep costs no simulated time.
///
/// *Who drives.* Every call of ours first brings the clock up to its thread's time. The conductor
/// thread jumps, runs kernels and small copies; while something is pending and threads of the
/// program run, it looks every kTickNs. A second thread runs big copies, a third host functions (as
/// a thread of the program would: it counts as one). Nothing spins.
///
/// *Locks.* `lock_` covers all of it, is not held while work runs, and ranks above Memory's lock.
class Timeline : public std::enable_shared_from_this<Timeline> {
  public:
    Timeline(const MachineProfile& profile, Memory& memory, int devices);
    ~Timeline();

    void start();
    void stop();
    void park();
    void after_fork_in_child() { dead_.store(true, std::memory_order_release); }
    bool dead() const { return dead_.load(std::memory_order_acquire); }

    /// A call of a program's thread: brings the clock up to it, holds the lock, keeps the thread's
    /// account.
    class Call {
      public:
        explicit Call(Timeline& timeline);
        ~Call();
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

      private:
        friend class Timeline;
        Timeline& timeline_;
        std::unique_lock<std::mutex> lock_;
        HostThread* self_;
        bool polled_ = false;
    };

    /// Gives `op` its place behind `after` and its stream's earlier operations.
    void submit(Call& call, const std::shared_ptr<Op>& op,
                const std::vector<std::shared_ptr<Op>>& after);
    /// Blocks until all of `ops` are done.
    void wait(Call& call, const std::vector<std::shared_ptr<Op>>& ops);
    /// SUCCESS or NOT_READY; the latter makes the thread a poller.
    Status poll(Call& call, const std::shared_ptr<Op>& op);
    /// Simulated time that the calling thread spends in this call.
    void spend(Call& call, std::uint64_t ns);
    void fail(ContextState& context, Status status, const std::string& detail);

    std::uint64_t now_ns() const { return now_.load(std::memory_order_acquire); }
    const MachineProfile& profile() const { return profile_; }
    Memory& memory() { return memory_; }

    // Below: only with a Call.
    std::vector<std::weak_ptr<ContextState>>& contexts() { return contexts_; }
    Delays& delays() { return delays_; }
    OpStatistics statistics(OpClass op_class) const {
        return statistics_[static_cast<int>(op_class)];
    }
    std::uint64_t next_id() { return next_id_++; }
    void forget_thread(pid_t tid);

  private:
    using OpPtr = std::shared_ptr<Op>;
    enum class TimerKind : std::uint8_t { WantCompute, End, BytesBegin, Wake };
    struct Timer {
        std::uint64_t at_ns = 0, sequence = 0;
        TimerKind kind = TimerKind::End;
        OpPtr op;
        HostThread* thread = nullptr;
        bool operator>(const Timer& other) const {
            return at_ns != other.at_ns ? at_ns > other.at_ns : sequence > other.sequence;
        }
    };
    struct ByPriority {
        bool operator()(const OpPtr& a, const OpPtr& b) const;
    };
    struct Engine {
        OpPtr current;
        std::set<OpPtr, ByPriority> queue;
    };
    struct DeviceState {
        explicit DeviceState(const MachineProfile& profile);
        Engine compute;
        Engine copy[2];  ///< By LinkModel::Direction.
        LinkModel link;
    };

    // The simulation.
    void process_due();
    void advance_to(std::uint64_t target_ns);
    bool frozen() const;
    std::uint64_t next_event_ns() const;
    void jump_to(std::uint64_t at_ns);
    void begin(const OpPtr& op);
    void begin_copy(const OpPtr& op);
    void start_compute(DeviceState& device);
    void start_copy(DeviceState& device, LinkModel::Direction direction);
    void handle(const Timer& timer);
    bool end_link_transfers();
    void end_reached(const OpPtr& op);
    void finish(const OpPtr& op, Status status);
    void leave_engine(const OpPtr& op);
    void work_finished(const OpPtr& op);
    void queue_work(const OpPtr& op);
    void add_timer(std::uint64_t at_ns, TimerKind kind, OpPtr op, HostThread* thread = nullptr);
    bool poll_values();
    Status write_value(Op& op);
    std::uint64_t body_ns(const Op& op) const;
    OpClass classify(const CopyRequest& copy) const;
    DeviceState& device_of(const Op& op) { return *devices_[op.context->device]; }

    // Host threads.
    HostThread& self_thread();
    void credit(HostThread& thread, std::uint64_t cpu_ns);
    bool quiescent(std::unique_lock<std::mutex>& lock);
    bool notice_due(std::uint64_t real_ns);
    bool credit_running();
    void block(Call& call);
    void wake(HostThread& thread);

    // Our threads.
    void enter(const char* name);
    void conduct();
    void carry();
    void call_functions();
    void run(std::unique_lock<std::mutex>& lock, const OpPtr& op);
    void tick(std::unique_lock<std::mutex>& lock);

    const MachineProfile profile_;
    Memory& memory_;
    std::atomic<bool> dead_{false};
    mutable std::mutex lock_;
    std::condition_variable conductor_wake_, carrier_wake_, function_wake_, parked_wake_;

    std::atomic<std::uint64_t> now_{0};
    std::uint64_t sequence_ = 0;
    std::uint64_t activity_ =
        0;  ///< Counts calls, so that a look at /proc without the lock can be told stale.
    std::uint64_t pending_ =
        0;  ///< Operations submitted and not done, and threads that spend time.
    std::uint64_t overdue_ = 0;  ///< Copies whose end is reached and whose work is not.
    std::uint64_t next_id_ = 1;
    std::uint64_t quiet_until_ns_ = 0, quiet_activity_ = 0;
    std::uint64_t tick_ns_ = 0, tick_activity_ = 0;
    int entered_ = 0;
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
    std::deque<OpPtr> ready_;
    std::vector<OpPtr> value_waits_;
    std::vector<std::unique_ptr<DeviceState>> devices_;
    std::deque<OpPtr> conductor_work_, carrier_work_, functions_;
    unsigned kernels_undone_ = 0;
    unsigned working_ = 0;
    bool stop_ = false, parked_ = false;
    Delays delays_;
    std::array<OpStatistics, kOpClasses> statistics_{};
    std::vector<std::weak_ptr<ContextState>> contexts_;
    HostThreads threads_;
    std::thread conductor_, carrier_, function_caller_;
};

}  // namespace simgpu
