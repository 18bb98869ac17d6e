// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Streams. The special handles (null, legacy 1, per-thread 2) have the same values in both APIs, so
// only the choice of the driver's variant tells what a null stream means.

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

cudaError_t query(cudaStream_t stream, bool per_thread) {
    return on_context(
        [&] { return call(CUDART_DRIVER_ON(per_thread, cuStreamQuery, 2000, 7000), stream); });
}

cudaError_t synchronize(cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamSynchronize, 2000, 7000), stream);
    });
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamWaitEvent, 3020, 7000), stream, event,
                    flags);
    });
}

cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                         unsigned flags, bool per_thread) {
    return on_context([&] {
        // Same calling convention: the status is an int on both sides, with the same values.
        return call(CUDART_DRIVER_ON(per_thread, cuStreamAddCallback, 5000, 7000), stream,
                    reinterpret_cast<CUstreamCallback>(callback), data, flags);
    });
}

cudaError_t launch_host_function(cudaStream_t stream, cudaHostFn_t function, void* data,
                                 bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuLaunchHostFunc, 10000, 10000), stream, function,
                    data);
    });
}

cudaError_t attach(cudaStream_t stream, void* pointer, size_t bytes, unsigned flags,
                   bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamAttachMemAsync, 6000, 7000), stream,
                    device_pointer(pointer), bytes, flags);
    });
}

cudaError_t get_flags(cudaStream_t stream, unsigned* flags, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetFlags, 5050, 7000), stream, flags);
    });
}

cudaError_t get_priority(cudaStream_t stream, int* priority, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetPriority, 5050, 7000), stream,
                    priority);
    });
}

cudaError_t get_id(cudaStream_t stream, unsigned long long* id, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetId, 12000, 12000), stream, id);
    });
}

cudaError_t get_device(cudaStream_t stream, int* device, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetDevice, 12080, 12080), stream, device);
    });
}

static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));

cudaError_t get_attribute(cudaStream_t stream, cudaStreamAttrID attribute,
                          cudaStreamAttrValue* value, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetAttribute, 11000, 11000), stream,
                    static_cast<CUstreamAttrID>(attribute),
                    reinterpret_cast<CUstreamAttrValue*>(value));
    });
}

cudaError_t set_attribute(cudaStream_t stream, cudaStreamAttrID attribute,
                          const cudaStreamAttrValue* value, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamSetAttribute, 11000, 11000), stream,
                    static_cast<CUstreamAttrID>(attribute),
                    reinterpret_cast<const CUstreamAttrValue*>(value));
    });
}

cudaError_t copy_attributes(cudaStream_t to, cudaStream_t from, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamCopyAttributes, 11000, 11000), to, from);
    });
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return on_context([&] { return call(CUDART_DRIVER(cuStreamCreate, 2000), stream, 0U); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return on_context([&] { return call(CUDART_DRIVER(cuStreamCreate, 2000), stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuStreamCreateWithPriority, 5050), stream, flags, priority);
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return on_context([&] { return call(CUDART_DRIVER(cuStreamDestroy, 4000), stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return query(stream, false); }

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return query(stream, true); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return synchronize(stream, false); }

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) { return synchronize(stream, true); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return wait_event(stream, event, flags, false);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return wait_event(stream, event, flags, true);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
    return add_callback(stream, callback, data, flags, false);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void* data, unsigned flags) {
    return add_callback(stream, callback, data, flags, true);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return launch_host_function(stream, function, data, false);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return launch_host_function(stream, function, data, true);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags) {
    return attach(stream, pointer, bytes, flags, false);
}

cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, size_t bytes,
                                          unsigned flags) {
    return attach(stream, pointer, bytes, flags, true);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    return get_flags(stream, flags, false);
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
    return get_flags(stream, flags, true);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    return get_priority(stream, priority, false);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
    return get_priority(stream, priority, true);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    return get_id(stream, id, false);
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
    return get_id(stream, id, true);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    return get_device(stream, device, false);
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
    return get_device(stream, device, true);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value) {
    return get_attribute(stream, attribute, value, false);
}

cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        cudaStreamAttrValue* value) {
    return get_attribute(stream, attribute, value, true);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value) {
    return set_attribute(stream, attribute, value, false);
}

cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        const cudaStreamAttrValue* value) {
    return set_attribute(stream, attribute, value, true);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    return copy_attributes(to, from, false);
}

cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
    return copy_attributes(to, from, true);
}
