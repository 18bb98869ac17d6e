// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <sys/types.h>

namespace simgpu {

struct Op;

/// One thread of the program, as the clock sees it.
struct HostThread {
    pid_t tid = 0;
    enum class State : std::uint8_t {
        Running,  ///< May go on by itself, unless /proc says that it is asleep.
        Polling,  ///< Its last call was a query that said NOT_READY.
        Blocked,  ///< Waits in one of our calls.
        Idle,     ///< Ours, for host functions, and has none.
    };
    State state = State::Running;
    bool stranger = false;  ///< Never called us.
    bool in_our_work =
        false;  ///< Its processor time goes into our work, which the model has priced.
    std::uint64_t local_ns = 0;  ///< Its simulated time, never behind the clock while it runs.
    // When it was last seen by us: its simulated, real and processor time then.
    std::uint64_t base_local_ns = 0, base_real_ns = 0, base_cpu_ns = 0;
    std::uint64_t cpu_read_ns = 0;      ///< Real time at which base_cpu_ns was read.
    std::uint64_t asleep_until_ns = 0;  ///< Real time until which it is taken to be asleep,
    std::uint64_t asleep_activity = 0;  ///< as long as the timeline's activity_ is this.
    struct Polled {
        std::shared_ptr<Op> op;
        /// Until it has had so much time of its own, it may yet notice that this is done; 0 while
        /// it is not.
        std::uint64_t give_up_ns = 0;
        std::uint64_t asked_in_round = 0;  ///< HostThread::round of its last question about this
    };
    /// What it was told NOT_READY about and has not found done yet, whatever else it called since.
    std::vector<Polled> polled;
    /// Time that it had to ask again, as far as it was looked at: asleep, or with a processor. What
    /// it waited for a processor does not count.
    std::uint64_t own_time_ns = 0;
    std::uint64_t looked_at_ns = 0;  ///< real time of the last such look
    std::uint64_t looked_cpu_ns = 0;
    bool looked_asleep = false;
    std::uint64_t round = 0;     ///< of questions; a new one begins when it slept between two
    std::uint32_t repeated = 0;  ///< Questions of this round that it had asked in it before.
    bool sleeps = false;         ///< It ends its rounds soon.
    const Op* last_complete = nullptr;  ///< What its last query found complete.
    bool asked_before = false;  ///< Its last call was a query that found something complete.
    std::condition_variable wake;
    unsigned waiting_for = 0;
};

/// The states of threads by /proc. It is looked at before every step of the clock: the files stay
/// open, since opening one costs several times what reading it does. @thread one at a time
class ThreadStates {
  public:
    ThreadStates() = default;
    ThreadStates(const ThreadStates&) = delete;
    ~ThreadStates();
    /// The state letter of a thread of this process, 'X' when it is gone.
    char of(pid_t tid);

  private:
    static constexpr std::size_t kMostFiles = 64;  ///< a program may need what we do not hold
    std::map<pid_t, int> files_;
};

/// The threads of the process that are not simgpu's. Not synchronised: the timeline's lock covers
/// it, but for asleep().
class HostThreads {
  public:
    HostThread& add(pid_t tid);
    void remove(pid_t tid);
    void add_own(pid_t tid) { own_.insert(tid); }
    std::map<pid_t, std::unique_ptr<HostThread>>& all() { return threads_; }
    /// Takes in threads that never called us and drops those that are gone; `now_ns`: the clock.
    /// Cheap when nothing changed.
    void reconcile(std::uint64_t now_ns);

    /// Processor time of a thread of this process, 0 when it is gone.
    static std::uint64_t cpu_ns(pid_t tid);
    static std::uint64_t own_cpu_ns();
    static std::uint64_t real_ns();
    /// Which of `tids` are asleep (or gone), and used no processor while all were looked at.
    /// @thread the conductor
    std::vector<bool> asleep(const std::vector<pid_t>& tids);

  private:
    std::map<pid_t, std::unique_ptr<HostThread>> threads_;
    std::set<pid_t> own_;
    ThreadStates states_;
    std::map<pid_t, std::uint64_t> seen_cpu_ns_;  ///< processor time at the last look
};

}  // namespace simgpu
