// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "simgpu/device/operation.hpp"

namespace simgpu {

class Context;
class Event;
struct Op;

/// One node of a graph as the device runs it. Which of the fields count is the kind's to say.
struct GraphStep {
    enum class Kind : std::uint8_t {
        Empty,
        Kernel,
        Copy,
        Memset,
        Function,
        Record,  ///< `event` stands for what this step is behind, from the launch on.
        Wait,    ///< For what `event` stands for at the launch.
        WriteValue,
        WaitValue,
        Choice,  ///< Runs what `next` returns, again and again until that is nothing.
    };

    Kind kind = Kind::Empty;
    Context* context = nullptr;
    std::vector<std::uint32_t> after;  ///< Steps before this one in the list.

    KernelLaunch launch;
    CopyRequest copy;
    MemsetRequest memset;
    std::function<void()> function;
    Event* event = nullptr;
    std::uint64_t va = 0, value = 0;
    unsigned value_bytes = 4;
    WaitCompare compare = WaitCompare::GreaterEqual;
    /// Called by the simulation when it gets here: short, and calls nothing of ours. The steps that
    /// it returns stay valid until the graph has run.
    std::function<const std::vector<GraphStep>*()> next;
};

/// A launch of a graph, for whoever must come after it.
struct GraphRun {
    std::shared_ptr<Op> end;
};

}  // namespace simgpu
