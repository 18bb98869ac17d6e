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
        if (!cupti_asked_.exchange(true)) {
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
    Timed timed;
    timed.serial = serial;
    {
        std::lock_guard lock(mutex_);
        if (timed_.size() >= kMostOutstanding) return false;
        if (!spare_events_.empty()) {
            timed.begin = spare_events_.back();
            spare_events_.pop_back();
        }
        if (!spare_events_.empty()) {
            timed.end = spare_events_.back();
            spare_events_.pop_back();
        }
    }
    bool ready = true;
    for (CUevent* event : {&timed.begin, &timed.end})
        if (!*event && !LIBSWAP_CU(parts_.driver->cuEventCreate(event, CU_EVENT_DEFAULT)))
            ready = false;
    ready = ready &&
            LIBSWAP_CU(parts_.driver->cuEventRecord(timed.begin, parts_.streams->handle(stream)));
    std::lock_guard lock(mutex_);
    if (ready) {
        timed_.push_back(timed);
    } else {
        for (CUevent event : {timed.begin, timed.end})
            if (event) spare_events_.push_back(event);
    }
    return ready;
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
        std::lock_guard lock(mutex_);
        timed_.pop_front();
        spare_events_.push_back(oldest.begin);
        spare_events_.push_back(oldest.end);
    }
}

bool OperationTimes::collect(bool hurry, std::vector<OperationTime>* out) {
    const bool events = collect_events(out);
    return KernelTimes::instance().collect(parts_.device, hurry, out) || events;
}

void OperationTimes::stop(bool context_gone) {
    end_learning();
    std::lock_guard lock(mutex_);
    if (!context_gone) {
        for (const Timed& timed : timed_) {
            LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(timed.begin));
            LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(timed.end));
        }
        for (CUevent event : spare_events_) LIBSWAP_CU_IGNORE(parts_.driver->cuEventDestroy(event));
    }
    timed_.clear();
    spare_events_.clear();
}

}  // namespace libswap
