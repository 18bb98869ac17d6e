// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>

#include "simgpu/cudart/registry.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

cudaError_t find_function(const void* symbol, CUfunction* function) {
    Kernel* kernel = find_kernel(symbol);
    return kernel == nullptr ? cudaErrorInvalidDeviceFunction : kernel->function(function);
}

template <typename Body>
cudaError_t on_function(const void* symbol, Body body) {
    return on_context([&] {
        CUfunction function = nullptr;
        const cudaError_t error = find_function(symbol, &function);
        return error == cudaSuccess ? body(function) : error;
    });
}

/// 0 where this driver does not know the attribute.
int attribute(CUfunction function, CUfunction_attribute which) {
    int value = 0;
    const cudaError_t error =
        call(CUDART_DRIVER(cuFuncGetAttribute, 2020), &value, which, function);
    return error == cudaSuccess ? value : 0;
}

void fill(cudaFuncAttributes& attributes, CUfunction function) {
    std::memset(&attributes, 0, sizeof attributes);
    const auto get = [function](CUfunction_attribute which) { return attribute(function, which); };
    attributes.sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes.constSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes.localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes.maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes.numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes.ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes.binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes.cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes.maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes.preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes.clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    attributes.requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    attributes.requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    attributes.requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    attributes.clusterSchedulingPolicyPreference =
        get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    attributes.nonPortableClusterSizeAllowed =
        get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
}

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
    CUlaunchConfig result{};
    result.gridDimX = config.gridDim.x;
    result.gridDimY = config.gridDim.y;
    result.gridDimZ = config.gridDim.z;
    result.blockDimX = config.blockDim.x;
    result.blockDimY = config.blockDim.y;
    result.blockDimZ = config.blockDim.z;
    result.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    result.hStream = config.stream;
    result.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
    result.numAttrs = config.numAttrs;
    return result;
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
    return on_function(symbol, [&](CUfunction function) {
        if (attributes == nullptr) {
            return cudaErrorInvalidValue;
        }
        fill(*attributes, function);
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void* symbol, cudaFuncAttribute attribute, int value) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuFuncSetAttribute, 9000), function,
                    static_cast<CUfunction_attribute>(attribute), value);
    });
}

cudaError_t cudaFuncSetCacheConfig(const void* symbol, cudaFuncCache config) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuFuncSetCacheConfig, 3000), function,
                    static_cast<CUfunc_cache>(config));
    });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* symbol, cudaSharedMemConfig config) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuFuncSetSharedMemConfig, 4020), function,
                    static_cast<CUsharedconfig>(config));
    });
}

cudaError_t cudaFuncGetName(const char** name, const void* symbol) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuFuncGetName, 12030), name, function);
    });
}

cudaError_t cudaFuncGetParamInfo(const void* symbol, size_t index, size_t* offset, size_t* bytes) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuFuncGetParamInfo, 12040), function, index, offset, bytes);
    });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
    return on_context(
        [&] { return find_function(symbol, reinterpret_cast<CUfunction*>(function)); });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
    return on_context([&] {
        Kernel* found = find_kernel(symbol);
        if (found == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        CUkernel handle = nullptr;
        const cudaError_t error = found->handle(&handle);
        if (error == cudaSuccess) {
            // Launches take the handle in place of the symbol.
            adopt_kernel(handle);
            *kernel = reinterpret_cast<cudaKernel_t>(handle);
        }
        return error;
    });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuKernelSetAttribute, 12000),
                    static_cast<CUfunction_attribute>(attribute), value,
                    reinterpret_cast<CUkernel>(kernel), device);
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* symbol,
                                                          int block_threads, size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, symbol, block_threads, shared_bytes, cudaOccupancyDefault);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* symbol,
                                                                   int block_threads,
                                                                   size_t shared_bytes,
                                                                   unsigned flags) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000),
                    blocks, function, block_threads, shared_bytes, flags);
    });
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* symbol, int blocks,
                                                      int block_threads) {
    return on_function(symbol, [&](CUfunction function) {
        return call(CUDART_DRIVER(cuOccupancyAvailableDynamicSMemPerBlock, 10020), bytes, function,
                    blocks, block_threads);
    });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* symbol,
                                                 const cudaLaunchConfig_t* config) {
    return on_function(symbol, [&](CUfunction function) {
        const CUlaunchConfig wanted = driver_config(*config);
        return call(CUDART_DRIVER(cuOccupancyMaxPotentialClusterSize, 11070), size, function,
                    &wanted);
    });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* symbol,
                                           const cudaLaunchConfig_t* config) {
    return on_function(symbol, [&](CUfunction function) {
        const CUlaunchConfig wanted = driver_config(*config);
        return call(CUDART_DRIVER(cuOccupancyMaxActiveClusters, 11070), count, function, &wanted);
    });
}
