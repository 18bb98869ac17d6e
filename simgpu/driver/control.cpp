// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The simgpu* functions, and what is read from the environment before the first call.

#include <cstdlib>

#include "simgpu/driver/calls.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/host_kernels.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/program_ranges.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// At load, since even the first call can be told to fail.
__attribute__((constructor)) void read_faults() {
    const char* faults = std::getenv("SIMGPU_FAULTS");
    if (faults != nullptr && !simgpu::driver::set_faults(faults)) {
        simgpu::driver::say("SIMGPU_FAULTS=\"{}\" does not parse (NAME:N=CODE,...), ignored",
                            faults);
    }
}

}  // namespace

SIMGPU_EXPORT int simgpuHostKernelRegister(const char* kernel_name, SimgpuHostKernel fn) {
    if (kernel_name == nullptr) return 1;
    simgpu::driver::register_host_kernel(kernel_name, {fn, false});
    return 0;
}

SIMGPU_EXPORT int simgpuHostKernelRegisterWithoutData(const char* kernel_name,
                                                      SimgpuHostKernel fn) {
    if (kernel_name == nullptr) return 1;
    simgpu::driver::register_host_kernel(kernel_name, {fn, true});
    return 0;
}

SIMGPU_EXPORT int simgpuFaultSet(const char* spec) {
    return simgpu::driver::set_faults(spec != nullptr ? spec : "") ? 0 : 1;
}

SIMGPU_EXPORT int simgpuDelaySet(const char* spec) {
    if (!simgpu::driver::initialised()) return 1;
    std::string error;
    return simgpu::driver::machine().set_delays(spec != nullptr ? spec : "", &error) ? 0 : 1;
}

SIMGPU_EXPORT uint64_t simgpuCallCount(const char* name) {
    return name != nullptr ? simgpu::driver::call_count(name) : 0;
}

SIMGPU_EXPORT void simgpuResetCounts(void) { simgpu::driver::reset_counts(); }

SIMGPU_EXPORT uint64_t simgpuWriteCount(uint64_t va) {
    return simgpu::driver::initialised() ? simgpu::driver::machine().memory().write_count(va) : 0;
}

SIMGPU_EXPORT uint64_t simgpuClockNs(void) {
    return simgpu::driver::initialised() ? simgpu::driver::machine().now_ns() : 0;
}

SIMGPU_EXPORT void simgpuAllocationNote(uint64_t va, size_t bytes) {
    simgpu::driver::note_program_range(va, bytes);
}
