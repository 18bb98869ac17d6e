// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/activity.hpp"

#include <cuda.h>

#include "simgpu/device/activity.hpp"
#include "simgpu/device/op.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {

namespace {

std::atomic<std::uint32_t> g_calls{0};
std::atomic<SimgpuOperationListener> g_operation_listener{nullptr};

/// The memory at both ends of a copy.
void describe_copy(const Op& op, SimgpuOperation& out) {
    const int host = op.pageable ? SimgpuPageable : SimgpuPinned;
    const bool from_device = op.op_class == OpClass::D2d || op.op_class == OpClass::D2h;
    const bool to_device = op.op_class == OpClass::D2d || op.op_class == OpClass::H2d;
    out.from = from_device ? SimgpuDevice : host;
    out.to = to_device ? SimgpuDevice : host;
}

void describe_geometry(const KernelCall& call, SimgpuOperation& out) {
    out.dynamic_shared_bytes = call.geometry.dynamic_shared_bytes;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        out.grid[axis] = call.geometry.grid[axis];
        out.block[axis] = call.geometry.block[axis];
    }
}

void tell_operation(const Op& op) {
    const SimgpuOperationListener listener = g_operation_listener.load(std::memory_order_acquire);
    if (listener == nullptr || op.status != CUDA_SUCCESS || op.stream == nullptr) return;
    SimgpuOperation out{};
    switch (op.kind) {
        case Op::Kind::Kernel:
            out.kind = SimgpuKernel;
            out.name = op.launch.name.c_str();
            if (const KernelCall* call = call_of(op.launch)) describe_geometry(*call, out);
            break;
        case Op::Kind::Copy:
            out.kind = SimgpuCopy;
            describe_copy(op, out);
            break;
        case Op::Kind::Memset:
            out.kind = SimgpuMemset;
            out.value = op.memset.value;
            break;
        default:
            return;
    }
    out.correlation = op.correlation;
    out.device = static_cast<std::uint32_t>(op.context->device);
    out.context = out.device + 1;
    out.stream = static_cast<std::uint32_t>(op.stream->id);
    out.start_ns = op.start_ns;
    out.end_ns = op.end_ns;
    out.bytes = op.bytes();
    out.in_graph = op.in_graph ? 1 : 0;
    listener(&out);
}

}  // namespace

int tell_call(SimgpuCallListener listener, Api api, int (*body)(void*), void* data) {
    // Calls from a call's own work, host functions for instance, are part of it.
    if (t_current_call != 0) return body(data);
    const char* name = api_rows()[static_cast<std::size_t>(api)].symbol.data();
    const std::uint32_t number = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
    t_current_call = number;
    listener(0, name, number, 0);
    const int result = body(data);
    t_current_call = 0;
    listener(1, name, number, result);
    return result;
}

}  // namespace simgpu::driver

extern "C" __attribute__((visibility("default"))) void simgpuListen(
    SimgpuOperationListener operations, SimgpuCallListener calls) {
    using namespace simgpu;
    driver::g_operation_listener.store(operations, std::memory_order_release);
    driver::g_call_listener.store(calls, std::memory_order_release);
    g_operation_observer.store(operations != nullptr ? driver::tell_operation : nullptr,
                               std::memory_order_release);
}
