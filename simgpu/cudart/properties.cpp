// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>
#include <type_traits>

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

/// 0 where the driver does not know the attribute: older drivers do not know them all.
int attribute(CUdevice device, CUdevice_attribute which) {
    int value = 0;
    const cudaError_t error =
        call(CUDART_DRIVER(cuDeviceGetAttribute, 2000), &value, which, device);
    return error == cudaSuccess ? value : 0;
}

cudaError_t fill(cudaDeviceProp& properties, CUdevice device) {
    std::memset(&properties, 0, sizeof properties);
    cudaError_t error = call(CUDART_DRIVER(cuDeviceGetName, 2000), properties.name,
                             static_cast<int>(sizeof properties.name), device);
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuDeviceTotalMem, 3020), &properties.totalGlobalMem, device);
    }
    if (error != cudaSuccess) {
        return error;
    }
    CUuuid uuid{};
    if (call(CUDART_DRIVER(cuDeviceGetUuid, 9020), &uuid, device) == cudaSuccess) {
        std::memcpy(&properties.uuid, &uuid, sizeof uuid);
    }
#define CUDART_PROPERTY(member, which)                                                     \
    properties.member = static_cast<std::remove_reference_t<decltype(properties.member)>>( \
        attribute(device, which));
#include "simgpu/cudart/properties.def"
#undef CUDART_PROPERTY
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return on_driver([&] {
        if (properties == nullptr) {
            return cudaErrorInvalidValue;
        }
        CUdevice handle = 0;
        const cudaError_t error = call(CUDART_DRIVER(cuDeviceGet, 2000), &handle, device);
        return error == cudaSuccess ? fill(*properties, handle) : error;
    });
}
