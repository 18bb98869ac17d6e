// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the program's own events order: a stream that waits for an event comes after what the event
// covered, and after all that this came after in turn. Each stream and event has a small clock: the
// last place per other stream that it is known to follow. Knowledge that does not fit is dropped;
// then "ordered" is answered no, which is always safe.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <tsl/robin_map.h>

#include "runtime/driver.hpp"
#include "runtime/ranked_mutex.hpp"
#include "runtime/stream_table.hpp"

namespace libswap {

/// Streams of one device. @thread any
class EventOrder {
  public:
    /// `event` was recorded on `stream`, whose last place before the call was `place`.
    void recorded(CUevent event, StreamIndex stream, std::uint64_t place);
    /// `stream` was made to wait for `event`; for one that was never recorded that means nothing.
    void waited(StreamIndex stream, CUevent event);
    /// The event is destroyed, or was recorded where we cannot follow (a capture).
    void forget(CUevent event) noexcept;

    /// All that is submitted to `stream` from now on runs after this use, by the program's own
    /// doing. No driver call.
    bool ordered(Use use, StreamIndex stream) noexcept;

  private:
    static constexpr std::size_t kWidth = 8;
    struct Clock {
        std::array<std::uint64_t, kWidth> uses{};  ///< Use::raw, the latest per stream; 0: unused

        void follow(Use use) noexcept;
        bool follows(Use use) const noexcept;
    };

    Clock& clock_of(StreamIndex stream);

    RankedMutex<LockRank::EventOrder> mutex_;
    tsl::robin_map<CUevent, Clock> events_;
    std::vector<Clock> streams_;  ///< by index
};

}  // namespace libswap
