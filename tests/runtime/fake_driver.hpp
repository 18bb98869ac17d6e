// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A driver in one process for the engine's tests: real mappings (memfd pages, so that an access to
// what is not mapped ends the test), streams that run when they are pumped, and a fault at any
// call.

#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/driver.hpp"

namespace libswap::testing {

class FakeDriver {
  public:
    FakeDriver();
    ~FakeDriver();
    FakeDriver(const FakeDriver&) = delete;

    const Driver& table() const { return table_; }
    static CUcontext context() { return reinterpret_cast<CUcontext>(0x1000); }

    // What the device is.
    std::uint64_t device_bytes = std::uint64_t{1} << 30;
    std::uint64_t address_bytes = UINT64_MAX;  ///< that may be reserved
    std::map<int, int> attributes;
    int driver_version = 13000;
    bool host_numa = true;

    /// The `nth` call (from 1, counted from now) of `name` fails with `code`; with `onwards` all
    /// later ones too.
    void fail(const std::string& name, std::uint64_t nth, CUresult code, bool onwards = false);
    void clear_faults();
    std::uint64_t calls(const std::string& name);
    /// Names called so far, with counts.
    std::map<std::string, std::uint64_t> all_calls();

    /// Streams that are held run nothing.
    void hold(CUstream stream, bool on);
    /// Runs up to `count` operations of each stream that is not held.
    void pump(int count = 1 << 20);
    /// Each event query runs this many operations per stream first.
    int operations_per_query = 1;

    /// Work on a stream, as a launch or copy of the program.
    CUresult submit(CUstream stream, std::function<void()> work);
    CUstream make_stream();

    std::uint64_t device_used();
    std::uint64_t host_used();
    /// Kernels by name, for cuLaunchKernel: the work, given the parameters (of 8 bytes each).
    std::map<std::string, std::function<void(std::vector<std::uint64_t>)>> kernels;
    /// How many parameters a function has.
    std::map<std::string, int> param_counts;
    CUfunction function(const std::string& name);

    /// Driver calls made while a lock of ours was held.
    std::uint64_t calls_under_lock = 0;

  private:
    friend struct FakeCalls;
    struct Event {
        std::uint64_t recorded = 0;
        std::uint64_t completed = 0;
    };
    struct Item {
        std::function<void()> work;
        Event* record = nullptr;
        Event* wait = nullptr;
        std::uint64_t number = 0;
    };
    struct Stream {
        std::deque<Item> items;
        bool held = false;
    };
    struct Handle {
        int fd = -1;
        std::uint64_t bytes = 0;
        bool on_host = false;
        int mappings = 0;
        bool released = false;
    };
    struct Mapping {
        std::uint64_t bytes = 0;
        std::uint64_t handle = 0;
        bool granted = false;
    };
    struct Fault {
        std::uint64_t nth = 0;
        CUresult code = CUDA_SUCCESS;
        bool onwards = false;
    };

    CUresult enter(const char* name);
    bool run_one(Stream& stream);
    void drop(std::uint64_t handle);

    Driver table_{};
    std::recursive_mutex mutex_;
    std::map<std::string, std::uint64_t> calls_;
    std::multimap<std::string, Fault> faults_;
    std::map<CUstream, std::unique_ptr<Stream>> streams_;
    std::set<Event*> events_;
    std::uint64_t next_record_ = 1;
    std::map<std::uint64_t, Handle> handles_;
    std::uint64_t next_handle_ = 1;
    std::map<std::uint64_t, Mapping> mappings_;
    std::map<std::uint64_t, std::uint64_t> reservations_;
    std::map<std::uint64_t, std::uint64_t> plain_;
    std::map<std::string, std::unique_ptr<std::string>> functions_;
};

}  // namespace libswap::testing
