// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Allocation, release and questions about memory.

namespace libswap {
namespace {

/// Tells the engine of memory that the driver allocated by itself.
CUresult note_allocation(Engine& engine, CUresult result, const CUdeviceptr* address,
                         std::size_t bytes, bool managed) noexcept {
    if (result == CUDA_SUCCESS && address) engine.real_allocated(*address, bytes, managed);
    return result;
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes), (address, bytes),
             return engine.mem_alloc(address, bytes, real);)

LIBSWAP_HOOK(cuMemFree_v2, (CUdeviceptr address), (address), return engine.mem_free(address, real);)

LIBSWAP_HOOK(cuMemGetInfo_v2, (size_t * free_bytes, size_t* total_bytes), (free_bytes, total_bytes),
             return engine.mem_get_info(free_bytes, total_bytes, real);)

LIBSWAP_HOOK(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* bytes, CUdeviceptr address),
             (base, bytes, address),
             return engine.mem_get_address_range(base, bytes, address, real);)

LIBSWAP_HOOK(cuPointerGetAttribute,
             (void* data, CUpointer_attribute attribute, CUdeviceptr address),
             (data, attribute, address),
             return engine.pointer_get_attribute(data, attribute, address, real);)

LIBSWAP_HOOK(cuPointerGetAttributes,
             (unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address),
             (count, attributes, data, address),
             return engine.pointer_get_attributes(count, attributes, data, address, real);)

LIBSWAP_HOOK(cuPointerSetAttribute,
             (const void* value, CUpointer_attribute attribute, CUdeviceptr address),
             (value, attribute, address),
             return engine.pointer_set_attribute(value, attribute, address, real);)

LIBSWAP_HOOK(cuMemAllocPitch_v2,
             (CUdeviceptr * address, size_t* pitch, size_t width, size_t height,
              unsigned element_bytes),
             (address, pitch, width, height, element_bytes), const CUresult result = real();
             return note_allocation(engine, result, address,
                                    result == CUDA_SUCCESS && pitch ? *pitch * height : 0, false);)

LIBSWAP_HOOK(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags),
             (address, bytes, flags), return note_allocation(engine, real(), address, bytes, true);)

LIBSWAP_HOOK_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
                   (address, bytes, stream),
                   return note_allocation(engine, real(), address, bytes, false);)

LIBSWAP_HOOK_TWINS(cuMemAllocFromPoolAsync, _ptsz,
                   (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
                   (address, bytes, pool, stream),
                   return note_allocation(engine, real(), address, bytes, false);)

// The engine releases its own buffers the careful way of cuMemFree, whatever stream order would
// have allowed.
LIBSWAP_HOOK_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream), (address, stream),
                   return engine.mem_free(address, real);)
