// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/operation_times.hpp"

namespace libswap {
namespace {

constexpr std::size_t kMostOutstanding = 4096;

}  // namespace

OperationTimes::How OperationTimes::begin(StreamIndex stream, std::uint64_t serial, bool learning) {
    KernelTimes& cupti = KernelTimes::instance();
    cupti.finish();
    if (learning) {
        if (!cupti.capturing() && !cupti_asked_.exchange(true)) {
            cupti.acquire(parts_.cupti);
            learns_by_cupti_ = true;
        }
        if (cupti.enter(parts_.device, serial)) return How::Cupti;
    }
    return stream != kNoStream && begin_events(stream, serial) ? How::Events : How::None;
}

void OperationTimes::end(How how, StreamIndex stream, std::uint64_t serial) {
    if (how == How::Cupti) KernelTimes::instance().leave();
    if (how == How::Events) end_events(stream, serial);
}

void OperationTimes::end_learning() noexcept {
    if (learns_by_cupti_.exchange(false)) KernelTimes::instance().release();
}

bool OperationTimes::begin_events(StreamIndex stream, std::uint64_t serial) {
    {
        std::lock_guard lock(mutex_);
        if (timed_.size() >= kMostOutstanding) return false;
    }
    const Timed timed{spare_.take(), spare_.take(), serial};
    if (timed.begin && timed.end &&
        LIBSWAP_CU(parts_.driver->cuEventRecord(timed.begin, parts_.streams->handle(stream)))) {
        std::lock_guard lock(mutex_);
        timed_.push_back(timed);
        return true;
    }
    spare_.give_back(timed.begin);
    spare_.give_back(timed.end);
    return false;
}

void OperationTimes::end_events(StreamIndex stream, std::uint64_t serial) {
    CUevent event = nullptr;
    {
        std::lock_guard lock(mutex_);
        for (auto timed = timed_.rbegin(); timed != timed_.rend(); ++timed)
            if (timed->serial == serial) {
                event = timed->end;
                break;
            }
    }
    const bool recorded =
        event &&
        LIBSWAP_CU(parts_.driver->cuEventRecord(event, parts_.streams->handle(stream))).has_value();
    std::lock_guard lock(mutex_);
    for (auto timed = timed_.rbegin(); timed != timed_.rend(); ++timed)
        if (timed->serial == serial) {
            timed->ended = recorded;
            // Never recorded, it would query as complete: the entry is dropped at its turn.
            if (!recorded) timed->serial = UINT64_MAX;
            break;
        }
}

bool OperationTimes::collect_events(std::vector<OperationTime>* out) {
    for (;;) {
        Timed oldest;
        {
            std::lock_guard lock(mutex_);
            if (timed_.empty()) return false;
            oldest = timed_.front();
        }
        if (!oldest.ended && oldest.serial != UINT64_MAX) return true;
        if (oldest.ended) {
            if (parts_.driver->cuEventQuery(oldest.end) == CUDA_ERROR_NOT_READY) return true;
            float ms = 0;
            if (parts_.driver->cuEventElapsedTime(&ms, oldest.begin, oldest.end) == CUDA_SUCCESS)
                out->push_back({oldest.serial, 0, static_cast<std::uint64_t>(double{ms} * 1e6)});
        }
        {
            std::lock_guard lock(mutex_);
            timed_.pop_front();
        }
        spare_.give_back(oldest.begin);
        spare_.give_back(oldest.end);
    }
}

bool OperationTimes::collect(bool hurry, std::vector<OperationTime>* out) {
    const bool events = collect_events(out);
    return KernelTimes::instance().collect(parts_.device, hurry, out) || events;
}

void OperationTimes::stop(bool context_gone) {
    end_learning();
    std::deque<Timed> timed;
    {
        std::lock_guard lock(mutex_);
        timed.swap(timed_);
    }
    for (const Timed& one : timed) {
        spare_.give_back(one.begin);
        spare_.give_back(one.end);
    }
    spare_.close(context_gone);
}

}  // namespace libswap
