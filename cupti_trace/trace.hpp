// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Times of what a process's calls submit, by CUPTI's Activity API.
//
//   enter(tag) --> [launch, copy or memset] --> leave()      the program's threads
//                        |
//                        v  the call's record bears a correlation id; CUPTI puts a record in
//                           front of it that ties the tag to that id
//   collect() <-- buffers <-- records of kernels, copies and memsets, by correlation id
//
// CUPTI has one set of buffer functions in a process, so there is at most one Trace. Its callback
// functions are not used: only whether somebody else has them is asked, once. CUPTI does not say
// who has its buffers: whoever hears of another user, before that one's first call, calls
// hand_over().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace libswap::cupti {

/// What a tagged call submitted: from the first operation's start to the last one's end.
struct TaggedTime {
    std::uint64_t tag = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
};

class Trace {
  public:
    /// Loads CUPTI, so not for a thread that holds a lock. Null: *why says why not. Nothing in the
    /// process may look as if it used CUPTI, unless `beside_others`.
    static std::unique_ptr<Trace> open(bool beside_others, std::string* why);
    /// Begins to record. False: *why says why not; nobody else may have CUPTI's callbacks.
    bool begin(std::string* why);
    /// Ends what stop() has not.
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// Around a call. @thread any
    void enter(std::uint64_t tag) noexcept;
    void leave() noexcept;

    /// What has come since. `all`: also what CUPTI would rather keep until more has come.
    /// Allocates. @thread one at a time
    std::vector<TaggedTime> collect(bool all);

    /// No more is recorded; what is under way still comes by collect(). @thread any
    void disable() noexcept;
    /// Takes CUPTI out of the process. After disable(), once all tagged work is done. @thread any,
    /// inside a call of the driver's or the runtime's
    void stop() noexcept;
    /// Somebody else is about to use CUPTI: nothing of ours is left in it, and it stays. What it
    /// has recorded for us is lost. @thread any; not beside collect() and stop()
    void hand_over() noexcept;

  private:
    class Impl;
    explicit Trace(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace libswap::cupti
