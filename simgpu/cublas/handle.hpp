// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/kernels.hpp"

/// What a cublasHandle_t points to. As with the vendor's, one thread uses it at a time.
struct cublasContext {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
    cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
    cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
    int sm_count_target = 0;
    /// What the program set, or 0.
    CUdeviceptr workspace = 0;
    /// Ours, allocated when it is first needed: workspace of handles without one, and the place of
    /// results.
    CUdeviceptr own_workspace = 0;
    bool own_workspace_tried = false;
    CUdeviceptr results = 0;
};

namespace libswap::simgpu::cublas {

/// Makes the handle's context current where the thread has none.
void ensure_context(const cublasContext& handle);

/// Device address that products may use as scratch memory, 0 if there is none to be had.
CUdeviceptr workspace(cublasContext& handle);

/// Device address where a reduction leaves its result for the host to fetch, 0 if there is none to
/// be had.
CUdeviceptr results(cublasContext& handle);

/// A factor as the handle's pointer mode says: `pointer` is on the host, or on the device.
template <typename T>
Scalar scalar(const cublasContext& handle, const T* pointer) {
    if (handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        return {reinterpret_cast<std::uint64_t>(pointer), 0};
    }
    return {0, static_cast<double>(*pointer)};
}

/// What a driver call's answer is in cuBLAS's terms.
cublasStatus_t status_of(CUresult result);

}  // namespace libswap::simgpu::cublas
