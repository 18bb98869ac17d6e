// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

struct Op;

/// Told of every operation that took time, when it is done, under the timeline's lock: an observer
/// only takes notes. None: one load per operation.
using OperationObserver = void (*)(const Op& op);
inline std::atomic<OperationObserver> g_operation_observer{nullptr};

/// Number of the call that the calling thread is in, which what it submits bears; 0: none is asked
/// for, or it is a thread of ours.
inline thread_local std::uint32_t t_current_call = 0;

}  // namespace simgpu
