// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Calls that take many ranges or copies at once. The structures are the driver's under other names.

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

/// The driver's parameters are not const, but it writes to none of them.
CUdeviceptr* addresses(const void* const* pointers) {
    return reinterpret_cast<CUdeviceptr*>(const_cast<const void**>(pointers));
}

cudaError_t copy(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                 cudaMemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                 cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemcpyBatchAsync, 13000, 13000), addresses(to),
                    addresses(from), const_cast<size_t*>(sizes), count,
                    reinterpret_cast<CUmemcpyAttributes*>(attributes), indices, attribute_count,
                    stream);
    });
}

cudaError_t copy_3d(size_t count, cudaMemcpy3DBatchOp* copies, unsigned long long flags,
                    cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemcpy3DBatchAsync, 13000, 13000), count,
                    reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(copies), flags, stream);
    });
}

cudaError_t prefetch(void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                     size_t* indices, size_t location_count, unsigned long long flags,
                     cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemPrefetchBatchAsync, 13000, 13000),
                    addresses(pointers), sizes, count, reinterpret_cast<CUmemLocation*>(locations),
                    indices, location_count, flags, stream);
    });
}

cudaError_t discard(void** pointers, size_t* sizes, size_t count, unsigned long long flags,
                    cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemDiscardBatchAsync, 13000, 13000),
                    addresses(pointers), sizes, count, flags, stream);
    });
}

cudaError_t discard_and_prefetch(void** pointers, size_t* sizes, size_t count,
                                 cudaMemLocation* locations, size_t* indices, size_t location_count,
                                 unsigned long long flags, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuMemDiscardAndPrefetchBatchAsync, 13000, 13000),
                    addresses(pointers), sizes, count, reinterpret_cast<CUmemLocation*>(locations),
                    indices, location_count, flags, stream);
    });
}

}  // namespace

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
                                 size_t attribute_count, cudaStream_t stream) {
    return copy(to, from, sizes, count, attributes, indices, attribute_count, stream, false);
}

cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* to, const void* const* from, const size_t* sizes,
                                      size_t count, cudaMemcpyAttributes* attributes,
                                      size_t* indices, size_t attribute_count,
                                      cudaStream_t stream) {
    return copy(to, from, sizes, count, attributes, indices, attribute_count, stream, true);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* copies,
                                   unsigned long long flags, cudaStream_t stream) {
    return copy_3d(count, copies, flags, stream, false);
}

cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, cudaMemcpy3DBatchOp* copies,
                                        unsigned long long flags, cudaStream_t stream) {
    return copy_3d(count, copies, flags, stream, true);
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                      cudaMemLocation* locations, size_t* indices,
                                      size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
    return prefetch(pointers, sizes, count, locations, indices, location_count, flags, stream,
                    false);
}

cudaError_t cudaMemPrefetchBatchAsync_ptsz(void** pointers, size_t* sizes, size_t count,
                                           cudaMemLocation* locations, size_t* indices,
                                           size_t location_count, unsigned long long flags,
                                           cudaStream_t stream) {
    return prefetch(pointers, sizes, count, locations, indices, location_count, flags, stream,
                    true);
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
    return discard(pointers, sizes, count, flags, stream, false);
}

cudaError_t cudaMemDiscardBatchAsync_ptsz(void** pointers, size_t* sizes, size_t count,
                                          unsigned long long flags, cudaStream_t stream) {
    return discard(pointers, sizes, count, flags, stream, true);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* indices,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
    return discard_and_prefetch(pointers, sizes, count, locations, indices, location_count, flags,
                                stream, false);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(void** pointers, size_t* sizes, size_t count,
                                                     cudaMemLocation* locations, size_t* indices,
                                                     size_t location_count,
                                                     unsigned long long flags,
                                                     cudaStream_t stream) {
    return discard_and_prefetch(pointers, sizes, count, locations, indices, location_count, flags,
                                stream, true);
}
