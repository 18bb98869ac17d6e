// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a driver refuses whose device attributes say that it has none of this: multicast objects,
// green contexts, memory shared with other processes or devices.

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {
namespace {

CUresult no_such_feature() {
    return initialised() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED;
}

/// CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0.
CUresult handle_for_range(const void* out, CUdeviceptr va, std::size_t bytes,
                          CUmemRangeHandleType type) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || va == 0 || bytes == 0 || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
        return CUDA_ERROR_INVALID_VALUE;
    if (machine().memory().find(va).kind == PointerKind::None) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/// Handles are created without a type to share them by (cuMemCreate).
CUresult export_handle(const void* out, CUmemGenericAllocationHandle handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || !machine().memory().handle_info(handle)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuMemGetHandleForAddressRange,
            (void* out, CUdeviceptr va, size_t bytes, CUmemRangeHandleType type,
             unsigned long long),
            { return driver::handle_for_range(out, va, bytes, type); })
SIMGPU_CALL(cuMemExportToShareableHandle,
            (void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
             unsigned long long),
            { return driver::export_handle(out, handle); })
SIMGPU_CALL(cuMemImportFromShareableHandle,
            (CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMemPoolImportFromShareableHandle,
            (CUmemoryPool*, void*, CUmemAllocationHandleType, unsigned long long),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMemPoolImportPointer, (CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*),
            { return driver::no_such_feature(); })

SIMGPU_CALL(cuMulticastCreate, (CUmemGenericAllocationHandle*, const CUmulticastObjectProp*),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMulticastAddDevice, (CUmemGenericAllocationHandle, CUdevice),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMulticastBindMem,
            (CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
             unsigned long long),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMulticastBindAddr,
            (CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMulticastUnbind, (CUmemGenericAllocationHandle, CUdevice, size_t, size_t),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuMulticastGetGranularity,
            (size_t*, const CUmulticastObjectProp*, CUmulticastGranularity_flags),
            { return driver::no_such_feature(); })

SIMGPU_CALL(cuDeviceGetDevResource, (CUdevice, CUdevResource*, CUdevResourceType),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuCtxGetDevResource, (CUcontext, CUdevResource*, CUdevResourceType),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuDevSmResourceSplitByCount,
            (CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned, unsigned),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuDevResourceGenerateDesc, (CUdevResourceDesc*, CUdevResource*, unsigned),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuGreenCtxCreate, (CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuGreenCtxDestroy, (CUgreenCtx), { return driver::no_such_feature(); })
SIMGPU_CALL(cuGreenCtxGetDevResource, (CUgreenCtx, CUdevResource*, CUdevResourceType),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuGreenCtxStreamCreate, (CUstream*, CUgreenCtx, unsigned, int),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuGreenCtxGetId, (CUgreenCtx, unsigned long long*),
            { return driver::no_such_feature(); })
SIMGPU_CALL(cuCtxFromGreenCtx, (CUcontext*, CUgreenCtx), { return driver::no_such_feature(); })
