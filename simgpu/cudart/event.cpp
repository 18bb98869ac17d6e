// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuEventRecord, 2000, 7000), event, stream);
    });
}

cudaError_t record_with_flags(cudaEvent_t event, cudaStream_t stream, unsigned flags,
                              bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuEventRecordWithFlags, 11010, 11010), event,
                    stream, flags);
    });
}

}  // namespace

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return on_context([&] { return call(CUDART_DRIVER(cuEventCreate, 2000), event, 0U); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return on_context([&] { return call(CUDART_DRIVER(cuEventCreate, 2000), event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return on_context([&] { return call(CUDART_DRIVER(cuEventDestroy, 4000), event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return on_context([&] { return call(CUDART_DRIVER(cuEventQuery, 2000), event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return on_context([&] { return call(CUDART_DRIVER(cuEventSynchronize, 2000), event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuEventElapsedTime, 12080), milliseconds, start, end); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return record(event, stream, false);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    return record(event, stream, true);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return record_with_flags(event, stream, flags, false);
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return record_with_flags(event, stream, flags, true);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
    static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
    return on_context([&] {
        return call(CUDART_DRIVER(cuIpcGetEventHandle, 4010),
                    reinterpret_cast<CUipcEventHandle*>(handle), event);
    });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
    return on_context([&] {
        CUipcEventHandle driver_handle;
        std::memcpy(&driver_handle, &handle, sizeof driver_handle);
        return call(CUDART_DRIVER(cuIpcOpenEventHandle, 4010), event, driver_handle);
    });
}
