// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudart/graph_params.hpp"

#include <cstring>

#include "simgpu/cudart/copy_shapes.hpp"
#include "simgpu/cudart/registry.hpp"
#include "simgpu/cudart/runtime.hpp"

namespace libswap::simgpu::cudart {

static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
static_assert(sizeof(cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));

namespace {

cudaError_t function_of(const void* symbol, CUfunction* function) {
    Kernel* kernel = find_kernel(symbol);
    return kernel != nullptr ? kernel->function(function) : cudaErrorInvalidDeviceFunction;
}

}  // namespace

cudaError_t driver_kernel(const cudaKernelNodeParams* given, CUDA_KERNEL_NODE_PARAMS* out) {
    if (given == nullptr) {
        return cudaErrorInvalidValue;
    }
    *out = {};
    out->gridDimX = given->gridDim.x;
    out->gridDimY = given->gridDim.y;
    out->gridDimZ = given->gridDim.z;
    out->blockDimX = given->blockDim.x;
    out->blockDimY = given->blockDim.y;
    out->blockDimZ = given->blockDim.z;
    out->sharedMemBytes = given->sharedMemBytes;
    out->kernelParams = given->kernelParams;
    out->extra = given->extra;
    return function_of(given->func, &out->func);
}

void runtime_kernel(const CUDA_KERNEL_NODE_PARAMS& given, cudaKernelNodeParams* out) {
    const void* symbol = find_symbol(given.func);
    // A function that the program got from the driver has no other name.
    out->func = symbol != nullptr ? const_cast<void*>(symbol) : given.func;
    out->gridDim = dim3(given.gridDimX, given.gridDimY, given.gridDimZ);
    out->blockDim = dim3(given.blockDimX, given.blockDimY, given.blockDimZ);
    out->sharedMemBytes = given.sharedMemBytes;
    out->kernelParams = given.kernelParams;
    out->extra = given.extra;
}

cudaError_t driver_node(const cudaGraphNodeParams& given, CUgraphNodeParams* out) {
    // The same layout, but for what names kernels, contexts and shapes of copies.
    std::memcpy(static_cast<void*>(out), &given, sizeof *out);
    if (given.type == cudaGraphNodeTypeKernel) {
        return function_of(given.kernel.func, &out->kernel.func);
    }
    if (given.type == cudaGraphNodeTypeMemcpy) {
        out->memcpy = {};
        out->memcpy.flags = given.memcpy.flags;
        out->memcpy.copyCtx = entered_context();
        return driver_copy(given.memcpy.copyParams, &out->memcpy.copyParams);
    }
    if (given.type == cudaGraphNodeTypeMemset) {
        out->memset.ctx = entered_context();
    }
    if (given.type == cudaGraphNodeTypeConditional) {
        out->conditional.ctx = entered_context();
    }
    return cudaSuccess;
}

void copy_answers(const CUgraphNodeParams& told, cudaGraphNodeParams* out) {
    if (out->type == cudaGraphNodeTypeMemAlloc) {
        out->alloc.dptr = reinterpret_cast<void*>(told.alloc.dptr);
    }
    if (out->type == cudaGraphNodeTypeConditional) {
        out->conditional.phGraph_out = told.conditional.phGraph_out;
    }
}

}  // namespace libswap::simgpu::cudart
