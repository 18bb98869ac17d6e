// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Every way to launch, parameters of many kilobytes, attributes, occupancy, entry points of the
// driver.

#include <cooperative_groups.h>
#include <cuda.h>

#include <cstring>

#include "check.cuh"

namespace {

struct Wide {
    int values[1500];
};

__global__ void wide(Wide w, int* out, char tail) {
    out[threadIdx.x] = w.values[threadIdx.x * 10] + tail;
}

__global__ void __launch_bounds__(128) add(int* out, int a, double b) {
    extern __shared__ int staged[];
    staged[threadIdx.x] = a;
    __syncthreads();
    out[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x] + static_cast<int>(b);
}

__global__ void grid_shape(unsigned* out) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

__global__ void never_launched() {}

__global__ void big_shared(int* out) {
    extern __shared__ int staged[];
    staged[16000 + threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = staged[16000 + threadIdx.x];
}

int* device_ints() {
    int* device = nullptr;
    CUDA(cudaMalloc(&device, 8192 * sizeof(int)));
    CUDA(cudaMemset(device, 0, 8192 * sizeof(int)));
    return device;
}

int read(const int* device, int index) {
    int value = 0;
    CUDA(cudaMemcpy(&value, device + index, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

void check_wide(int* device) {
    Wide w;
    for (int i = 0; i < 1500; ++i) {
        w.values[i] = i;
    }
    wide<<<1, 100>>>(w, device, 3);
    CUDA(cudaGetLastError());
    EXPECT(read(device, 99) == 993);
    size_t offset = 1, bytes = 1;
    CUDA(cudaFuncGetParamInfo(reinterpret_cast<const void*>(wide), 1, &offset, &bytes));
    EXPECT(offset == 6000 && bytes == 8);
}

__global__ void across_ctas(int* values) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    const int n = static_cast<int>(grid.size());
    values[i] = i;
    grid.sync();
    const int opposite = values[n - 1 - i];
    grid.sync();
    values[i] += 1000 * opposite;
}

void check_cooperative(int* device) {
    void* arguments[] = {&device};
    const void* symbol = reinterpret_cast<const void*>(across_ctas);
    CUDA(cudaLaunchCooperativeKernel(symbol, dim3(8), dim3(64), arguments, 0, nullptr));
    EXPECT(read(device, 0) == 511000);
    EXPECT(read(device, 511) == 511);
    EXPECT(cudaLaunchCooperativeKernel(symbol, dim3(1 << 20), dim3(64), arguments, 0, nullptr) ==
           cudaErrorCooperativeLaunchTooLarge);
    EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
}

void check_ways(int* device) {
    int a = 5;
    double b = 2.0;
    void* arguments[] = {&device, &a, &b};
    const void* symbol = reinterpret_cast<const void*>(add);
    CUDA(cudaLaunchKernel(symbol, dim3(1), dim3(64), arguments, 256, nullptr));
    EXPECT(read(device, 63) == 7);
    a = 6;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(64);
    config.dynamicSmemBytes = 256;
    CUDA(cudaLaunchKernelExC(&config, symbol, arguments));
    EXPECT(read(device, 63) == 8);
    CUDA(cudaLaunchKernelEx(&config, add, device, 7, 2.0));
    EXPECT(read(device, 63) == 9);
    a = 8;
    CUDA(cudaLaunchCooperativeKernel(symbol, dim3(1), dim3(64), arguments, 256, nullptr));
    EXPECT(read(device, 63) == 10);
    cudaKernel_t kernel;
    CUDA(cudaGetKernel(&kernel, symbol));
    a = 9;
    CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(64), arguments, 256,
                          nullptr));
    EXPECT(read(device, 63) == 11);
    grid_shape<<<dim3(3, 2, 4), dim3(4, 3, 2)>>>(reinterpret_cast<unsigned*>(device));
    CUDA(cudaGetLastError());
    EXPECT(read(device, 24 * 24 - 1) == 23023);
}

void check_attributes() {
    cudaFuncAttributes attributes;
    CUDA(cudaFuncGetAttributes(&attributes, add));
    EXPECT(attributes.maxThreadsPerBlock == 128 && attributes.numRegs > 0);
    EXPECT(attributes.binaryVersion >= 50 && attributes.ptxVersion >= 50);
    CUDA(cudaFuncGetAttributes(&attributes, never_launched));
    EXPECT(attributes.maxThreadsPerBlock == 1024);
    int blocks = 0;
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 128, 1024));
    EXPECT(blocks >= 1 && blocks <= 32);
    int grid = 0, block = 0;
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, never_launched, 0, 0));
    EXPECT(grid > 0 && block >= 32 && block <= 1024);
    CUDA(cudaFuncSetCacheConfig(add, cudaFuncCachePreferShared));
    const char* name = nullptr;
    CUDA(cudaFuncGetName(&name, reinterpret_cast<const void*>(add)));
    EXPECT(std::strstr(name, "add") != nullptr);
}

void check_big_shared(int* device) {
    big_shared<<<1, 32, 66000>>>(device);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CUDA(cudaFuncSetAttribute(big_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 66000));
    big_shared<<<1, 32, 66000>>>(device);
    CUDA(cudaGetLastError());
    EXPECT(read(device, 31) == 31);
}

void check_entry_points() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult status;
    CUDA(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &function, 2000, cudaEnableDefault,
                                          &status));
    EXPECT(status == cudaDriverEntryPointSuccess && function != nullptr);
    int count = 0;
    EXPECT(reinterpret_cast<CUresult (*)(int*)>(function)(&count) == CUDA_SUCCESS && count >= 1);
    CUDA(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 13000, cudaEnableDefault,
                                          &status));
    EXPECT(status == cudaDriverEntryPointSymbolNotFound && function == nullptr);
    CUDA(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &function, 10000, cudaEnableDefault,
                                          &status));
    EXPECT(status == cudaDriverEntryPointVersionNotSufficent && function == nullptr);
}

}  // namespace

int main() {
    int* device = device_ints();
    check_wide(device);
    check_ways(device);
    check_cooperative(device);
    check_attributes();
    check_big_shared(device);
    check_entry_points();
    CUDA(cudaFree(device));
    std::puts("ok");
    return 0;
}
