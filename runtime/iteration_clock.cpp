// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/iteration_clock.hpp"

#include <algorithm>

namespace libswap {

/// Null where there is none to be had, or where the host is too far ahead.
CUevent IterationClock::take_event() noexcept {
    {
        std::lock_guard lock(mutex_);
        if (count_ == kMostBegun) return nullptr;
        if (spares_ != 0) return spare_events_[--spares_];
    }
    CUevent event = nullptr;
    return LIBSWAP_CU(driver_.cuEventCreate(&event, CU_EVENT_DEFAULT)) ? event : nullptr;
}

void IterationClock::begin(StreamIndex stream, const Mark& mark) noexcept {
    const CUevent event = take_event();
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
    LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(event));
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
        std::lock_guard lock(mutex_);
        first_ = (first_ + 1) % kMostBegun;
        --count_;
        if (spares_ < spare_events_.size()) spare_events_[spares_++] = before.event;
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
    std::lock_guard lock(mutex_);
    if (!context_gone) {
        for (std::size_t i = 0; i < count_; ++i)
            LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(begun_[(first_ + i) % kMostBegun].event));
        for (std::size_t i = 0; i < spares_; ++i)
            LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(spare_events_[i]));
    }
    first_ = count_ = spares_ = 0;
}

}  // namespace libswap
