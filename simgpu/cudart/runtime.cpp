// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "simgpu/cudart/errors.hpp"

namespace libswap::simgpu::cudart {
namespace {

thread_local cudaError_t thread_error = cudaSuccess;
thread_local int thread_device = 0;
thread_local CUcontext thread_context = nullptr;

std::atomic<bool> initialised{false};
std::atomic<std::uint64_t> generation{1};

/// Primary contexts that the runtime holds, by device. Leaked: other threads may outlive main.
struct PrimaryContexts {
    std::mutex mutex;
    std::vector<CUcontext> held;
    /// Contexts that were reset; a thread may still have one of them current.
    std::vector<CUcontext> reset;
};

PrimaryContexts& primaries() {
    static auto* contexts = new PrimaryContexts;
    return *contexts;
}

bool was_reset(CUcontext context) {
    if (generation.load(std::memory_order_acquire) == 1) {
        return false;
    }
    PrimaryContexts& contexts = primaries();
    const std::scoped_lock lock(contexts.mutex);
    return std::find(contexts.reset.begin(), contexts.reset.end(), context) != contexts.reset.end();
}

cudaError_t enter_device(int device) {
    CUcontext context = nullptr;
    const cudaError_t error = primary_context(device, &context);
    thread_context = context;
    return error == cudaSuccess ? call(CUDART_DRIVER(cuCtxSetCurrent, 4000), context) : error;
}

}  // namespace

cudaError_t to_runtime(CUresult result) noexcept {
    // The two enumerations share their values since CUDA 10.1.
    const auto error = static_cast<cudaError_t>(result);
    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        return cudaErrorDeviceUninitialized;
    }
    return is_known(error) ? error : cudaErrorUnknown;
}

cudaError_t remember(cudaError_t error) noexcept {
    if (error != cudaSuccess) {
        thread_error = error;
    }
    return error;
}

cudaError_t last_error(bool forget) noexcept {
    const cudaError_t error = thread_error;
    if (forget) {
        thread_error = cudaSuccess;
    }
    return error;
}

cudaError_t enter_driver() noexcept {
    if (initialised.load(std::memory_order_acquire)) {
        return cudaSuccess;
    }
    cudaError_t error = open_driver_table();
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuInit, 2000), 0U);
    }
    if (error == cudaSuccess) {
        initialised.store(true, std::memory_order_release);
    }
    return error;
}

cudaError_t primary_context(int device, CUcontext* context) noexcept {
    PrimaryContexts& contexts = primaries();
    const std::scoped_lock lock(contexts.mutex);
    const auto index = static_cast<std::size_t>(device);
    if (device < 0) {
        return cudaErrorInvalidDevice;
    }
    if (index < contexts.held.size() && contexts.held[index] != nullptr) {
        *context = contexts.held[index];
        return cudaSuccess;
    }
    CUdevice handle = 0;
    cudaError_t error = call(CUDART_DRIVER(cuDeviceGet, 2000), &handle, device);
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuDevicePrimaryCtxRetain, 7000), context, handle);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (contexts.held.size() <= index) {
        contexts.held.resize(index + 1);
    }
    contexts.held[index] = *context;
    contexts.reset.erase(std::remove(contexts.reset.begin(), contexts.reset.end(), *context),
                         contexts.reset.end());
    return cudaSuccess;
}

cudaError_t enter_context() noexcept {
    CUcontext context = nullptr;
    const cudaError_t error = call(CUDART_DRIVER(cuCtxGetCurrent, 4000), &context);
    if (error != cudaSuccess) {
        return error;
    }
    if (context != nullptr && !was_reset(context)) {
        thread_context = context;
        return cudaSuccess;
    }
    return enter_device(thread_device);
}

CUcontext entered_context() noexcept { return thread_context; }

int current_device() noexcept {
    CUcontext context = nullptr;
    if (call(CUDART_DRIVER(cuCtxGetCurrent, 4000), &context) == cudaSuccess && context != nullptr) {
        CUdevice device = 0;
        if (call(CUDART_DRIVER(cuCtxGetDevice, 2000), &device) == cudaSuccess) {
            return device;
        }
    }
    return thread_device;
}

cudaError_t choose_device(int device) noexcept {
    int count = 0;
    cudaError_t error = call(CUDART_DRIVER(cuDeviceGetCount, 2000), &count);
    if (error != cudaSuccess) {
        return error;
    }
    if (device < 0 || device >= count) {
        return count == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice;
    }
    error = enter_device(device);
    if (error == cudaSuccess) {
        thread_device = device;
    }
    return error;
}

cudaError_t reset_device() noexcept {
    const int device = current_device();
    PrimaryContexts& contexts = primaries();
    const auto index = static_cast<std::size_t>(device);
    const std::scoped_lock lock(contexts.mutex);
    CUdevice handle = 0;
    cudaError_t error = call(CUDART_DRIVER(cuDeviceGet, 2000), &handle, device);
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuDevicePrimaryCtxReset, 7000), handle);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (index < contexts.held.size() && contexts.held[index] != nullptr) {
        contexts.reset.push_back(contexts.held[index]);
        contexts.held[index] = nullptr;
        // The reset leaves our reference behind; a later use takes its own.
        call(CUDART_DRIVER(cuDevicePrimaryCtxRelease, 7000), handle);
    }
    generation.fetch_add(1, std::memory_order_acq_rel);
    return cudaSuccess;
}

std::uint64_t context_generation() noexcept { return generation.load(std::memory_order_acquire); }

}  // namespace libswap::simgpu::cudart

using namespace libswap::simgpu::cudart;

cudaError_t cudaGetLastError() { return last_error(true); }
cudaError_t cudaPeekAtLastError() { return last_error(false); }
