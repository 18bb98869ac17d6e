// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/version.hpp"
#include "simgpu/driver/visible_devices.hpp"

namespace simgpu::driver {
namespace {

CUresult copy_text(char* out, int capacity, const std::string& text) {
    if (out == nullptr || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(out, static_cast<std::size_t>(capacity), "%s", text.c_str());
    return CUDA_SUCCESS;
}

std::string pci_bus_id(const Gpu& gpu) { return fmt::format("0000:{:02X}:00.0", gpu.number + 1); }

template <typename T, typename Get>
CUresult ask(CUdevice device, T* out, Get&& get) {
    Gpu* gpu = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_gpu(device, gpu));
    *out = get(*gpu);
    return CUDA_SUCCESS;
}

CUresult properties(CUdevprop* out, CUdevice device) {
    Gpu* gpu = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_gpu(device, gpu));
    auto get = [&](CUdevice_attribute attribute) {
        return device_attribute(*gpu, attribute).value_or(0);
    };
    *out = {};
    out->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int axis = 0; axis < 3; ++axis) {
        out->maxThreadsDim[axis] =
            get(CUdevice_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis));
        out->maxGridSize[axis] = get(CUdevice_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis));
    }
    out->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    out->totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    out->SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    out->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    out->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    out->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    out->textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUresult by_pci_bus_id(CUdevice* out, const char* text) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    bool with_domain = std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3;
    if (!with_domain && std::sscanf(text, "%x:%x", &bus, &slot) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (domain != 0 || slot != 0 || bus == 0 || bus > static_cast<unsigned>(gpu_count())) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *out = static_cast<CUdevice>(bus) - 1;
    return CUDA_SUCCESS;
}

CUresult p2p_attribute(int* value, CUdevice_P2PAttribute which, CUdevice source, CUdevice target) {
    Gpu* gpu = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_gpu(source, gpu));
    SIMGPU_TRY(find_gpu(target, gpu));
    if (source == target) return CUDA_ERROR_INVALID_DEVICE;
    switch (which) {
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            *value = 1;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuInit, (unsigned flags), { return driver::initialise(flags); })

SIMGPU_CALL(cuDriverGetVersion, (int* version), {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = driver::kDriverVersion;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuDeviceGetCount, (int* count), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = driver::gpu_count();
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuDeviceGet, (CUdevice * device, int ordinal), {
    return driver::ask(ordinal, device, [](const driver::Gpu& gpu) { return gpu.ordinal; });
})

SIMGPU_CALL(cuDeviceGetName, (char* name, int capacity, CUdevice device), {
    driver::Gpu* gpu = nullptr;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    return driver::copy_text(name, capacity, driver::machine().profile().device_name);
})

SIMGPU_CALL(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), {
    return driver::ask(device, uuid,
                       [](const driver::Gpu& gpu) { return driver::uuid_of(gpu.number); });
})
SIMGPU_CALL(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), {
    return driver::ask(device, uuid,
                       [](const driver::Gpu& gpu) { return driver::uuid_of(gpu.number); });
})

SIMGPU_CALL(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), {
    return driver::ask(device, bytes, [](const driver::Gpu& gpu) {
        return driver::machine().memory().usage(gpu.ordinal).total;
    });
})

SIMGPU_CALL(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device), {
    driver::Gpu* gpu = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    auto found = driver::device_attribute(*gpu, attribute);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *value = *found;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuDeviceComputeCapability, (int* major, int* minor, CUdevice device), {
    driver::Gpu* gpu = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    *major = driver::machine().profile().compute_major;
    *minor = driver::machine().profile().compute_minor;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuDeviceGetProperties, (CUdevprop * out, CUdevice device),
            { return driver::properties(out, device); })

SIMGPU_CALL(cuDeviceGetPCIBusId, (char* text, int capacity, CUdevice device), {
    driver::Gpu* gpu = nullptr;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    return driver::copy_text(text, capacity, driver::pci_bus_id(*gpu));
})

SIMGPU_CALL(cuDeviceGetByPCIBusId, (CUdevice * device, const char* text),
            { return driver::by_pci_bus_id(device, text); })

SIMGPU_CALL(cuDeviceGetTexture1DLinearMaxWidth,
            (size_t * elements, CUarray_format format, unsigned channels, CUdevice device), {
                constexpr size_t kElements = size_t{1} << 28;
                if (channels == 0 || channels > 4 || format == 0) return CUDA_ERROR_INVALID_VALUE;
                return driver::ask(device, elements, [&](const driver::Gpu&) { return kElements; });
            })

SIMGPU_CALL(cuDeviceGetExecAffinitySupport, (int* value, CUexecAffinityType, CUdevice device),
            { return driver::ask(device, value, [](const driver::Gpu&) { return 0; }); })

SIMGPU_CALL(cuDeviceCanAccessPeer, (int* value, CUdevice device, CUdevice peer), {
    driver::Gpu* gpu = nullptr;
    SIMGPU_TRY(driver::find_gpu(peer, gpu));
    return driver::ask(device, value, [&](const driver::Gpu&) { return device != peer ? 1 : 0; });
})

SIMGPU_CALL(cuDeviceGetP2PAttribute,
            (int* value, CUdevice_P2PAttribute which, CUdevice source, CUdevice target),
            { return driver::p2p_attribute(value, which, source, target); })

SIMGPU_CALL(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device), {
    return driver::ask(device, out, [](driver::Gpu& gpu) { return gpu.primary.retain().handle(); });
})

#define SIMGPU_PRIMARY_CALLS(suffix)                                                     \
    SIMGPU_CALL(cuDevicePrimaryCtxRelease##suffix, (CUdevice device), {                  \
        driver::Gpu* gpu = nullptr;                                                      \
        SIMGPU_TRY(driver::find_gpu(device, gpu));                                       \
        return gpu->primary.release();                                                   \
    })                                                                                   \
    SIMGPU_CALL(cuDevicePrimaryCtxReset##suffix, (CUdevice device), {                    \
        driver::Gpu* gpu = nullptr;                                                      \
        SIMGPU_TRY(driver::find_gpu(device, gpu));                                       \
        gpu->primary.reset();                                                            \
        return CUDA_SUCCESS;                                                             \
    })                                                                                   \
    SIMGPU_CALL(cuDevicePrimaryCtxSetFlags##suffix, (CUdevice device, unsigned flags), { \
        driver::Gpu* gpu = nullptr;                                                      \
        SIMGPU_TRY(driver::find_gpu(device, gpu));                                       \
        return gpu->primary.set_flags(flags);                                            \
    })
SIMGPU_PRIMARY_CALLS()
SIMGPU_PRIMARY_CALLS(_v2)
#undef SIMGPU_PRIMARY_CALLS

SIMGPU_CALL(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned* flags, int* active), {
    driver::Gpu* gpu = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    gpu->primary.state(*flags, *active);
    return CUDA_SUCCESS;
})
