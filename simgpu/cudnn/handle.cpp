// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/handle.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cudnn {
namespace {

thread_local const char* t_last_error = "";

// torch 2.15 was built with 9.26, and where it asks (RNNs) refuses what says that it is older.
constexpr int kNewest = 26;
constexpr int kMajor = CUDNN_MAJOR;
constexpr int kMinor = std::max(CUDNN_MINOR, kNewest);
constexpr int kPatch = CUDNN_MINOR < kNewest ? 0 : CUDNN_PATCHLEVEL;

}  // namespace

void ensure_context(const cudnnContext& handle) { cublas::ensure_context(handle.context); }

cudnnStatus_t status_of(CUresult result) {
    switch (result) {
        case CUDA_SUCCESS:
            return CUDNN_STATUS_SUCCESS;
        case CUDA_ERROR_NOT_INITIALIZED:
        case CUDA_ERROR_INVALID_CONTEXT:
            return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the driver is not initialised");
        case CUDA_ERROR_OUT_OF_MEMORY:
            return refuse(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                          "the device is out of memory");
        default:
            return refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, "a call of the driver failed");
    }
}

cudnnStatus_t refuse(cudnnStatus_t status, const char* why) {
    t_last_error = why;
    return status;
}

}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are one-liners
using libswap::simgpu::cublas::driver;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    if (handle == nullptr) {
        return bad_param("no place for the handle");
    }
    *handle = nullptr;
    CUcontext context = nullptr;
    if (driver() == nullptr || libswap::simgpu::cublas::current_context(context) != CUDA_SUCCESS) {
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device");
    }
    *handle = new (std::nothrow) cudnnContext{.context = context};
    return *handle == nullptr ? refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "memory")
                              : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    if (handle == nullptr) {
        return bad_param("no handle");
    }
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (handle == nullptr) {
        return bad_param("no handle");
    }
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
    if (handle == nullptr || stream == nullptr) {
        return bad_param("no handle, or no place for the stream");
    }
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

std::size_t cudnnGetVersion(void) { return kMajor * 10000 + kMinor * 100 + kPatch; }
std::size_t cudnnGetMaxDeviceVersion(void) { return CUDNN_MAX_DEVICE_VERSION; }
std::size_t cudnnGetCudartVersion(void) { return CUDA_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr) {
        return bad_param("no place for the value");
    }
    switch (type) {
        case MAJOR_VERSION:
            *value = kMajor;
            return CUDNN_STATUS_SUCCESS;
        case MINOR_VERSION:
            *value = kMinor;
            return CUDNN_STATUS_SUCCESS;
        case PATCH_LEVEL:
            *value = kPatch;
            return CUDNN_STATUS_SUCCESS;
    }
    return refuse(CUDNN_STATUS_INVALID_VALUE, "no such property");
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (static_cast<int>(status)) {
#define SIMGPU_CUDNN_STATUS(name) \
    case CUDNN_STATUS_##name:     \
        return "CUDNN_STATUS_" #name;
#include "simgpu/cudnn/status.def"
#undef SIMGPU_CUDNN_STATUS
    }
    return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char* message, std::size_t max_size) {
    if (message == nullptr || max_size == 0) {
        return;
    }
    const std::size_t length = std::min(std::strlen(t_last_error), max_size - 1);
    std::memcpy(message, t_last_error, length);
    message[length] = '\0';
    t_last_error = "";
}

cudnnStatus_t cudnnSetCallback(unsigned, void*, cudnnCallback_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnGetCallback(unsigned* mask, void** udata, cudnnCallback_t* callback) {
    if (mask == nullptr || udata == nullptr || callback == nullptr) {
        return bad_param("no place for the answer");
    }
    *mask = 0;
    *udata = nullptr;
    *callback = nullptr;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }

}  // extern "C"
