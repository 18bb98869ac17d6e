// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Stream-ordered allocation and memory pools.

LIBSWAP_HOOK_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
                   (address, bytes, stream),
                   return engine.mem_alloc_async(address, bytes, nullptr, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuMemAllocFromPoolAsync, _ptsz,
                   (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
                   (address, bytes, pool, stream),
                   return engine.mem_alloc_async(address, bytes, &pool, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream), (address, stream),
                   return engine.mem_free_async(address, on(stream), real);)

LIBSWAP_HOOK(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps* properties),
             (pool, properties), return engine.pool_create(pool, properties, real);)

LIBSWAP_HOOK(cuMemPoolDestroy, (CUmemoryPool pool), (pool), return engine.pool_destroy(pool, real);)

LIBSWAP_HOOK(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep_bytes), (pool, keep_bytes),
             return engine.pool_trim(pool, keep_bytes, real);)

LIBSWAP_HOOK(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value),
             (pool, attribute, value),
             return engine.pool_get_attribute(pool, attribute, value, real);)

LIBSWAP_HOOK(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value),
             (pool, attribute, value),
             return engine.pool_set_attribute(pool, attribute, value, real);)

LIBSWAP_HOOK(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc* access, size_t count),
             (pool, access, count), return engine.pool_set_access(pool, access, count, real);)

LIBSWAP_HOOK(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr address),
             (data, address), return engine.pool_export_pointer(address, real);)

LIBSWAP_HOOK(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), (device, pool),
             return engine.set_current_pool(real);)

LIBSWAP_HOOK(cuMemSetMemPool,
             (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
             (location, type, pool), return engine.set_current_pool(real);)
