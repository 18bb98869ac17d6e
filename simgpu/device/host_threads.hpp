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
    };
    State state = State::Running;
    std::uint64_t base_now_ns = 0;  ///< The clock when its processor time was base_cpu_ns.
    std::uint64_t base_cpu_ns = 0;
    std::vector<std::shared_ptr<Op>>
        polled;  ///< What it was told NOT_READY about since its last other call.
    std::uint64_t notice_until_ns =
        0;  ///< Real time until which it may yet notice that a polled one is done.
    std::condition_variable wake;
    unsigned waiting_for = 0;
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
    /// Whether all of `tids` are asleep (or gone), seen twice without processor time in between.
    static bool asleep(const std::vector<pid_t>& tids);

  private:
    std::map<pid_t, std::unique_ptr<HostThread>> threads_;
    std::set<pid_t> own_;
};

}  // namespace simgpu
