// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Linear copies: each kind has its own driver function, as in the vendor's runtime, so that an
// interposer sees the direction that the program stated.

#include "simgpu/cudart/copy.hpp"

#include "simgpu/cudart/runtime.hpp"

namespace libswap::simgpu::cudart {

cudaError_t copy_now(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                     bool per_thread) {
    if (bytes == 0) {
        return cudaSuccess;
    }
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyHtoD, 3020, 7000), device_pointer(to),
                        from, bytes);
        case cudaMemcpyDeviceToHost:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyDtoH, 3020, 7000), to,
                        device_pointer(from), bytes);
        case cudaMemcpyDeviceToDevice:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyDtoD, 3020, 7000), device_pointer(to),
                        device_pointer(from), bytes);
        case cudaMemcpyHostToHost:
        case cudaMemcpyDefault:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpy, 4000, 7000), device_pointer(to),
                        device_pointer(from), bytes);
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t copy_on_stream(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream, bool per_thread) {
    if (bytes == 0) {
        return cudaSuccess;
    }
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyHtoDAsync, 3020, 7000),
                        device_pointer(to), from, bytes, stream);
        case cudaMemcpyDeviceToHost:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyDtoHAsync, 3020, 7000), to,
                        device_pointer(from), bytes, stream);
        case cudaMemcpyDeviceToDevice:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyDtoDAsync, 3020, 7000),
                        device_pointer(to), device_pointer(from), bytes, stream);
        case cudaMemcpyHostToHost:
        case cudaMemcpyDefault:
            return call(CUDART_DRIVER_ON(per_thread, cuMemcpyAsync, 4000, 7000), device_pointer(to),
                        device_pointer(from), bytes, stream);
    }
    return cudaErrorInvalidMemcpyDirection;
}

}  // namespace libswap::simgpu::cudart

using namespace libswap::simgpu::cudart;

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return on_context([&] { return copy_now(to, from, bytes, kind, false); });
}

cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return on_context([&] { return copy_now(to, from, bytes, kind, true); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return on_context([&] { return copy_on_stream(to, from, bytes, kind, stream, false); });
}

cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
    return on_context([&] { return copy_on_stream(to, from, bytes, kind, stream, true); });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
    return on_context([&] {
        CUcontext to_context = nullptr;
        CUcontext from_context = nullptr;
        cudaError_t error = primary_context(to_device, &to_context);
        if (error == cudaSuccess) {
            error = primary_context(from_device, &from_context);
        }
        return error != cudaSuccess || bytes == 0
                   ? error
                   : call(CUDART_DRIVER(cuMemcpyPeer, 4000), device_pointer(to), to_context,
                          device_pointer(from), from_context, bytes);
    });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
    return on_context([&] {
        CUcontext to_context = nullptr;
        CUcontext from_context = nullptr;
        cudaError_t error = primary_context(to_device, &to_context);
        if (error == cudaSuccess) {
            error = primary_context(from_device, &from_context);
        }
        return error != cudaSuccess || bytes == 0
                   ? error
                   : call(CUDART_DRIVER(cuMemcpyPeerAsync, 4000), device_pointer(to), to_context,
                          device_pointer(from), from_context, bytes, stream);
    });
}
