// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/handle.hpp"

#include <new>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cublas {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{4} << 20;
constexpr std::size_t kResultsBytes = 256;

CUdeviceptr allocate(const cublasContext& handle, std::size_t bytes) {
    ensure_context(handle);
    CUdeviceptr address = 0;
    return driver()->cuMemAlloc_fn(&address, bytes) == CUDA_SUCCESS ? address : 0;
}

}  // namespace

void ensure_context(const cublasContext& handle) { ensure_context(handle.context); }

CUdeviceptr workspace(cublasContext& handle) {
    if (handle.workspace != 0) {
        return handle.workspace;
    }
    if (!handle.own_workspace_tried) {
        handle.own_workspace_tried = true;
        handle.own_workspace = allocate(handle, kWorkspaceBytes);
    }
    return handle.own_workspace;
}

CUdeviceptr results(cublasContext& handle) {
    if (handle.results == 0) {
        handle.results = allocate(handle, kResultsBytes);
    }
    return handle.results;
}

cublasStatus_t status_of(CUresult result) {
    switch (result) {
        case CUDA_SUCCESS:
            return CUBLAS_STATUS_SUCCESS;
        case CUDA_ERROR_NOT_INITIALIZED:
        case CUDA_ERROR_INVALID_CONTEXT:
            return CUBLAS_STATUS_NOT_INITIALIZED;
        case CUDA_ERROR_OUT_OF_MEMORY:
            return CUBLAS_STATUS_ALLOC_FAILED;
        default:
            return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (driver() == nullptr || !blas::load()) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    CUcontext context = nullptr;
    if (current_context(context) != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = new (std::nothrow) cublasContext{.context = context};
    return *handle == nullptr ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    ensure_context(*handle);
    for (CUdeviceptr address : {handle->own_workspace, handle->results}) {
        if (address != 0) {
            driver()->cuMemFree_fn(address);
        }
    }
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->stream = stream;
    handle->workspace = 0;  // as documented: back to the default one
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* address, std::size_t bytes) {
    constexpr std::uint64_t kAlignment = 256;
    if (handle == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    const auto workspace = reinterpret_cast<CUdeviceptr>(address);
    if (workspace % kAlignment != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->workspace = workspace;
    // Set to nothing means: do without.
    handle->own_workspace_tried = handle->own_workspace_tried || workspace == 0 || bytes == 0;
    return CUBLAS_STATUS_SUCCESS;
}

// The settings that are only kept: a getter and a setter each.
#define SIMGPU_CUBLAS_SETTING(Name, Type, field)                         \
    cublasStatus_t cublasGet##Name(cublasHandle_t handle, Type* value) { \
        if (handle == nullptr) {                                         \
            return CUBLAS_STATUS_NOT_INITIALIZED;                        \
        }                                                                \
        if (value == nullptr) {                                          \
            return CUBLAS_STATUS_INVALID_VALUE;                          \
        }                                                                \
        *value = handle->field;                                          \
        return CUBLAS_STATUS_SUCCESS;                                    \
    }
#define SIMGPU_CUBLAS_SETTER(Name, Type, field)                         \
    cublasStatus_t cublasSet##Name(cublasHandle_t handle, Type value) { \
        if (handle == nullptr) {                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                       \
        }                                                               \
        handle->field = value;                                          \
        return CUBLAS_STATUS_SUCCESS;                                   \
    }
SIMGPU_CUBLAS_SETTING(Stream_v2, cudaStream_t, stream)
SIMGPU_CUBLAS_SETTING(PointerMode_v2, cublasPointerMode_t, pointer_mode)
SIMGPU_CUBLAS_SETTER(PointerMode_v2, cublasPointerMode_t, pointer_mode)
SIMGPU_CUBLAS_SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SIMGPU_CUBLAS_SETTER(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SIMGPU_CUBLAS_SETTING(MathMode, cublasMath_t, math_mode)
SIMGPU_CUBLAS_SETTER(MathMode, cublasMath_t, math_mode)
SIMGPU_CUBLAS_SETTING(SmCountTarget, int, sm_count_target)
SIMGPU_CUBLAS_SETTER(SmCountTarget, int, sm_count_target)
#undef SIMGPU_CUBLAS_SETTING
#undef SIMGPU_CUBLAS_SETTER

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
    if (version == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    switch (type) {
        case MAJOR_VERSION:
            *value = CUBLAS_VER_MAJOR;
            return CUBLAS_STATUS_SUCCESS;
        case MINOR_VERSION:
            *value = CUBLAS_VER_MINOR;
            return CUBLAS_STATUS_SUCCESS;
        case PATCH_LEVEL:
            *value = CUBLAS_VER_PATCH;
            return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

std::size_t cublasGetCudartVersion(void) { return CUDA_VERSION; }

const char* cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
#define SIMGPU_CUBLAS_NAME(name) \
    case name:                   \
        return #name;
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_SUCCESS)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_ALLOC_FAILED)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_INVALID_VALUE)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_MAPPING_ERROR)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
        SIMGPU_CUBLAS_NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef SIMGPU_CUBLAS_NAME
    }
    return "unknown cuBLAS status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "success";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "the library was not initialized";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "a resource could not be allocated";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "an argument is not valid";
        case CUBLAS_STATUS_ARCH_MISMATCH:
            return "the device lacks a feature that is needed";
        case CUBLAS_STATUS_MAPPING_ERROR:
            return "device memory could not be reached";
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return "work on the device failed";
        case CUBLAS_STATUS_INTERNAL_ERROR:
            return "an operation inside the library failed";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "the function is not supported";
        case CUBLAS_STATUS_LICENSE_ERROR:
            return "the license could not be checked";
    }
    return "unknown cuBLAS status";
}

cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
    if (callback == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *callback = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
