// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How long iterations take by the device's clock, against what was predicted of them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/spare_events.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

/// One iteration, from its first operation to the next one's.
struct IterationTime {
    double us = 0;
    double predicted_us = 0;  ///< by the plan that was followed all through it; 0: there was none
};

/// @thread any, except as said
class IterationClock {
  public:
    /// What is in force when an iteration begins.
    struct Mark {
        std::uint64_t serial = 0;  ///< of its first operation
        std::uint64_t period = 0;  ///< operations of an iteration
        std::uint32_t run = 0;     ///< PlanExecutor::run()
        double predicted_us = 0;
    };
    /// Of so many iterations the times are kept, the last ones.
    static constexpr std::size_t kMostKept = 64;

    IterationClock(const Driver& driver, const StreamTable& streams) noexcept
        : driver_(driver), streams_(streams), spare_(driver) {}

    /// The first operation of an iteration is about to be issued on a stream.
    void begin(StreamIndex stream, const Mark& mark) noexcept;
    /// The oldest iteration that is over by the device's clock and was not returned yet. Queries
    /// events. @thread the worker
    std::optional<IterationTime> next();
    std::vector<IterationTime> last_iterations();

    /// Forgets what is under way. Events are destroyed unless the context is gone.
    void stop(bool context_gone);

  private:
    /// Iterations that the host may be ahead; the times of more are not taken.
    static constexpr std::size_t kMostBegun = 32;
    struct Begun {
        CUevent event = nullptr;
        Mark mark;
    };

    const Driver& driver_;
    const StreamTable& streams_;
    SpareEvents spare_;
    std::mutex mutex_;
    // A launch's hook allocates nothing: rings of fixed size. Under mutex_.
    std::array<Begun, kMostBegun> begun_{};
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::array<IterationTime, kMostKept> times_{};
    std::size_t timed_ = 0;  ///< in all
};

}  // namespace libswap
