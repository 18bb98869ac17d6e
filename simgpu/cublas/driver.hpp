// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cublas {

/// The driver functions that we call, as members named without suffix: found by dlopen, one dlsym
/// and cuGetProcAddress, as the vendor's library finds them, so that an interposer sees our calls
/// as it sees its.
struct Driver {
#define SIMGPU_CUBLAS_DRIVER(X) \
    X(cuInit)                   \
    X(cuDeviceGet)              \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxGetCurrent)          \
    X(cuCtxSetCurrent)          \
    X(cuLibraryLoadData)        \
    X(cuLibraryGetKernel)       \
    X(cuLaunchKernel)           \
    X(cuMemAlloc)               \
    X(cuMemFree)                \
    X(cuMemcpyDtoHAsync)        \
    X(cuMemcpyHtoDAsync)        \
    X(cuMemcpy2DAsync)          \
    X(cuStreamSynchronize)      \
    X(cuEventCreate)            \
    X(cuEventDestroy)           \
    X(cuEventRecord)            \
    X(cuEventSynchronize)       \
    X(cuEventElapsedTime)
// Two steps, for the names in cuda.h are macros of the names with suffix.
#define SIMGPU_CUBLAS_MEMBER(name) decltype(&::name) name##_fn = nullptr;
    SIMGPU_CUBLAS_DRIVER(SIMGPU_CUBLAS_MEMBER)
#undef SIMGPU_CUBLAS_MEMBER
    decltype(&::simgpuHostKernelRegister) host_kernel_register = nullptr;
};

/// The table, filled at the first call and kept. nullptr, said once, where there is no stand-in
/// driver.
/// @thread any
const Driver* driver();

/// The thread's context, or, where it has none, the primary context of device 0, made current as
/// the CUDA runtime would.
/// Only where there is a driver. @thread any
CUresult current_context(CUcontext& context);

/// A kernel whose work is done here.
struct HostKernel {
    CUresult status = CUDA_ERROR_NOT_INITIALIZED;
    CUkernel kernel = nullptr;
};

/// Loads a kernel of one parameter of so many bytes that does `work`. It is never unloaded: kernels
/// of a library live in every context, also after a reset of the device. @thread any
HostKernel load_host_kernel(const char* name, std::size_t param_bytes, SimgpuHostKernel work);

/// Makes the context current where the thread has none. Only where there is a driver. @thread any
void ensure_context(CUcontext context);

}  // namespace libswap::simgpu::cublas
