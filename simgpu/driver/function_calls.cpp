// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>

#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/occupancy.hpp"

namespace simgpu::driver {
namespace {

CUresult get_attribute(int* value, CUfunction_attribute attribute, const Function& function) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const image::KernelInfo& info = *function.info;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = function.max_threads();
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(info.static_shared_bytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(info.local_bytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = static_cast<int>(info.registers);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            *value = static_cast<int>(function.architecture);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = machine().profile().compute_major * 10 + machine().profile().compute_minor;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = max_dynamic_shared_bytes(function);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = function.shared_carveout;
            return CUDA_SUCCESS;
        default:
            if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
                return CUDA_ERROR_INVALID_VALUE;
            *value = 0;
            return CUDA_SUCCESS;
    }
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
    constexpr int kCarveoutDefault = -1;
    constexpr int kCarveoutMax = 100;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
            int limit = shared_memory_limits().per_block_optin -
                        static_cast<int>(function.info->static_shared_bytes);
            if (value < 0 || value > limit) return CUDA_ERROR_INVALID_VALUE;
            function.max_dynamic_shared_bytes = value;
            return CUDA_SUCCESS;
        }
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < kCarveoutDefault || value > kCarveoutMax) return CUDA_ERROR_INVALID_VALUE;
            function.shared_carveout = value;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult parameter_info(const image::KernelInfo& info, std::size_t index, std::size_t* offset,
                        std::size_t* bytes) {
    if (offset == nullptr || index >= info.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = info.parameters[index].offset;
    if (bytes != nullptr) *bytes = info.parameters[index].bytes;
    return CUDA_SUCCESS;
}

/// The function of a kernel on a device: in the current context if that is the device's, else its
/// primary one.
CUresult function_on(CUkernel kernel, CUdevice device, std::shared_ptr<Function>& out) {
    Gpu* gpu = nullptr;
    SIMGPU_TRY(find_gpu(device, gpu));
    Context* context = current_context_or_null();
    if (context == nullptr || &context->gpu != gpu) context = gpu->primary.active();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return find_function(reinterpret_cast<CUfunction>(kernel), context, out);
}

CUresult active_blocks(int* out, CUfunction handle, int block_threads, std::size_t dynamic_bytes) {
    std::shared_ptr<Function> function;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_function(handle, nullptr, function));
    *out = active_blocks_per_sm(*function, block_threads, dynamic_bytes);
    return CUDA_SUCCESS;
}

CUresult potential_block_size(int* grid, int* block, CUfunction handle,
                              CUoccupancyB2DSize dynamic_bytes_of, std::size_t dynamic_bytes,
                              int limit) {
    std::shared_ptr<Function> function;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_function(handle, nullptr, function));
    int largest = function->max_threads();
    if (limit > 0) largest = std::min(largest, limit);
    int best_threads = 0;
    int best_blocks = 0;
    // Larger blocks win among equals, so from the largest down.
    int first = std::max(largest / kWarpThreads * kWarpThreads, std::min(largest, kWarpThreads));
    for (int threads = first; threads > 0; threads -= kWarpThreads) {
        std::size_t bytes = dynamic_bytes_of != nullptr ? dynamic_bytes_of(threads) : dynamic_bytes;
        int blocks = active_blocks_per_sm(*function, threads, bytes);
        if (blocks * threads > best_blocks * best_threads) {
            best_threads = threads;
            best_blocks = blocks;
        }
    }
    *block = best_threads;
    *grid = best_blocks * machine().profile().sm_count;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction handle), {
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    return driver::get_attribute(value, attribute, *function);
})
SIMGPU_CALL(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value), {
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    return driver::set_attribute(*function, attribute, value);
})
SIMGPU_CALL(cuFuncSetCacheConfig, (CUfunction handle, CUfunc_cache), {
    std::shared_ptr<driver::Function> function;  // a hint: there is no cache to configure
    return driver::find_function(handle, nullptr, function);
})
SIMGPU_CALL(cuFuncSetSharedMemConfig, (CUfunction handle, CUsharedconfig), {
    std::shared_ptr<driver::Function> function;
    return driver::find_function(handle, nullptr, function);
})
SIMGPU_CALL(cuFuncGetModule, (CUmodule * out, CUfunction handle), {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    *out = function->module;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuFuncGetName, (const char** name, CUfunction handle), {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    *name = function->info->name.c_str();
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t* offset, size_t* bytes), {
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    return driver::parameter_info(*function->info, index, offset, bytes);
})
SIMGPU_CALL(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction handle), {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_function(handle, nullptr, function));
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuFuncLoad, (CUfunction handle), {
    std::shared_ptr<driver::Function> function;
    return driver::find_function(handle, nullptr, function);
})

SIMGPU_CALL(cuKernelGetParamInfo, (CUkernel handle, size_t index, size_t* offset, size_t* bytes), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    auto kernel = driver::kernels().find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return driver::parameter_info(*kernel->info, index, offset, bytes);
})
SIMGPU_CALL(cuKernelGetAttribute,
            (int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device), {
                std::shared_ptr<driver::Function> function;
                SIMGPU_TRY(driver::function_on(kernel, device, function));
                return driver::get_attribute(value, attribute, *function);
            })
SIMGPU_CALL(cuKernelSetAttribute,
            (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device), {
                std::shared_ptr<driver::Function> function;
                SIMGPU_TRY(driver::function_on(kernel, device, function));
                return driver::set_attribute(*function, attribute, value);
            })
SIMGPU_CALL(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache, CUdevice device), {
    std::shared_ptr<driver::Function> function;
    return driver::function_on(kernel, device, function);
})

SIMGPU_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
            (int* blocks, CUfunction function, int threads, size_t dynamic_bytes),
            { return driver::active_blocks(blocks, function, threads, dynamic_bytes); })
SIMGPU_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
            (int* blocks, CUfunction function, int threads, size_t dynamic_bytes, unsigned flags), {
                if ((flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
                return driver::active_blocks(blocks, function, threads, dynamic_bytes);
            })
SIMGPU_CALL(cuOccupancyMaxPotentialBlockSize,
            (int* grid, int* block, CUfunction function, CUoccupancyB2DSize bytes_of, size_t bytes,
             int limit),
            { return driver::potential_block_size(grid, block, function, bytes_of, bytes, limit); })
SIMGPU_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
            (int* grid, int* block, CUfunction function, CUoccupancyB2DSize bytes_of, size_t bytes,
             int limit, unsigned flags),
            {
                if ((flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
                return driver::potential_block_size(grid, block, function, bytes_of, bytes, limit);
            })
SIMGPU_CALL(cuOccupancyAvailableDynamicSMemPerBlock,
            (size_t * bytes, CUfunction handle, int blocks, int threads), {
                if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
                if (bytes == nullptr || blocks <= 0 || threads <= 0)
                    return CUDA_ERROR_INVALID_VALUE;
                std::shared_ptr<driver::Function> function;
                SIMGPU_TRY(driver::find_function(handle, nullptr, function));
                *bytes = driver::available_dynamic_shared_bytes(*function, blocks);
                return CUDA_SUCCESS;
            })
