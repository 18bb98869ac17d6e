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
#include "simgpu/device/timeline_log.hpp"

namespace simgpu {

/// The simulated clock, and everything that happens in its order.
///
/// A discrete-event simulation with the program's own threads in the loop.
///
/// *Operations.* An operation is ready when its stream's previous one and what it waits for are
/// done. A kernel (also memsets and device to device copies) then pays its launch latency, queues
/// for the device's one compute engine by priority and age, and has it alone until its end: kernels
/// of different streams overlap with each other's latencies, not with each other's bodies, since
/// each body is modelled as filling the device. But one of higher priority does not wait for the
/// end: its blocks take the places that blocks of the other leave, which goes on behind it. A
/// transfer takes its direction's copy engine, pays its latency there, and moves its bytes at the
/// rate that the other direction leaves (LinkModel).
///
/// *Work.* The data work of an operation is done when the clock reaches its start, never earlier,
/// so nothing is seen before its time. A kernel's duration follows from what its work counted;
/// until the work is done the clock stands at its start. A copy's end is known beforehand; the
/// clock may go on until there, and stands there until the work is done. An operation is complete,
/// for whoever asks or waits, when its work is done and the clock has reached its end.
///
/// *Threads of the program* have a simulated time each, of their own: what a thread submits is
/// submitted then. One that comes back from a wait is at the clock or later; each submitting call,
/// and each call with a modelled cost, moves it on by that; and so does its processor time between
/// two calls, as far as it is above kFreeNs, divided by the host's speed. (Processor time, not real
/// time, and not the little that a loop of launches takes, so that a loaded machine gives the same
/// figures. On a virtual machine processor time also holds what others took the processor away for:
/// up to 8 ms at once were seen. Only a great host speed keeps that out.) A thread's sleep costs no
/// simulated time.
///
/// *The clock moves* from event to event. It never passes the simulated time of a thread that may
/// go on by itself, since that one may yet submit something. A thread holds the clock so, unless it
/// 1. is in a blocking call of ours (Blocked), or
/// 2. was last told NOT_READY by a query (Polling), and asks again without sleeping in between, or
/// 3. is asleep, as /proc tells, but not on its way into a call of ours, or
/// 4. never called us, while some thread is Blocked and no other that called us is awake: nobody
/// that matters waits for it then. But when anything that it was told NOT_READY about is done, it
/// holds the clock until it has asked about that again, or had kNoticeNs of real time to do so: a
/// poller reacts at the right simulated time, however long it sleeps, however long it waits for a
/// processor, and whatever else it asks and submits between its questions. One that sleeps between
/// its questions and is awake has been woken, by its own clock or by somebody with news for it.
/// When no thread holds it, the clock jumps. When a thread computes, or spins on memory, the clock
/// follows its processor time. And it never passes the start of a kernel, or the end of a copy,
/// whose work is not done.
///
/// *Who drives.* The conductor thread moves the clock, runs kernels and small copies; while
/// something is pending and threads of the program run, it looks at them every 50 us to 1 ms. A
/// second thread runs big copies, a third host functions (it counts as one of the program's).
/// Nothing spins.
///
/// *Locks.* `lock_` covers all of it, is not held while work runs, and ranks above Memory's lock.
class Timeline : public std::enable_shared_from_this<Timeline> {
  public:
    Timeline(const MachineProfile& profile, Memory& memory, int devices, double host_speed);
    ~Timeline();

    void start();
    void stop();
    void park();
    void after_fork_in_child() { dead_.store(true, std::memory_order_release); }
    bool dead() const { return dead_.load(std::memory_order_acquire); }

    /// A call of a program's thread: holds the lock, and keeps the thread's account.
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
        bool slept_ = false;
        bool polled_ = false, queried_ = false;
    };

    /// Work of ours on a program's thread, outside the lock: what it takes here costs the thread no
    /// simulated time, but what the model says.
    class OwnWork {
      public:
        explicit OwnWork(Timeline& timeline);
        ~OwnWork();
        OwnWork(const OwnWork&) = delete;
        OwnWork& operator=(const OwnWork&) = delete;
        void costs(std::uint64_t ns) { cost_ns_ = ns; }

      private:
        Timeline& timeline_;
        std::uint64_t cost_ns_ = 0;
    };

    /// Gives `op` its place behind `after` and its stream's earlier operations.
    void submit(Call& call, const std::shared_ptr<Op>& op,
                const std::vector<std::shared_ptr<Op>>& after);
    /// The same for a graph: `steps` run once the stream has come here and `previous` is done, each
    /// behind those that it names. Returns the operation that ends it.
    std::shared_ptr<Op> submit_graph(Call& call, const std::shared_ptr<StreamState>& stream,
                                     const std::vector<GraphStep>& steps,
                                     const std::shared_ptr<Op>& previous);
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
    enum class TimerKind : std::uint8_t { Submit, WantCompute, End, BytesBegin };
    struct Timer {
        std::uint64_t at_ns = 0, sequence = 0;
        TimerKind kind = TimerKind::End;
        OpPtr op;
        bool operator>(const Timer& other) const {
            return at_ns != other.at_ns ? at_ns > other.at_ns : sequence > other.sequence;
        }
    };
    struct ByPriority {
        bool operator()(const OpPtr& a, const OpPtr& b) const;
    };
    struct Engine {
        OpPtr current;
        OpPtr before;  ///< Of higher priority: `current` stands still meanwhile.
        std::set<OpPtr, ByPriority> queue;
    };
    struct DeviceState {
        explicit DeviceState(const MachineProfile& profile);
        Engine compute;
        Engine copy[2];  ///< By LinkModel::Direction.
        LinkModel link;
    };

    // The simulation.
    void place(const OpPtr& op, const std::vector<OpPtr>& after);
    static void depend(const OpPtr& op, const OpPtr& earlier);
    void admit(const OpPtr& op);
    std::vector<OpPtr> place_steps(const std::shared_ptr<StreamState>& stream,
                                   const std::vector<GraphStep>& steps, const OpPtr& start,
                                   std::uint64_t submit_ns);
    void choose(const OpPtr& op);
    std::uint64_t launch_latency_ns(const Op& op) const;
    void process_due();
    bool frozen() const;
    std::uint64_t next_event_ns() const;
    void jump_to(std::uint64_t at_ns);
    void begin(const OpPtr& op);
    void begin_copy(const OpPtr& op);
    void start_compute(DeviceState& device);
    static OpPtr* place_of_next(Engine& engine);
    void start_copy(DeviceState& device, LinkModel::Direction direction);
    void handle(const Timer& timer);
    bool end_link_transfers();
    void end_reached(const OpPtr& op);
    void finish(const OpPtr& op, Status status);
    void leave_engine(const OpPtr& op);
    void work_finished(const OpPtr& op);
    void queue_work(const OpPtr& op);
    void add_timer(std::uint64_t at_ns, TimerKind kind, OpPtr op);
    bool poll_values();
    Status write_value(Op& op);
    std::uint64_t body_ns(const Op& op) const;
    OpClass classify(const CopyRequest& copy) const;
    DeviceState& device_of(const Op& op) { return *devices_[op.context->device]; }

    // Host threads.
    HostThread& self_thread();
    void follow(HostThread& thread, std::uint64_t real_ns);
    void see(HostThread& thread, std::uint64_t real_ns, bool read_cpu);
    std::uint64_t horizon_ns(std::unique_lock<std::mutex>& lock);
    std::vector<HostThread*> awake_threads(std::unique_lock<std::mutex>& lock,
                                           std::uint64_t real_ns);
    static bool must_notice(HostThread& thread);
    static void count_own_time(HostThread& thread, std::uint64_t real_ns, bool asleep);
    void block(Call& call);
    void wake(HostThread& thread);

    // Our threads.
    void enter(const char* name);
    void conduct();
    void carry();
    void call_functions();
    void run(std::unique_lock<std::mutex>& lock, const OpPtr& op);
    void tick(std::unique_lock<std::mutex>& lock);
    bool move_clock(std::unique_lock<std::mutex>& lock);

    const MachineProfile profile_;
    const double host_speed_;
    Memory& memory_;
    std::atomic<bool> dead_{false};
    mutable std::mutex lock_;
    std::condition_variable conductor_wake_, carrier_wake_, function_wake_, parked_wake_;

    std::atomic<std::uint64_t> now_{0};
    std::atomic<int> entering_{0};  ///< Threads that wait for lock_, and look asleep.
    std::uint64_t sequence_ = 0;
    std::uint64_t activity_ = 0;  ///< Counts calls: a look at /proc without the lock may be stale.
    std::uint64_t overdue_ = 0;   ///< Copies whose end is reached and whose work is not.
    std::uint64_t next_id_ = 1;
    std::uint64_t reconciled_ns_ = 0;  ///< Real time of the last look for new threads.
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
    bool conductor_idle_ = false;  ///< It waits until somebody wakes it.
    Delays delays_;
    TimelineLog log_;
    std::array<OpStatistics, kOpClasses> statistics_{};
    std::vector<std::weak_ptr<ContextState>> contexts_;
    HostThreads threads_;
    std::thread conductor_, carrier_, function_caller_;
};

}  // namespace simgpu
