// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Times some of the engine's copies by events, and compares them with the link's model.
//
// They are timed in bursts, all of both directions, so that it is known when both moved data:
//   copies   ... a a a | fences, T T T ... T | a a a ... a | fences, T T ...
//                       `-- kBurst ----------'`-- kPause --'
// What was submitted before a burst is over where its fence is; a burst is looked at once all of it
// is done. A copy that may have overlapped one that was not timed does not count.
#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "cost/copy_forecast.hpp"
#include "runtime/driver.hpp"
#include "runtime/model_error.hpp"
#include "runtime/spare_events.hpp"

namespace libswap {

/// @thread the worker, except where it says otherwise
class CopyTimes {
  public:
    CopyTimes(const Driver& driver, const cost::LinkModel& link);

    /// The streams that copies are submitted to.
    void open(CUstream out, CUstream in) noexcept;
    /// Before the copies of a block on the direction's stream. False: these are not timed.
    bool begin(cost::Direction direction) noexcept;
    /// Behind them, after begin() said yes: `messages` copies of `bytes` each.
    void end(std::uint64_t bytes, std::uint32_t messages) noexcept;
    /// Reads what is done.
    void collect() noexcept;
    /// Gives the events back, unless they went with the context.
    void close(bool context_gone) noexcept;
    /// Another model is planned with from now on.
    void plan_with(const cost::LinkModel& link) noexcept;

    /// Another model counts from now on, of which nothing is known so far.
    void begin_anew(const cost::LinkModel& link) noexcept;

    /// Against the model that this began with, and against the one that was planned with at the
    /// time. @thread any
    ModelError error(cost::Direction direction) const noexcept;
    ModelError error_of_plans(cost::Direction direction) const noexcept;
    /// Of copies alone during which the other direction was busy nearly all the time, or hardly at
    /// all, against the first model. @thread any
    ModelError error_where(cost::Direction direction, bool other_busy) const noexcept;

    static constexpr std::uint64_t kBurst = 64;
    static constexpr std::uint64_t kPause = 7 * kBurst;

  private:
    struct Timed {
        CUevent begin = nullptr;
        CUevent end = nullptr;
        cost::Direction direction{};
        std::uint64_t bytes = 0;
        std::uint32_t messages = 0;
    };
    struct Errors {
        ModelError all;
        ModelError of_plans;
        std::array<ModelError, 2> where;
    };
    static std::size_t index(cost::Direction d) noexcept { return static_cast<std::size_t>(d); }

    bool begin_burst() noexcept;
    bool is_over() const noexcept;
    bool measure(CUevent event, double* us) const noexcept;
    void evaluate() noexcept;
    bool is_known(const cost::CopySpan& span) const noexcept;
    void note(const cost::CopySpan& span, std::size_t which) noexcept;
    void give_back(Timed& timed) noexcept;

    const Driver& driver_;
    cost::LinkModel link_;
    cost::LinkModel planned_link_;
    std::array<CUstream, 2> streams_{};  ///< by direction
    std::uint64_t submitted_ = 0;        ///< copies, since the last burst began
    std::array<CUevent, 2> fences_{};    ///< on both streams, when the burst began
    std::array<double, 2> fence_us_{};
    std::array<double, 2> last_end_us_{};    ///< of timed copies
    std::array<bool, 2> others_followed_{};  ///< copies that are not timed, behind those
    std::vector<Timed> timed_;               ///< of the burst, until it is looked at
    std::vector<cost::CopySpan> spans_;      ///< scratch of evaluate()
    SpareEvents spare_;
    Timed open_;  ///< between begin and end

    mutable std::mutex mutex_;
    std::array<Errors, 2> errors_;  ///< by direction, under mutex_
};

}  // namespace libswap
