// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "cost/link_model.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// For what no action of a plan has asked for.
inline constexpr std::uint32_t kNoAction = UINT32_MAX;

/// A transfer that is queued or under way.
struct TransferJob {
    std::uint32_t id = 0;
    std::uint32_t action = kNoAction;  ///< of the plan, that it came from
    TensorIndex tensor = 0;
    std::int64_t bytes = 0;
    bool ready = false;     ///< may start moving
    bool claimed = false;   ///< has its memory (fetches)
    bool live = true;       ///< its content is still wanted
    bool kept = false;      ///< a copy in advance: releases nothing
    bool divided = false;   ///< what comes behind it was part of it
    std::uint8_t cuts = 0;  ///< what went before it was part of it so many times
    double setup_us = 0;    ///< still to pass before bytes move
    double left_bytes = 0;
};

/// One direction of the link in a replay: transfers in order, one at a time, slower while the other
/// direction is busy.
class CopyEngine {
  public:
    static constexpr double kEpsilonUs = 1e-6;

    CopyEngine(const LinkModel& link, Direction direction) : link_(link), direction_(direction) {}

    void start() {
        if (job || queue.empty() || !queue.front().ready) return;
        job = queue.front();
        queue.pop_front();
        job->setup_us = link_.direction(direction_).setup_us();
        job->left_bytes = static_cast<double>(job->bytes);
    }

    double eta_us(bool other_busy) const {
        if (!job) return std::numeric_limits<double>::infinity();
        return job->setup_us + job->left_bytes / rate(other_busy);
    }

    /// The transfer that ends with this step, if any.
    std::optional<TransferJob> advance(double dt_us, bool other_busy) {
        if (!job) return std::nullopt;
        const double setup_us = dt_us < job->setup_us ? dt_us : job->setup_us;
        job->setup_us -= setup_us;
        job->left_bytes -= (dt_us - setup_us) * rate(other_busy);
        if (eta_us(other_busy) > kEpsilonUs) return std::nullopt;
        std::optional<TransferJob> done = job;
        job.reset();
        moved_bytes += done->bytes;
        return done;
    }

    /// Bytes per microsecond of the transfer under way.
    double rate(bool other_busy) const {
        return link_.rate(direction_, static_cast<std::uint64_t>(job->bytes), other_busy);
    }

    std::deque<TransferJob> queue;
    std::optional<TransferJob> job;
    std::int64_t moved_bytes = 0;

  private:
    const LinkModel& link_;
    Direction direction_;
};

}  // namespace libswap::cost
