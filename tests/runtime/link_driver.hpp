// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Two streams on whose clocks copies end when a test says so, and events that tell the time.
#pragma once

#include <cuda.h>

#include <limits>
#include <map>

#include "runtime/copy_times.hpp"

namespace libswap::testing {

class LinkDriver {
  public:
    LinkDriver() {
        g_driver = this;
        table.cuEventCreate = [](CUevent* event, unsigned flags) {
            if ((flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_VALUE;
            if (g_driver->fails) return CUDA_ERROR_OUT_OF_MEMORY;
            *event = reinterpret_cast<CUevent>(++g_driver->last_event_);
            g_driver->recorded_us_[*event] = std::numeric_limits<double>::quiet_NaN();
            return CUDA_SUCCESS;
        };
        table.cuEventDestroy_v2 = [](CUevent event) {
            return g_driver->recorded_us_.erase(event) == 1 ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_HANDLE;
        };
        table.cuEventRecord = [](CUevent event, CUstream stream) {
            if (g_driver->fails) return CUDA_ERROR_UNKNOWN;
            g_driver->recorded_us_.at(event) = g_driver->now_us(stream);
            ++g_driver->records;
            return CUDA_SUCCESS;
        };
        table.cuEventQuery = [](CUevent event) {
            return g_driver->recorded_us_.at(event) <= g_driver->done_until_us
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_NOT_READY;
        };
        table.cuEventElapsedTime_v2 = [](float* ms, CUevent begin, CUevent end) {
            const double us = g_driver->recorded_us_.at(end) - g_driver->recorded_us_.at(begin);
            *ms = static_cast<float>(us / 1000);
            return CUDA_SUCCESS;
        };
    }

    static CUstream stream(cost::Direction direction) {
        return reinterpret_cast<CUstream>(direction == cost::Direction::ToHost ? 1 : 2);
    }
    double& now_us(CUstream stream) { return now_us_[stream]; }
    double& now_us(cost::Direction direction) { return now_us_[stream(direction)]; }
    std::size_t events() const { return recorded_us_.size(); }

    /// A copy of two messages of `bytes` that takes `us` from `begin_us` on, or from the end of the
    /// one before. Whether it was timed.
    bool copy(CopyTimes& times, cost::Direction direction, std::uint64_t bytes, double us,
              double begin_us = 0) {
        double& now = now_us(direction);
        now = std::max(now, begin_us);
        const bool timed = times.begin(direction);
        now += us;
        if (timed) times.end(bytes, 2);
        return timed;
    }

    Driver table{};
    double done_until_us = std::numeric_limits<double>::infinity();
    bool fails = false;
    std::uint64_t records = 0;

  private:
    static inline LinkDriver* g_driver = nullptr;
    std::uintptr_t last_event_ = 0;
    std::map<CUevent, double> recorded_us_;
    std::map<CUstream, double> now_us_;
};

/// 5 us to begin, 1 us between messages, 20 GB/s, 10 where both move.
inline cost::LinkModel link_of_tests() {
    cost::LinkModel link;
    link.to_host = {.latency_us = 3, .overhead_us = 1, .gap_us = 1, .gbps = 20};
    link.to_device = link.to_host;
    link.to_host_duplex_gbps = link.to_device_duplex_gbps = 10;
    return link;
}

}  // namespace libswap::testing
