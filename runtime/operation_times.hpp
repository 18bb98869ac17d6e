// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How long the program's operations take on the device: by CUPTI while a program's iteration is
// learnt and nobody else uses it, else by one event before an operation and one behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "runtime/kernel_times.hpp"
#include "runtime/spare_events.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

/// @thread any, except as said
class OperationTimes {
  public:
    struct Parts {
        const Driver* driver = nullptr;
        const StreamTable* streams = nullptr;
        int device = 0;
        CuptiUse cupti = CuptiUse::Auto;
    };
    /// How one operation is timed.
    enum class How : std::uint8_t { None, Events, Cupti };

    explicit OperationTimes(const Parts& parts) : parts_(parts), spare_(*parts.driver) {}

    /// Around an operation. `learning`: CUPTI may be asked; the first time, it is started. By
    /// events only operations of a known stream are timed.
    How begin(StreamIndex stream, std::uint64_t serial, bool learning);
    void end(How how, StreamIndex stream, std::uint64_t serial);
    /// CUPTI is needed no more: it goes once what is under way has come.
    void end_learning() noexcept;

    /// Adds what has come since. `hurry`: also what CUPTI would rather keep until more has come.
    /// True while more may come. Queries events. @thread the worker
    bool collect(bool hurry, std::vector<OperationTime>* out);
    /// Nothing more is wanted. Events are destroyed unless the context is gone.
    void stop(bool context_gone);

  private:
    struct Timed {
        CUevent begin = nullptr;
        CUevent end = nullptr;
        std::uint64_t serial = 0;
        bool ended = false;
    };
    bool begin_events(StreamIndex stream, std::uint64_t serial);
    void end_events(StreamIndex stream, std::uint64_t serial);
    bool collect_events(std::vector<OperationTime>* out);

    const Parts parts_;
    std::atomic<bool> cupti_asked_{false};
    std::atomic<bool> learns_by_cupti_{false};  ///< acquired, not yet released

    std::mutex mutex_;
    std::deque<Timed> timed_;  ///< under mutex_
    SpareEvents spare_;
};

}  // namespace libswap
