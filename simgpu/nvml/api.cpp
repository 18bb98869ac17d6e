// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A device's handle is its number plus one.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "simgpu/nvml/abi.hpp"
#include "simgpu/nvml/driver.hpp"

#define NVML_CALL(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define NVML_TRY(expression)                                              \
    do {                                                                  \
        if (const int code = (expression); code != kSuccess) return code; \
    } while (false)

using namespace simgpu::nvml;

using Handle = void*;

namespace {

std::atomic<int> g_users{0};

int check() { return g_users.load() > 0 ? kSuccess : kUninitialized; }

Handle handle_of(int number) {
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number) + 1);
}

int number_of(Handle device) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

int look(Handle device, SimgpuDeviceState* state) {
    NVML_TRY(check());
    return driver_side().device_state(number_of(device), state) == 0 ? kSuccess : kInvalidArgument;
}

int copy_text(char* out, unsigned capacity, const char* text) {
    if (out == nullptr) return kInvalidArgument;
    if (capacity < std::strlen(text) + 1) return kInsufficientSize;
    std::strcpy(out, text);
    return kSuccess;
}

/// The first device that `is` what is looked for.
template <typename Is>
int find(Handle* out, Is&& is) {
    NVML_TRY(check());
    if (out == nullptr) return kInvalidArgument;
    for (int number = 0; number < driver_side().device_count(); ++number) {
        SimgpuDeviceState state;
        NVML_TRY(look(handle_of(number), &state));
        if (!is(state)) continue;
        *out = handle_of(number);
        return kSuccess;
    }
    return kNotFound;
}

/// `fill` an entry of the program's list with each process.
template <typename Process, typename Fill>
int list_processes(Handle device, unsigned* count, Process* out, Fill&& fill) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (count == nullptr) return kInvalidArgument;
    const unsigned room = out == nullptr ? 0 : *count;
    *count = state.process_count;
    if (room < state.process_count) return kInsufficientSize;
    for (unsigned i = 0; i < state.process_count; ++i) out[i] = fill(state.processes[i]);
    return kSuccess;
}

ProcessV2 process_v2(const SimgpuProcess& process) {
    return {process.pid, process.bytes, kNoInstance, kNoInstance};
}

int initialise() {
    if (!driver_side()) return kDriverNotLoaded;
    ++g_users;
    return kSuccess;
}

}  // namespace

NVML_CALL(nvmlInit) { return initialise(); }
NVML_CALL(nvmlInit_v2) { return initialise(); }
NVML_CALL(nvmlInitWithFlags, unsigned) { return initialise(); }

NVML_CALL(nvmlShutdown) {
    NVML_TRY(check());
    --g_users;
    return kSuccess;
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int code) {
    switch (code) {
        case kSuccess:
            return "Success";
        case kUninitialized:
            return "Not initialised";
        case kInvalidArgument:
            return "Invalid argument";
        case kNotSupported:
            return "Not supported";
        case kNotFound:
            return "Not found";
        case kInsufficientSize:
            return "Insufficient size";
        case kDriverNotLoaded:
            return "Driver not loaded";
        case kArgumentVersionMismatch:
            return "Argument version mismatch";
        default:
            return "Unknown error";
    }
}

NVML_CALL(nvmlSystemGetDriverVersion, char* out, unsigned capacity) {
    NVML_TRY(check());
    return copy_text(out, capacity, "580.00");
}

NVML_CALL(nvmlSystemGetCudaDriverVersion, int* out) {
    if (out == nullptr) return kInvalidArgument;
    if (!driver_side()) return kDriverNotLoaded;
    *out = driver_side().driver_version();
    return kSuccess;
}
NVML_CALL(nvmlSystemGetCudaDriverVersion_v2, int* out) {
    return nvmlSystemGetCudaDriverVersion(out);
}

NVML_CALL(nvmlDeviceGetCount_v2, unsigned* out) {
    NVML_TRY(check());
    if (out == nullptr) return kInvalidArgument;
    *out = static_cast<unsigned>(driver_side().device_count());
    return kSuccess;
}
NVML_CALL(nvmlDeviceGetCount, unsigned* out) { return nvmlDeviceGetCount_v2(out); }

NVML_CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, Handle* out) {
    NVML_TRY(check());
    if (out == nullptr || index >= static_cast<unsigned>(driver_side().device_count()))
        return kInvalidArgument;
    *out = handle_of(static_cast<int>(index));
    return kSuccess;
}
NVML_CALL(nvmlDeviceGetHandleByIndex, unsigned index, Handle* out) {
    return nvmlDeviceGetHandleByIndex_v2(index, out);
}

NVML_CALL(nvmlDeviceGetHandleByPciBusId_v2, const char* text, Handle* out) {
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    if (text == nullptr || std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return kInvalidArgument;
    return find(out, [&](const SimgpuDeviceState& state) {
        return domain == 0 && bus == state.bus && slot == 0;
    });
}

NVML_CALL(nvmlDeviceGetHandleByUUID, const char* uuid, Handle* out) {
    if (uuid == nullptr) return kInvalidArgument;
    return find(out,
                [&](const SimgpuDeviceState& state) { return std::strcmp(state.uuid, uuid) == 0; });
}

NVML_CALL(nvmlDeviceGetUUID, Handle device, char* out, unsigned capacity) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    return copy_text(out, capacity, state.uuid);
}

NVML_CALL(nvmlDeviceGetName, Handle device, char* out, unsigned capacity) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    return copy_text(out, capacity, state.name);
}

NVML_CALL(nvmlDeviceGetIndex, Handle device, unsigned* out) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (out == nullptr) return kInvalidArgument;
    *out = static_cast<unsigned>(number_of(device));
    return kSuccess;
}

NVML_CALL(nvmlDeviceGetPciInfo_v3, Handle device, PciInfo* out) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (out == nullptr) return kInvalidArgument;
    *out = {};
    out->bus = state.bus;
    std::snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "0000:%02X:00.0", state.bus);
    std::snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", state.bus);
    return kSuccess;
}

NVML_CALL(nvmlDeviceGetMemoryInfo, Handle device, MemoryInfo* out) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (out == nullptr) return kInvalidArgument;
    *out = {state.total_bytes, state.total_bytes - state.used_bytes, state.used_bytes};
    return kSuccess;
}

NVML_CALL(nvmlDeviceGetMemoryInfo_v2, Handle device, MemoryInfoV2* out) {
    MemoryInfo info{};
    NVML_TRY(nvmlDeviceGetMemoryInfo(device, &info));
    if (out == nullptr) return kInvalidArgument;
    if (out->version != kMemoryInfoV2) return kArgumentVersionMismatch;
    *out = {kMemoryInfoV2, info.total, 0, info.free, info.used};
    return kSuccess;
}

NVML_CALL(nvmlDeviceGetUtilizationRates, Handle device, Utilization* out) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (out == nullptr) return kInvalidArgument;
    *out = {state.busy_percent, state.busy_percent};
    return kSuccess;
}

NVML_CALL(nvmlDeviceGetClockInfo, Handle device, int, unsigned* mhz) {
    SimgpuDeviceState state;
    NVML_TRY(look(device, &state));
    if (mhz == nullptr) return kInvalidArgument;
    *mhz = state.clock_mhz;
    return kSuccess;
}

// The entries without a number are those of before there were instances.
NVML_CALL(nvmlDeviceGetComputeRunningProcesses, Handle device, unsigned* count, ProcessV1* out) {
    return list_processes(device, count, out, [](const SimgpuProcess& process) {
        return ProcessV1{process.pid, process.bytes};
    });
}
NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v2, Handle device, unsigned* count, ProcessV2* out) {
    return list_processes(device, count, out, process_v2);
}
NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3, Handle device, unsigned* count, ProcessV2* out) {
    return list_processes(device, count, out, process_v2);
}

NVML_CALL(nvmlDeviceGetP2PStatus, Handle first, Handle second, int, int* status) {
    SimgpuDeviceState state;
    NVML_TRY(look(first, &state));
    NVML_TRY(look(second, &state));
    if (status == nullptr) return kInvalidArgument;
    *status = kPeerOk;
    return kSuccess;
}

// What a device on PCI Express without sensors has not.
NVML_CALL(nvmlDeviceGetNvLinkRemoteDeviceType, Handle, unsigned, int*) { return kNotSupported; }
NVML_CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, Handle, unsigned, PciInfo*) { return kNotSupported; }
NVML_CALL(nvmlDeviceGetGpuFabricInfoV, Handle, void*) { return kNotSupported; }
NVML_CALL(nvmlDeviceGetTemperature, Handle, int, unsigned*) { return kNotSupported; }
NVML_CALL(nvmlDeviceGetPowerUsage, Handle, unsigned*) { return kNotSupported; }
