// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What goes wrong, which code says so, and how long it is remembered.

#include <cstring>

#include "check.cuh"

namespace {

__global__ void store(int* where) { *where = 1; }

void not_a_kernel() {}

void check_last_error() {
    EXPECT(cudaGetLastError() == cudaSuccess);
    int* device = nullptr;
    EXPECT_CODE(cudaErrorMemoryAllocation, cudaMalloc(&device, size_t{1} << 50));
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CUDA(cudaMalloc(&device, 256));
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaSuccess);
    CUDA(cudaFree(device));
    EXPECT_CODE(cudaErrorInvalidValue, cudaFree(device));
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

void check_launch_errors() {
    int* device = nullptr;
    CUDA(cudaMalloc(&device, 256));
    store<<<1, 2048>>>(device);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    store<<<0, 32>>>(device);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT_CODE(cudaErrorInvalidDeviceFunction,
                cudaLaunchKernel(reinterpret_cast<const void*>(not_a_kernel), dim3(1), dim3(1),
                                 nullptr, 0, nullptr));
    EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
    store<<<1, 1>>>(device);
    CUDA(cudaDeviceSynchronize());
    EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(99));
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
    int current = -1;
    CUDA(cudaGetDevice(&current));
    EXPECT(current == 0);
    CUDA(cudaFree(device));
}

void check_texts() {
    EXPECT(std::strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") ==
           0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
    EXPECT(std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(123456)),
                       "unrecognized error code") == 0);
}

void check_reset() {
    int* device = nullptr;
    CUDA(cudaMalloc(&device, 256));
    store<<<1, 1>>>(device);
    CUDA(cudaDeviceReset());
    CUDA(cudaMalloc(&device, 256));
    store<<<1, 1>>>(device);
    CUDA(cudaDeviceSynchronize());
    int value = 0;
    CUDA(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT(value == 1);
}

/// Comes last: nothing works any more after it.
void check_sticky() {
    store<<<1, 1>>>(reinterpret_cast<int*>(64));
    EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    int* device = nullptr;
    EXPECT_CODE(cudaErrorIllegalAddress, cudaMalloc(&device, 256));
    EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

}  // namespace

int main() {
    check_texts();
    check_last_error();
    check_launch_errors();
    check_reset();
    check_sticky();
    std::puts("ok");
    return 0;
}
