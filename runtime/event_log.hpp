// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The trace dump (LIBSWAP_TRACE): what was seen and done, as JSON lines (docs/trace-format.md).
//
// Producers put fixed-size records into a lock-free queue and never wait: when it is full they
// count what they drop. One background thread writes. A fork's child has no such thread and logs
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "cost/iteration.hpp"

namespace libswap {

/// What the header line says about where the log was taken.
struct EventLogHeader {
    std::string libswap_version;
    std::string device_name;
    std::uint64_t device_bytes = 0;
    std::uint64_t budget_bytes = 0;
    std::uint64_t host_limit_bytes = 0;
    int driver_version = 0;
};

enum class OpKind : std::uint8_t { Launch, Copy, Memset, Graph };
enum class MoveKind : std::uint8_t {
    EvictCopied,  ///< copied to the host, released
    EvictClean,   ///< released without a copy: the host's was good
    CopyAhead,    ///< copied to the host, kept
    Fetch,
};

/// An operation as it is issued.
struct OpEvent {
    std::uint64_t serial = 0;  ///< Step::serial
    OpKind kind = OpKind::Launch;
    std::uint32_t name = 0;  ///< from EventLog::name
    std::uint32_t stream = 0;
    std::uint64_t signature = 0;
    std::uint64_t workspace_bytes = 0;
    bool explained = true;  ///< all of its pointers were followed
};

/// Created once; all entries may be called from any thread, take no lock and allocate nothing,
/// except name() and, once per thread, the first call.
/// @thread any
class EventLog {
  public:
    /// Creates the file and writes the header. The error is one line for the user.
    static tl::expected<std::unique_ptr<EventLog>, std::string> open(const std::string& path,
                                                                     const EventLogHeader& header,
                                                                     std::size_t capacity = 1
                                                                                            << 16);
    ~EventLog();
    EventLog(const EventLog&) = delete;
    EventLog& operator=(const EventLog&) = delete;

    /// A number for a text (a kernel's name, a reason), the same for the same text. Takes a lock.
    std::uint32_t name(std::string_view text);

    void alloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t asked_bytes);
    void free(std::uint64_t block);
    void op(const OpEvent& event, std::span<const cost::TracedOperand> operands);
    /// Device time of an operation, in the log's clock or any other of the device.
    void op_time(std::uint64_t serial, std::uint64_t start_ns, std::uint64_t end_ns);
    /// A finished transfer. `after_serial`: the operation it was due after, or of the launch that
    /// asked. Times are now_ns()'s (clock.hpp).
    void move(MoveKind kind, std::uint64_t block, std::uint64_t bytes, std::uint64_t after_serial,
              std::uint64_t start_ns, std::uint64_t end_ns);
    /// The host waited before issuing an operation.
    void stall(std::uint64_t serial, std::uint64_t waited_ns, std::uint32_t reason_name);
    /// A loop of `period` operations was found, the last of them `serial`.
    void iteration(std::uint64_t serial, std::uint32_t loop, std::uint64_t period);
    void plan(std::uint32_t loop, std::uint64_t predicted_us, std::uint64_t compute_us,
              std::uint64_t actions);
    /// How far a model was from `count` measurements on a device (ModelError), its name by name().
    void model(std::uint32_t name, int device, std::uint64_t count, double mean_percent,
               double ratio);
    /// Anything worth a line: text by name().
    void note(std::uint32_t text_name);

    /// Records that did not fit the queue.
    std::uint64_t dropped() const;
    /// Writes all that is queued and the last line, and ends the thread. Later events are ignored.
    void close();

  private:
    class Impl;
    explicit EventLog(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace libswap
