// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>

namespace simgpu {

struct Op;

/// SIMGPU_TIMELINE=FILE: one line per operation that took time, when it is done: class, stream's
/// id, simulated ns of submission, readiness, start and end, bytes, kernel's name. Calls that cost
/// their thread time (VMM, pinning) are lines of class `call`, with the thread for the stream. For
/// a look at where a stream ran dry. Off, it costs one test per operation. Under the timeline's
/// lock.
class TimelineLog {
  public:
    TimelineLog();
    ~TimelineLog();
    TimelineLog(const TimelineLog&) = delete;
    TimelineLog& operator=(const TimelineLog&) = delete;

    void note(const Op& op) {
        if (file_ != nullptr) write(op);
    }

    void note_call(pid_t thread, std::uint64_t start_ns, std::uint64_t ns) {
        if (file_ != nullptr && ns != 0) write_call(thread, start_ns, ns);
    }

  private:
    void write_call(pid_t thread, std::uint64_t start_ns, std::uint64_t ns);
    void write(const Op& op);
    std::FILE* file_ = nullptr;
};

}  // namespace simgpu
