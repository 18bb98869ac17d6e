// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
//   the driver's calls --------> Session::on_call ------> the subscriber's callback
//   operations that end -------> Session::on_operation       |
//                                     |                      v
//                                     +--> Buffers --> the client's buffers (flush, or many)
//
// Times are those of the simulated clock, set off so that a session begins at the real time:
// profilers drop what lies outside of their window.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

#include "simgpu/cupti/abi.hpp"
#include "simgpu/cupti/buffers.hpp"
#include "simgpu/cupti/driver.hpp"

namespace simgpu::cupti {

inline constexpr std::uint32_t kMostCalls = 1024;  ///< above every cbid

/// Number of a driver call, 0 for those that are not told. Its name, null for numbers without.
std::uint32_t call_number(const char* name);
const char* call_name(std::uint32_t number);

/// All that CUPTI has in a process. @thread any
class Session {
  public:
    static Session& instance();

    Result enable(std::uint32_t kind, bool on);
    Result enable_call(std::uint32_t number, bool on);
    Result set_client(BufferRequested requested, BufferCompleted completed);
    Result flush();
    std::size_t take_dropped() { return buffers_.take_dropped(); }
    Result set_timestamp(Timestamp timestamp);
    std::uint64_t timestamp();

    Result push_external(std::uint32_t kind, std::uint64_t id);
    Result pop_external(std::uint32_t kind, std::uint64_t* last);

    Result subscribe(void** subscriber, Callback callback, void* userdata);
    Result unsubscribe(void* subscriber);
    Result enable_callback(void* subscriber, std::uint32_t domain, std::uint32_t number, bool on);
    Result enable_domain(void* subscriber, std::uint32_t domain, bool on);

    /// Everything as if CUPTI had never been called.
    void finalize();

    void on_operation(const SimgpuOperation& operation);
    void on_call(bool at_exit, const char* name, std::uint32_t correlation, int result);

  private:
    void listen();  ///< as much as is enabled; under mutex_
    /// Something is recorded.
    bool records() const;
    bool listens() const;
    /// A moment of the simulated clock, and of the clock of records.
    struct Moment {
        std::uint64_t simulated_ns = 0;
        std::uint64_t recorded = 0;
        double rate = 1;  ///< of the second per nanosecond of the first
        std::uint64_t of(std::uint64_t simulated_ns) const;
    };
    Moment moment(std::uint64_t simulated_ns) const;
    const char* kept(const char* name);
    template <typename Record>
    Record record_of(std::uint32_t kind, const SimgpuOperation& operation) const;
    void add_kernel(const SimgpuOperation& operation);
    void add_copy(const SimgpuOperation& operation);
    void add_memset(const SimgpuOperation& operation);
    void add_call(std::uint32_t number, std::uint32_t correlation, std::uint64_t start_ns,
                  int result);

    std::mutex mutex_;
    std::array<std::atomic<bool>, kKindCount> kinds_{};
    std::atomic<bool> recording_{false};  ///< records(), for each call
    std::array<std::atomic<bool>, kMostCalls> calls_{};
    std::array<std::atomic<bool>, kMostCalls> callbacks_{};
    std::atomic<bool> domain_{false};
    std::atomic<Callback> callback_{nullptr};
    std::atomic<void*> userdata_{nullptr};
    std::atomic<Timestamp> source_{nullptr};  ///< the client's clock
    std::atomic<std::uint64_t> source_began_{0}, source_began_ns_{0};
    std::atomic<std::uint64_t> offset_ns_{0};
    std::atomic<int> listening_to_calls_{0};
    std::mutex names_mutex_;
    std::unordered_set<std::string> names_;  ///< records point at them, as long as there are any
    Buffers buffers_;
};

}  // namespace simgpu::cupti
