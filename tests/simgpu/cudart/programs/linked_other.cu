// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "check.cuh"

__device__ int shared_counter = 3;
__constant__ float coefficients[3] = {1, 2, 3};

template <typename T>
__device__ __noinline__ T twice(T x) {
    return x + x;
}

static __device__ __noinline__ float square(float x) { return x * x; }

__device__ float helper(float x) { return square(x) + 1 + twice(1.0F); }

__global__ void read(int* out) { *out = shared_counter; }

int read_counter() {
    int* device = nullptr;
    int host = 0;
    CUDA(cudaMalloc(&device, sizeof host));
    read<<<1, 1>>>(device);
    CUDA(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    return host;
}
