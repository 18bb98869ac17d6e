// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/device/access_set.hpp"
#include "simgpu/device/graph.hpp"
#include "simgpu/device/machine.hpp"
#include "simgpu/device/operation.hpp"

namespace simgpu {

struct ContextState;
struct HostThread;
struct StreamState;

/// One piece of work in a stream. All of it is covered by the timeline's lock, but what the work
/// itself uses while it runs.
struct Op {
    enum class Kind : std::uint8_t {
        Kernel,
        Memset,
        Copy,
        Function,
        Marker,  ///< Takes no time: event records and waits.
        WriteValue,
        WaitValue,
        Choice,  ///< Part of a graph whose body is known when it is reached.
    };

    Kind kind = Kind::Marker;
    OpClass op_class = OpClass::Other;
    std::shared_ptr<ContextState> context;
    std::shared_ptr<StreamState> stream;
    std::uint64_t sequence = 0;
    std::uint32_t correlation = 0;  ///< Number of the call that submitted it, for profilers.

    unsigned unmet = 0;  ///< Operations that must be done first.
    std::vector<std::shared_ptr<Op>> dependents;
    std::vector<HostThread*> waiters;

    bool done = false;
    bool work_done = false;       ///< The data has really moved.
    bool end_reached = false;     ///< The clock stands at the modelled end, and waits for the work.
    std::uint64_t submit_ns = 0;  ///< Simulated time of the thread that submitted it.
    std::uint64_t ready_ns = 0, start_ns = 0, end_ns = 0;
    std::uint64_t delay_ns = 0;
    std::uint64_t stood_ns = 0;    ///< Of a kernel: while those of higher priority ran.
    bool loses_page = false;       ///< A copy that is told to lose data.
    std::uint64_t latency_ns = 0;  ///< Of a marker: that of a graph's launch.
    bool in_graph = false;         ///< Its launch was paid for with the graph's.
    Status status = CUDA_SUCCESS;

    KernelLaunch launch;
    CopyRequest copy;
    MemsetRequest memset;
    std::function<void(Status)> function;
    bool function_in_any_case = false;  ///< Called though the context has failed.
    bool pageable = false;
    std::vector<std::byte> staged;  ///< Source bytes of a small copy from pageable memory.
    std::uint64_t va = 0, value = 0;
    unsigned value_bytes = 4;
    WaitCompare compare = WaitCompare::GreaterEqual;

    std::function<const std::vector<GraphStep>*()> next;  ///< Of a choice.
    std::shared_ptr<Op> resumes;  ///< The choice to go on with when this one is done.

    std::unique_ptr<AccessSet> access;
    KernelOutcome outcome;

    std::uint64_t bytes() const;
};

struct StreamState {
    std::shared_ptr<ContextState> context;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t id = 0;
    bool legacy = false;
    std::shared_ptr<Op> last;  ///< The youngest operation, unless done.

    bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct EventState {
    std::shared_ptr<ContextState> context;
    unsigned flags = 0;
    std::shared_ptr<Op> record;  ///< The latest, nullptr when never recorded.
};

struct ContextState {
    Machine* machine = nullptr;
    Context* context = nullptr;
    std::shared_ptr<Timeline> timeline;
    int device = 0;
    Status error = CUDA_SUCCESS;
    std::string error_detail;
    std::vector<std::weak_ptr<StreamState>> streams;
    std::shared_ptr<StreamState> legacy;
};

/// Whether `va` is host memory that no device may use.
bool is_pageable(const Memory& memory, std::uint64_t va);

/// What the data work of `op` is; run without the timeline's lock. Sets status, outcome.
void run_data_work(Op& op);

}  // namespace simgpu
