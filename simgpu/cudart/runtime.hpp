// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <new>

#include "simgpu/cudart/api.hpp"
#include "simgpu/cudart/driver_table.hpp"

namespace libswap::simgpu::cudart {

/// The runtime's code for a driver's; codes that the runtime does not know become cudaErrorUnknown.
cudaError_t to_runtime(CUresult result) noexcept;

/// Notes an error as this thread's last one; returns it.
cudaError_t remember(cudaError_t error) noexcept;

/// Returns this thread's last error; forgets it if asked.
cudaError_t last_error(bool forget) noexcept;

/// Driver opened and initialised.
cudaError_t enter_driver() noexcept;

/// Driver initialised and a context current: the program's own, or this thread's device's primary
/// one.
cudaError_t enter_context() noexcept;

/// The context that enter_context() found or made current in this thread.
CUcontext entered_context() noexcept;

/// This thread's device: that of its current context, else the one it chose, else 0.
int current_device() noexcept;

/// Makes `device` this thread's, with its primary context current.
cudaError_t choose_device(int device) noexcept;

/// The primary context of a device, retained on first use.
cudaError_t primary_context(int device, CUcontext* context) noexcept;

/// Destroys the primary context of this thread's device.
cudaError_t reset_device() noexcept;

/// Changes whenever a context was reset: what was found in a context before is void.
std::uint64_t context_generation() noexcept;

/// Calls a driver function that may be missing.
template <typename Function, typename... Arguments>
cudaError_t call(Function function, Arguments... arguments) {
    return function == nullptr ? cudaErrorNotSupported : to_runtime(function(arguments...));
}

/// Body of an exported function that needs the driver, but no context.
template <typename Body>
cudaError_t on_driver(Body body) noexcept {
    try {
        cudaError_t error = enter_driver();
        if (error == cudaSuccess) {
            error = body();
        }
        return remember(error);
    } catch (const std::bad_alloc&) {
        return remember(cudaErrorMemoryAllocation);
    } catch (...) {
        return remember(cudaErrorUnknown);
    }
}

/// Body of an exported function that works in a context.
template <typename Body>
cudaError_t on_context(Body body) noexcept {
    return on_driver([&body] {
        const cudaError_t error = enter_context();
        return error == cudaSuccess ? body() : error;
    });
}

inline CUdeviceptr device_pointer(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace libswap::simgpu::cudart
