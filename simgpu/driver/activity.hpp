// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>

#include "simgpu/driver/activity.h"
#include "simgpu/driver/api_table.hpp"

namespace simgpu::driver {

inline std::atomic<SimgpuCallListener> g_call_listener{nullptr};

/// Tells a profiler of a call, and gives what it submits the call's number.
int tell_call(SimgpuCallListener listener, Api api, int (*body)(void*), void* data);

/// Runs a call's body; where a profiler listens, it is told before and after.
template <typename Body>
auto told(Api api, Body&& body) {
    using Result = decltype(body());
    const SimgpuCallListener listener = g_call_listener.load(std::memory_order_acquire);
    if (listener == nullptr) return body();
    return static_cast<Result>(tell_call(
        listener, api, [](void* data) { return static_cast<int>((*static_cast<Body*>(data))()); },
        &body));
}

}  // namespace simgpu::driver
