// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Allocation, release and questions about memory.

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
             (address, pitch, width, height, element_bytes),
             return engine.mem_alloc_pitch(address, pitch, width, height, element_bytes, real);)
