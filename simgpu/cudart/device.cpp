// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

/// The driver's handle of a device ordinal, checked.
cudaError_t device_handle(int device, CUdevice* handle) {
    const cudaError_t error = call(CUDART_DRIVER(cuDeviceGet, 2000), handle, device);
    return error == cudaErrorInvalidValue ? cudaErrorInvalidDevice : error;
}

template <typename Body>
cudaError_t on_device(int device, Body body) {
    return on_driver([&] {
        CUdevice handle = 0;
        const cudaError_t error = device_handle(device, &handle);
        return error == cudaSuccess ? body(handle) : error;
    });
}

}  // namespace

cudaError_t cudaDriverGetVersion(int* version) {
    if (version == nullptr) {
        return remember(cudaErrorInvalidValue);
    }
    if (open_driver_table() != cudaSuccess) {
        // Documented: no driver is version 0, not an error.
        *version = 0;
        return cudaSuccess;
    }
    return remember(call(CUDART_DRIVER(cuDriverGetVersion, 2020), version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    if (version == nullptr) {
        return remember(cudaErrorInvalidValue);
    }
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    if (count == nullptr) {
        return remember(cudaErrorInvalidValue);
    }
    *count = 0;
    return on_driver([&] {
        const cudaError_t error = call(CUDART_DRIVER(cuDeviceGetCount, 2000), count);
        return error == cudaSuccess && *count == 0 ? cudaErrorNoDevice : error;
    });
}

cudaError_t cudaGetDevice(int* device) {
    if (device == nullptr) {
        return remember(cudaErrorInvalidValue);
    }
    return on_driver([&] {
        *device = current_device();
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device) {
    return on_driver([&] { return choose_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    return on_device(device, [&](CUdevice handle) {
        if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
            const cudaError_t error =
                call(CUDART_DRIVER(cuDevicePrimaryCtxSetFlags, 11000), handle, device_flags);
            if (error != cudaSuccess) {
                return error;
            }
        }
        CUcontext context = nullptr;
        return primary_context(device, &context);
    });
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
    return on_driver(
        [&] { return count > 0 && devices == nullptr ? cudaErrorInvalidValue : cudaSuccess; });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
    return on_driver([&] {
        if (device == nullptr || wanted == nullptr) {
            return cudaErrorInvalidValue;
        }
        int count = 0;
        const cudaError_t error = call(CUDART_DRIVER(cuDeviceGetCount, 2000), &count);
        if (error != cudaSuccess || count == 0) {
            return error == cudaSuccess ? cudaErrorNoDevice : error;
        }
        *device = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    return on_driver([&] {
        CUdevice handle = 0;
        const cudaError_t error = device_handle(current_device(), &handle);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuDevicePrimaryCtxSetFlags, 11000), handle, flags)
                   : error;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
    return on_driver([&] {
        if (flags == nullptr) {
            return cudaErrorInvalidValue;
        }
        CUdevice handle = 0;
        int active = 0;
        const cudaError_t error = device_handle(current_device(), &handle);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuDevicePrimaryCtxGetState, 7000), handle, flags, &active)
                   : error;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    return on_device(device, [&](CUdevice handle) {
        // The two enumerations share their values.
        return call(CUDART_DRIVER(cuDeviceGetAttribute, 2000), value,
                    static_cast<CUdevice_attribute>(attribute), handle);
    });
}

cudaError_t cudaDeviceSynchronize() {
    return on_context([] { return call(CUDART_DRIVER(cuCtxSynchronize, 2000)); });
}

cudaError_t cudaDeviceReset() {
    return on_driver([] { return reset_device(); });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
    return on_device(device, [&](CUdevice handle) {
        return call(CUDART_DRIVER(cuDeviceGetPCIBusId, 4010), text, bytes, handle);
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    return on_driver([&] {
        CUdevice handle = 0;
        const cudaError_t error = call(CUDART_DRIVER(cuDeviceGetByPCIBusId, 4010), &handle, text);
        if (error == cudaSuccess) {
            *device = handle;
        }
        return error;
    });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format,
                                                 int device) {
    return on_device(device, [&](CUdevice handle) {
        if (format == nullptr || width == nullptr) {
            return cudaErrorInvalidValue;
        }
        const unsigned channels = (format->x != 0) + (format->y != 0) + (format->z != 0) +
                                  static_cast<unsigned>(format->w != 0);
        const CUarray_format kind = format->x == 32   ? CU_AD_FORMAT_FLOAT
                                    : format->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                                                      : CU_AD_FORMAT_SIGNED_INT8;
        return call(CUDART_DRIVER(cuDeviceGetTexture1DLinearMaxWidth, 11010), width, kind, channels,
                    handle);
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxSetLimit, 3010), static_cast<CUlimit>(limit), value);
    });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxGetLimit, 3010), value, static_cast<CUlimit>(limit));
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxSetCacheConfig, 3020), static_cast<CUfunc_cache>(config));
    });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxGetCacheConfig, 3020),
                    reinterpret_cast<CUfunc_cache*>(config));
    });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxSetSharedMemConfig, 4020),
                    static_cast<CUsharedconfig>(config));
    });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuCtxGetSharedMemConfig, 4020),
                    reinterpret_cast<CUsharedconfig*>(config));
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuCtxGetStreamPriorityRange, 5050), least, greatest); });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
    return on_context([] { return call(CUDART_DRIVER(cuCtxResetPersistingL2Cache, 11000)); });
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuFlushGPUDirectRDMAWrites, 11030),
                    static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                    static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return on_device(device, [&](CUdevice handle) {
        CUdevice peer_handle = 0;
        const cudaError_t error = device_handle(peer, &peer_handle);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuDeviceCanAccessPeer, 4000), can, handle, peer_handle)
                   : error;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return on_context([&] {
        CUcontext context = nullptr;
        const cudaError_t error = primary_context(peer, &context);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuCtxEnablePeerAccess, 4000), context, flags)
                   : error;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return on_context([&] {
        CUcontext context = nullptr;
        const cudaError_t error = primary_context(peer, &context);
        return error == cudaSuccess ? call(CUDART_DRIVER(cuCtxDisablePeerAccess, 4000), context)
                                    : error;
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device,
                                      int peer) {
    return on_device(device, [&](CUdevice handle) {
        CUdevice peer_handle = 0;
        const cudaError_t error = device_handle(peer, &peer_handle);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuDeviceGetP2PAttribute, 8000), value,
                          static_cast<CUdevice_P2PAttribute>(attribute), handle, peer_handle)
                   : error;
    });
}

cudaError_t cudaProfilerStart() {
    return on_context([] {
        const auto start =
            reinterpret_cast<CUresult (*)()>(driver_entry(Entry::cuProfilerStart_4000_0));
        return call(start);
    });
}

cudaError_t cudaProfilerStop() {
    return on_context([] {
        const auto stop =
            reinterpret_cast<CUresult (*)()>(driver_entry(Entry::cuProfilerStop_4000_0));
        return call(stop);
    });
}
