// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>

#include "simgpu/cudart/allocation_note.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

// cuMemAllocPitch aligns rows for accesses of this width; the runtime does not say which it wants.
constexpr unsigned kPitchElementBytes = 4;

CUdeviceptr* driver_out(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

cudaError_t allocate_pitch(void** pointer, size_t* pitch, size_t width_bytes, size_t rows) {
    *pointer = nullptr;
    *pitch = 0;
    if (width_bytes == 0 || rows == 0) {
        return cudaSuccess;
    }
    return call(CUDART_DRIVER(cuMemAllocPitch, 3020), driver_out(pointer), pitch, width_bytes, rows,
                kPitchElementBytes);
}

CUmemLocation driver_location(const cudaMemLocation& location) {
    CUmemLocation result{};
    result.type = static_cast<CUmemLocationType>(location.type);
    result.id = location.id;
    return result;
}

cudaError_t prefetch(const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                     cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemPrefetchAsync, 12020, 12020),
                    device_pointer(pointer), bytes, driver_location(location), flags, stream);
    });
}

cudaMemoryType runtime_type(CUmemorytype type, int managed) {
    if (managed != 0) {
        return cudaMemoryTypeManaged;
    }
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            return cudaMemoryTypeHost;
        case CU_MEMORYTYPE_DEVICE:
            return cudaMemoryTypeDevice;
        default:
            return cudaMemoryTypeUnregistered;
    }
}

cudaError_t pointer_attributes(cudaPointerAttributes& attributes, const void* pointer) {
    CUmemorytype type{};
    CUdeviceptr device_address = 0;
    void* host_address = nullptr;
    unsigned managed = 0;
    int device = cudaInvalidDeviceId;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* values[] = {&type, &device_address, &host_address, &managed, &device};
    const cudaError_t error = call(CUDART_DRIVER(cuPointerGetAttributes, 7000), 5U, wanted, values,
                                   device_pointer(pointer));
    if (error != cudaSuccess) {
        return error;
    }
    std::memset(&attributes, 0, sizeof attributes);
    attributes.type = runtime_type(type, static_cast<int>(managed));
    if (attributes.type == cudaMemoryTypeUnregistered) {
        attributes.device = cudaInvalidDeviceId;
        attributes.hostPointer = const_cast<void*>(pointer);
        return cudaSuccess;
    }
    attributes.device = device;
    attributes.devicePointer = reinterpret_cast<void*>(device_address);
    attributes.hostPointer = host_address;
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    return on_context([&] {
        if (pointer == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pointer = nullptr;
        if (bytes == 0) {
            return cudaSuccess;
        }
        return noted(pointer, bytes,
                     call(CUDART_DRIVER(cuMemAlloc, 3020), driver_out(pointer), bytes));
    });
}

cudaError_t cudaFree(void* pointer) {
    return on_context([&] {
        if (pointer == nullptr) {
            return cudaSuccess;
        }
        note_allocation(pointer, 0);
        return call(CUDART_DRIVER(cuMemFree, 3020), device_pointer(pointer));
    });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    return on_context([&] {
        return pointer == nullptr || pitch == nullptr
                   ? cudaErrorInvalidValue
                   : allocate_pitch(pointer, pitch, width, height);
    });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    return on_context([&] {
        if (pitched == nullptr) {
            return cudaErrorInvalidValue;
        }
        pitched->xsize = extent.width;
        pitched->ysize = extent.height;
        return allocate_pitch(&pitched->ptr, &pitched->pitch, extent.width,
                              extent.height * extent.depth);
    });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
    return on_context([&] {
        if (pointer == nullptr || bytes == 0) {
            return cudaErrorInvalidValue;
        }
        return call(CUDART_DRIVER(cuMemAllocManaged, 6000), driver_out(pointer), bytes, flags);
    });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    return on_context([&] {
        if (pointer == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pointer = nullptr;
        // Portable and mapped memory is all there is on 64-bit systems.
        return bytes == 0 ? cudaSuccess
                          : call(CUDART_DRIVER(cuMemHostAlloc, 2020), pointer, bytes, flags);
    });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
    return on_context([&] {
        return pointer == nullptr ? cudaSuccess : call(CUDART_DRIVER(cuMemFreeHost, 2000), pointer);
    });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuMemHostRegister, 6050), pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
    return on_context([&] { return call(CUDART_DRIVER(cuMemHostUnregister, 4000), pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemHostGetDevicePointer, 3020), driver_out(device), host,
                    flags);
    });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
    return on_context([&] { return call(CUDART_DRIVER(cuMemHostGetFlags, 2030), flags, host); });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuMemGetInfo, 3020), free_bytes, total_bytes); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    return on_context([&] {
        if (attributes == nullptr) {
            return cudaErrorInvalidValue;
        }
        return pointer_attributes(*attributes, pointer);
    });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
    return prefetch(pointer, bytes, location, flags, stream, false);
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, cudaMemLocation location,
                                      unsigned flags, cudaStream_t stream) {
    return prefetch(pointer, bytes, location, flags, stream, true);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemAdvise, 12020), device_pointer(pointer), bytes,
                    static_cast<CUmem_advise>(advice), driver_location(location));
    });
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_bytes, cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t bytes) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemRangeGetAttribute, 8000), data, data_bytes,
                    static_cast<CUmem_range_attribute>(attribute), device_pointer(pointer), bytes);
    });
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_bytes,
                                      cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t bytes) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuMemRangeGetAttributes, 8000), data, data_bytes,
                    reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                    device_pointer(pointer), bytes);
    });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
    return on_context([&] {
        return call(CUDART_DRIVER(cuIpcGetMemHandle, 4010),
                    reinterpret_cast<CUipcMemHandle*>(handle), device_pointer(pointer));
    });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    return on_context([&] {
        CUipcMemHandle driver_handle;
        std::memcpy(&driver_handle, &handle, sizeof driver_handle);
        return call(CUDART_DRIVER(cuIpcOpenMemHandle, 11000), driver_out(pointer), driver_handle,
                    flags);
    });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuIpcCloseMemHandle, 4010), device_pointer(pointer)); });
}
