// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Properties, attributes, versions and limits agree with each other and with the driver.

#include <cuda_profiler_api.h>

#include <cstring>

#include "check.cuh"

namespace {

int attribute(cudaDeviceAttr which) {
    int value = -1;
    CUDA(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

void check_properties() {
    cudaDeviceProp p;
    CUDA(cudaGetDeviceProperties(&p, 0));
    EXPECT(std::strlen(p.name) > 0);
    EXPECT(p.warpSize == 32 && p.maxThreadsPerBlock == 1024);
    EXPECT(p.major * 10 + p.minor >= 70);
    EXPECT(p.major == attribute(cudaDevAttrComputeCapabilityMajor));
    EXPECT(p.minor == attribute(cudaDevAttrComputeCapabilityMinor));
    EXPECT(p.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
    EXPECT(p.multiProcessorCount > 0);
    EXPECT(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[2] == 64);
    EXPECT(p.maxGridSize[0] == 2147483647 && p.maxGridSize[1] == 65535);
    EXPECT(p.sharedMemPerBlock == 49152);
    EXPECT(p.sharedMemPerBlockOptin >= p.sharedMemPerBlock);
    EXPECT(p.sharedMemPerMultiprocessor >= p.sharedMemPerBlockOptin);
    EXPECT(p.regsPerBlock == 65536 && p.regsPerMultiprocessor >= 65536);
    EXPECT(p.totalConstMem == 65536);
    EXPECT(p.maxThreadsPerMultiProcessor >= 1024);
    EXPECT(p.unifiedAddressing == 1 && p.canMapHostMemory == 1 && p.asyncEngineCount >= 1);
    EXPECT(p.l2CacheSize > 0 && p.memoryBusWidth > 0);
    EXPECT(p.cooperativeLaunch == attribute(cudaDevAttrCooperativeLaunch));
    EXPECT(p.concurrentKernels == 1);
    size_t free_bytes = 0, total_bytes = 0;
    CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    EXPECT(total_bytes <= p.totalGlobalMem && p.totalGlobalMem > 0);
    char bus[32];
    CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    int device = -1;
    CUDA(cudaDeviceGetByPCIBusId(&device, bus));
    EXPECT(device == 0);
    EXPECT_CODE(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 99));
    cudaGetLastError();
}

void check_versions() {
    int runtime = 0, driver = 0;
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUDA(cudaDriverGetVersion(&driver));
    EXPECT(runtime == 13000 && driver >= runtime);
}

void check_limits() {
    size_t bytes = 0;
    CUDA(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
    EXPECT(bytes >= 1024);
    CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    CUDA(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
    EXPECT(bytes >= 4096);
    CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
    cudaFuncCache cache;
    CUDA(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    CUDA(cudaDeviceGetCacheConfig(&cache));
    unsigned flags = 0;
    CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CUDA(cudaGetDeviceFlags(&flags));
    EXPECT((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync);
    CUDA(cudaProfilerStart());
    CUDA(cudaProfilerStop());
}

void check_peers() {
    int count = 0;
    CUDA(cudaGetDeviceCount(&count));
    EXPECT(count >= 1);
    int can = 1;
    CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
    EXPECT(can == 0);
    for (int device = 0; device < count; ++device) {
        CUDA(cudaSetDevice(device));
        int current = -1;
        CUDA(cudaGetDevice(&current));
        EXPECT(current == device);
    }
    CUDA(cudaSetDevice(0));
}

}  // namespace

int main() {
    check_versions();
    check_properties();
    check_limits();
    check_peers();
    std::puts("ok");
    return 0;
}
