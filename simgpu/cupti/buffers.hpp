// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "simgpu/cupti/abi.hpp"

namespace simgpu::cupti {

/// Size of a record of this kind; 0 for kinds that none is made of.
std::size_t record_bytes(std::uint32_t kind);

/// Records on their way to the client: kept as they come, and copied into the client's buffers when
/// it asks for them, or on a thread of our own when there are many. The first buffer is asked for
/// as soon as there may be records, as the real library does: PyTorch flushes only what it gave.
/// The client's functions are called with no lock held.
class Buffers {
  public:
    /// @thread any, except where it says otherwise
    void set_client(BufferRequested requested, BufferCompleted completed);
    bool has_client();

    template <typename Record>
    void add(const Record& record) {
        static_assert(sizeof(Record) % 8 == 0);
        add_bytes(&record, sizeof record);
    }
    /// Has a buffer of the client's ready. On a thread that makes a call of the driver's.
    void ask_ahead();
    /// Gives all that is there to the client. Not for a client's function.
    void deliver();
    std::size_t take_dropped();

    /// Ends the thread; what was not delivered is gone, and the client too.
    void stop();

  private:
    /// Of the client's.
    struct Buffer {
        std::uint8_t* data = nullptr;
        std::size_t bytes = 0;
        std::size_t most_records = 0;  ///< 0: as many as fit
    };
    void add_bytes(const void* record, std::size_t bytes);
    void run();
    void give_back_ahead();
    std::size_t deliver_one(const std::vector<std::byte>& records, std::size_t from);

    std::mutex mutex_;
    std::condition_variable many_;
    std::vector<std::byte> pending_;
    std::size_t dropped_ = 0;
    BufferRequested requested_ = nullptr;
    BufferCompleted completed_ = nullptr;
    Buffer ahead_;         ///< asked for, not yet filled
    bool asking_ = false;  ///< for it
    std::thread thread_;
    bool stopping_ = false;
    std::mutex delivery_;  ///< one delivery at a time, so that records stay in order
};

}  // namespace simgpu::cupti
