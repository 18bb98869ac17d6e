// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "simgpu/device/shared_usage.hpp"
#include "simgpu/driver/calls.hpp"
#include "simgpu/driver/environment.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/version.hpp"
#include "simgpu/driver/visible_devices.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::driver {
namespace {

/// Leaked: closing the file would end the locks by which this process holds memory.
const DeviceFacts& facts() {
    static const auto* const kFacts = new DeviceFacts(device_facts());
    return *kFacts;
}

/// Null where this process does not see the device, or has not initialised.
const Gpu* own_gpu(int number) {
    if (!initialised() || forked()) return nullptr;
    for (int ordinal = 0; ordinal < gpu_count(); ++ordinal)
        if (gpu_at(ordinal)->number == number) return gpu_at(ordinal);
    return nullptr;
}

void add_process(SimgpuDeviceState* state, std::uint32_t pid, std::uint64_t bytes) {
    state->used_bytes += bytes;
    if (bytes != 0 && state->process_count < SimgpuMostProcesses)
        state->processes[state->process_count++] = {pid, bytes};
}

void add_own(SimgpuDeviceState* state, const Gpu& gpu) {
    add_process(state, static_cast<std::uint32_t>(getpid()),
                machine().memory().usage(gpu.ordinal).used);
    const std::uint64_t now_ns = std::max<std::uint64_t>(machine().now_ns(), 1);
    const std::uint64_t busy_ns = machine().statistics(OpClass::Kernel).busy_ns;
    state->busy_percent =
        static_cast<std::uint32_t>(std::min(100 * busy_ns / now_ns, std::uint64_t{100}));
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_EXPORT int simgpuDeviceCount(void) { return simgpu::driver::facts().count; }

SIMGPU_EXPORT int simgpuDriverVersion(void) { return simgpu::driver::kDriverVersion; }

SIMGPU_EXPORT int simgpuDeviceState(int number, SimgpuDeviceState* state) {
    using namespace simgpu::driver;
    const DeviceFacts& known = facts();
    if (state == nullptr || number < 0 || number >= known.count) return 1;
    *state = {};
    std::snprintf(state->name, sizeof state->name, "%s", known.profile.device_name.c_str());
    std::snprintf(state->uuid, sizeof state->uuid, "%s", uuid_text(uuid_of(number)).c_str());
    state->bus = static_cast<std::uint32_t>(number) + 1;
    state->total_bytes = known.memory_bytes;
    state->clock_mhz = static_cast<std::uint32_t>(known.profile.clock_khz / 1000);
    if (const Gpu* const own = own_gpu(number)) add_own(state, *own);
    if (known.shared)
        for (const auto& process : known.shared->processes(number))
            add_process(state, process.pid, process.bytes);
    return 0;
}
