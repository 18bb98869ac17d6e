// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/iteration_clock.hpp"

#include <algorithm>

namespace libswap {

void IterationClock::begin(StreamIndex stream, const Mark& mark) noexcept {
    {
        std::lock_guard lock(mutex_);
        if (count_ == kMostBegun) return;  // the host is too far ahead
    }
    const CUevent event = spare_.take();
    if (!event) return;
    const bool recorded =
        LIBSWAP_CU(driver_.cuEventRecord(event, streams_.handle(stream))).has_value();
    {
        std::lock_guard lock(mutex_);
        if (recorded && count_ < kMostBegun) {
            begun_[(first_ + count_++) % kMostBegun] = {event, mark};
            return;
        }
    }
    spare_.give_back(event);
}

std::optional<IterationTime> IterationClock::next() {
    for (;;) {
        Begun before;
        Begun after;
        {
            std::lock_guard lock(mutex_);
            if (count_ < 2) return std::nullopt;
            before = begun_[first_];
            after = begun_[(first_ + 1) % kMostBegun];
        }
        if (driver_.cuEventQuery(after.event) == CUDA_ERROR_NOT_READY) return std::nullopt;
        float ms = 0;
        const bool timed =
            driver_.cuEventElapsedTime(&ms, before.event, after.event) == CUDA_SUCCESS;
        spare_.give_back(before.event);
        std::lock_guard lock(mutex_);
        first_ = (first_ + 1) % kMostBegun;
        --count_;
        // Something else ran in between, or an iteration whose begin was not taken.
        if (!timed || after.mark.serial - before.mark.serial != before.mark.period) continue;
        const bool followed = before.mark.run == after.mark.run;
        const IterationTime time{static_cast<double>(ms) * 1000,
                                 followed ? before.mark.predicted_us : 0};
        times_[timed_++ % kMostKept] = time;
        return time;
    }
}

std::vector<IterationTime> IterationClock::last_iterations() {
    std::lock_guard lock(mutex_);
    std::vector<IterationTime> last;
    for (std::size_t i = timed_ - std::min(timed_, kMostKept); i < timed_; ++i)
        last.push_back(times_[i % kMostKept]);
    return last;
}

void IterationClock::stop(bool context_gone) {
    {
        std::lock_guard lock(mutex_);
        for (; count_ != 0; --count_) {
            spare_.give_back(begun_[first_].event);
            first_ = (first_ + 1) % kMostBegun;
        }
        first_ = 0;
    }
    spare_.close(context_gone);
}

}  // namespace libswap
