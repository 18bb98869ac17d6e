// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <vector>

#include "simgpu/cudart/registry.hpp"
#include "simgpu/cudart/runtime.hpp"
#include "simgpu/per_thread.hpp"

namespace libswap::simgpu::cudart {
namespace {

struct Configuration {
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes;
    cudaStream_t stream;
};

/// Arguments of <<<>>> on their way from the call to the stub; nested, since arguments may launch
/// too.
std::vector<Configuration>& configurations() {
    return ::simgpu::per_thread<std::vector<Configuration>>();
}

/// The runtime's own code for a shape that no device takes; the driver says "invalid value".
cudaError_t check_shape(dim3 grid, dim3 block) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
        return cudaErrorInvalidConfiguration;
    }
    // The same on every device since compute capability 3.0.
    if (block.x > 1024 || block.y > 1024 || block.z > 64 || grid.x > 0x7FFFFFFF ||
        grid.y > 0xFFFF || grid.z > 0xFFFF || std::uint64_t{block.x} * block.y * block.z > 1024) {
        return cudaErrorInvalidConfiguration;
    }
    return cudaSuccess;
}

cudaError_t launch(Kernel* kernel, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        cudaError_t error = check_shape(grid, block);
        CUfunction function = nullptr;
        if (error == cudaSuccess) {
            error = kernel->function(&function);
        }
        if (error != cudaSuccess) {
            return error;
        }
        return call(CUDART_DRIVER_ON(per_thread, cuLaunchKernel, 4000, 7000), function, grid.x,
                    grid.y, grid.z, block.x, block.y, block.z, static_cast<unsigned>(shared_bytes),
                    stream, arguments, nullptr);
    });
}

cudaError_t launch_cooperative(const void* symbol, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        Kernel* kernel = find_kernel(symbol);
        cudaError_t error = kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
        CUfunction function = nullptr;
        if (error == cudaSuccess) {
            error = check_shape(grid, block);
        }
        if (error == cudaSuccess) {
            error = kernel->function(&function);
        }
        if (error != cudaSuccess) {
            return error;
        }
        return call(CUDART_DRIVER_ON(per_thread, cuLaunchCooperativeKernel, 9000, 9000), function,
                    grid.x, grid.y, grid.z, block.x, block.y, block.z,
                    static_cast<unsigned>(shared_bytes), stream, arguments);
    });
}

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

cudaError_t launch_ex(const cudaLaunchConfig_t* config, const void* symbol, void** arguments,
                      bool per_thread) {
    return on_context([&] {
        if (config == nullptr) {
            return cudaErrorInvalidValue;
        }
        Kernel* kernel = find_kernel(symbol);
        cudaError_t error = kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
        CUfunction function = nullptr;
        if (error == cudaSuccess) {
            error = check_shape(config->gridDim, config->blockDim);
        }
        if (error == cudaSuccess) {
            error = kernel->function(&function);
        }
        if (error != cudaSuccess) {
            return error;
        }
        CUlaunchConfig driver_config{};
        driver_config.gridDimX = config->gridDim.x;
        driver_config.gridDimY = config->gridDim.y;
        driver_config.gridDimZ = config->gridDim.z;
        driver_config.blockDimX = config->blockDim.x;
        driver_config.blockDimY = config->blockDim.y;
        driver_config.blockDimZ = config->blockDim.z;
        driver_config.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
        driver_config.hStream = config->stream;
        // Same layout and ids: the header of each says that it mirrors the other.
        driver_config.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
        driver_config.numAttrs = config->numAttrs;
        return call(CUDART_DRIVER_ON(per_thread, cuLaunchKernelEx, 11060, 11060), &driver_config,
                    function, arguments, nullptr);
    });
}

}  // namespace
}  // namespace libswap::simgpu::cudart

using namespace libswap::simgpu::cudart;

#pragma GCC visibility push(default)
extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     CUstream_st* stream) {
    configurations().push_back({grid, block, shared_bytes, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
    auto& stack = configurations();
    if (stack.empty()) {
        return remember(cudaErrorMissingConfiguration);
    }
    const Configuration top = stack.back();
    stack.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared_bytes = top.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    return cudaSuccess;
}

/// The stub keeps this handle in a static, so it is our own record and works before the driver
/// does.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
    Kernel* found = find_kernel(symbol);
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return found == nullptr ? remember(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
    return launch(reinterpret_cast<Kernel*>(kernel), grid, block, arguments, shared_bytes, stream,
                  false);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
    return launch(reinterpret_cast<Kernel*>(kernel), grid, block, arguments, shared_bytes, stream,
                  true);
}

}  // extern "C"
#pragma GCC visibility pop

cudaError_t cudaLaunchKernel(const void* symbol, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
    return launch(find_kernel(symbol), grid, block, arguments, shared_bytes, stream, false);
}

cudaError_t cudaLaunchKernel_ptsz(const void* symbol, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared_bytes, cudaStream_t stream) {
    return launch(find_kernel(symbol), grid, block, arguments, shared_bytes, stream, true);
}

cudaError_t cudaLaunchCooperativeKernel(const void* symbol, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t stream) {
    return launch_cooperative(symbol, grid, block, arguments, shared_bytes, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* symbol, dim3 grid, dim3 block,
                                             void** arguments, std::size_t shared_bytes,
                                             cudaStream_t stream) {
    return launch_cooperative(symbol, grid, block, arguments, shared_bytes, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* symbol,
                                void** arguments) {
    return launch_ex(config, symbol, arguments, false);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* symbol,
                                     void** arguments) {
    return launch_ex(config, symbol, arguments, true);
}
