// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Device times of operations by CUPTI, for as long as some device learns its program's iteration.
//
//   Off --acquire()--> Starting --> On --release()--> Draining --collect()--> Drained --finish()-->
//   Over
//                          `--> Over: there is none, or somebody else uses it
//   any --leave_to_others()--> Over
//
// acquire() and finish() load and unload a profiler: they are called inside hooks, on the program's
// threads, where nothing of it is taken for the program's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cupti_trace/trace.hpp"
#include "runtime/config.hpp"

namespace libswap {

/// When an operation ran on the device. Of events only the difference of the two counts.
struct OperationTime {
    std::uint64_t serial = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    /// Of CUPTI's clock; by events it begins at 0.
    bool is_on_clock() const noexcept { return start_ns != 0; }
};

/// One for the process, as CUPTI is. @thread any
class KernelTimes {
  public:
    static KernelTimes& instance();
    /// In the child of a fork: what the parent had is not touched any more, and CUPTI is not tried.
    static void forget() noexcept;

    /// A device begins to learn: tries to start CUPTI, the first time. Each needs a release().
    /// Loads a library: the caller holds no lock.
    void acquire(CuptiUse use) noexcept;
    /// It has learnt enough.
    void release() noexcept;

    /// Around a capture of any device: in between CUPTI is switched neither on nor off. The first
    /// waits for what is being switched.
    void begin_capture() noexcept;
    void end_capture() noexcept { captures_.fetch_sub(1, std::memory_order_seq_cst); }
    bool capturing() const noexcept { return captures_.load(std::memory_order_seq_cst) > 0; }

    /// Around an operation of a device. enter() says whether it is timed; only then leave()
    /// follows.
    bool enter(int device, std::uint64_t serial) noexcept;
    void leave() noexcept;

    /// Adds what has come of this device's operations; keeps that of others. `hurry`: also what
    /// CUPTI would rather keep. True while more may come. Allocates. @thread the device's worker
    bool collect(int device, bool hurry, std::vector<OperationTime>* out);

    /// Operations whose times came.
    std::uint64_t answered() const noexcept { return answered_.load(std::memory_order_relaxed); }
    /// CUPTI is not in the process, or was taken out again, or is somebody else's.
    bool is_out() const noexcept {
        const State state = state_.load(std::memory_order_acquire);
        return state == State::Off || state == State::Over;
    }

    /// A profiler of the program's is about to use CUPTI, which has one user: ours lets go of it,
    /// if it has it, and never takes it again. Returns when that is done. @thread any
    void leave_to_others() noexcept;

    /// Takes CUPTI out of the process once nothing more comes. A load where there is nothing to do.
    void finish() noexcept {
        if (state_.load(std::memory_order_relaxed) == State::Drained) take_out();
    }

  private:
    enum class State : std::uint8_t { Off, Starting, On, Draining, Drained, Over };
    bool is_on() const noexcept { return state_.load(std::memory_order_seq_cst) == State::On; }
    void start(CuptiUse use);
    bool begin(std::unique_ptr<cupti::Trace> trace, std::string* why);
    void take_out() noexcept;
    void drain(std::uint64_t now) noexcept;
    void drain_if_done(std::uint64_t now) noexcept;
    bool gives_nothing(std::uint64_t now) const noexcept;

    std::atomic<State> state_{State::Off};
    std::atomic<int> learners_{0};
    std::atomic<int> captures_{0};
    std::atomic<int> inside_{0};  ///< threads between enter() and leave()
    std::atomic<std::uint64_t> entered_{0};
    std::atomic<std::uint64_t> answered_{0};
    std::mutex mutex_;     ///< of all below; held across CUPTI's calls, never across the driver's
    bool others_ = false;  ///< somebody else has used CUPTI
    std::unique_ptr<cupti::Trace> trace_;
    std::uint64_t started_ns_ = 0;
    std::uint64_t collected_ns_ = 0;
    std::uint64_t released_ns_ = 0;
    std::map<int, std::vector<OperationTime>> waiting_;  ///< by device
};

}  // namespace libswap
