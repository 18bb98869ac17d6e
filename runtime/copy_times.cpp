// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/copy_times.hpp"

#include <algorithm>

namespace libswap {
namespace {

/// Of the time in which a copy's bytes move, the other direction is busy: less counts as alone,
/// what is left of it as busy.
constexpr double kHardly = 0.1;

}  // namespace

CopyTimes::CopyTimes(const Driver& driver, const cost::LinkModel& link)
    : driver_(driver), link_(link), planned_link_(link), spare_(driver) {
    timed_.reserve(kBurst);
    spans_.reserve(kBurst);
}

void CopyTimes::open(CUstream out, CUstream in) noexcept {
    streams_[index(cost::Direction::ToHost)] = out;
    streams_[index(cost::Direction::ToDevice)] = in;
}

void CopyTimes::give_back(Timed& timed) noexcept {
    spare_.give_back(timed.begin);
    spare_.give_back(timed.end);
    timed = {};
}

/// What is under way in either direction is over where its fence is.
bool CopyTimes::begin_burst() noexcept {
    for (std::size_t i = 0; i < fences_.size(); ++i) {
        if (!fences_[i]) fences_[i] = spare_.take();
        if (!fences_[i] || !LIBSWAP_CU(driver_.cuEventRecord(fences_[i], streams_[i])))
            return false;
    }
    others_followed_ = {};
    return true;
}

bool CopyTimes::begin(cost::Direction direction) noexcept {
    give_back(open_);  // a copy that failed between begin() and end()
    if (submitted_ >= kBurst + kPause && timed_.empty()) submitted_ = 0;
    if (submitted_ == 0 && !begin_burst()) submitted_ = kBurst;
    if (submitted_++ < kBurst) {
        open_ = {spare_.take(), spare_.take(), direction, 0, 0};
        if (open_.begin && open_.end &&
            LIBSWAP_CU(driver_.cuEventRecord(open_.begin, streams_[index(direction)])))
            return true;
        give_back(open_);
    }
    others_followed_[index(direction)] = true;
    return false;
}

void CopyTimes::end(std::uint64_t bytes, std::uint32_t messages) noexcept {
    open_.bytes = bytes;
    open_.messages = messages;
    if (LIBSWAP_CU(driver_.cuEventRecord(open_.end, streams_[index(open_.direction)]))) {
        timed_.push_back(open_);
        open_ = {};
        return;
    }
    others_followed_[index(open_.direction)] = true;
    give_back(open_);
}

/// All that was timed so far is done, and what came before the burst.
bool CopyTimes::is_over() const noexcept {
    const auto done = [&](CUevent event) {
        return driver_.cuEventQuery(event) != CUDA_ERROR_NOT_READY;
    };
    return std::all_of(fences_.begin(), fences_.end(), done) &&
           std::all_of(timed_.begin(), timed_.end(),
                       [&](const Timed& timed) { return done(timed.end); });
}

void CopyTimes::collect() noexcept {
    if (timed_.empty() || !is_over()) return;
    evaluate();
    for (Timed& timed : timed_) give_back(timed);
    timed_.clear();
}

/// Since the first fence; before it where it is below zero.
bool CopyTimes::measure(CUevent event, double* us) const noexcept {
    float ms = 0;
    if (driver_.cuEventElapsedTime(&ms, fences_[0], event) != CUDA_SUCCESS) return false;
    *us = 1e3 * double{ms};
    return true;
}

void CopyTimes::evaluate() noexcept {
    spans_.clear();
    for (std::size_t i = 0; i < fences_.size(); ++i)
        if (!measure(fences_[i], &fence_us_[i])) return;
    last_end_us_ = fence_us_;
    for (const Timed& timed : timed_) {
        cost::CopySpan span{timed.direction, 0, 0, timed.bytes, timed.messages};
        if (!measure(timed.begin, &span.begin_us) || !measure(timed.end, &span.end_us)) return;
        spans_.push_back(span);
        double& last = last_end_us_[index(span.direction)];
        last = std::max(last, span.end_us);
    }
    for (std::size_t i = 0; i < spans_.size(); ++i)
        if (is_known(spans_[i])) note(spans_[i], i);
    // Later copies of the burst, if any, begin behind all these.
}

/// No copy of the other direction that was not timed can have overlapped it.
bool CopyTimes::is_known(const cost::CopySpan& span) const noexcept {
    const std::size_t other = 1 - index(span.direction);
    return span.begin_us >= fence_us_[other] &&
           (!others_followed_[other] || span.end_us <= last_end_us_[other]);
}

void CopyTimes::note(const cost::CopySpan& span, std::size_t which) noexcept {
    const double us = span.end_us - span.begin_us;
    const cost::CopyForecast forecast = cost::forecast_copy(link_, spans_, which);
    const cost::CopyForecast of_plans = cost::forecast_copy(planned_link_, spans_, which);
    std::lock_guard lock(mutex_);
    Errors& errors = errors_[index(span.direction)];
    errors.all.add(forecast.us, us);
    errors.of_plans.add(of_plans.us, us);
    if (forecast.busy_share <= kHardly) errors.where[0].add(forecast.us, us);
    if (forecast.busy_share >= 1 - kHardly) errors.where[1].add(forecast.us, us);
}

void CopyTimes::plan_with(const cost::LinkModel& link) noexcept { planned_link_ = link; }

void CopyTimes::begin_anew(const cost::LinkModel& link) noexcept {
    link_ = planned_link_ = link;
    std::lock_guard lock(mutex_);
    errors_ = {};
}

void CopyTimes::close(bool context_gone) noexcept {
    give_back(open_);
    for (Timed& timed : timed_) give_back(timed);
    timed_.clear();
    for (CUevent& fence : fences_) {
        spare_.give_back(fence);
        fence = nullptr;
    }
    spare_.close(context_gone);
    submitted_ = 0;
}

ModelError CopyTimes::error(cost::Direction direction) const noexcept {
    std::lock_guard lock(mutex_);
    return errors_[index(direction)].all;
}

ModelError CopyTimes::error_of_plans(cost::Direction direction) const noexcept {
    std::lock_guard lock(mutex_);
    return errors_[index(direction)].of_plans;
}

ModelError CopyTimes::error_where(cost::Direction direction, bool other_busy) const noexcept {
    std::lock_guard lock(mutex_);
    return errors_[index(direction)].where[other_busy ? 1 : 0];
}

}  // namespace libswap
