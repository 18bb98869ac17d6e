// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Built with -rdc=true: the kernel calls, reads and writes what the other unit defines.

#include "check.cuh"

extern __device__ int shared_counter;
extern __constant__ float coefficients[3];
__device__ float helper(float x);

template <typename T>
__device__ __noinline__ T twice(T x) {
    return x + x;
}

__global__ void run(float* values) {
    values[threadIdx.x] = helper(values[threadIdx.x]) + coefficients[1] + twice(1.0F);
    atomicAdd(&shared_counter, 1);
}

int read_counter();

int main() {
    float host[32];
    float* device = nullptr;
    for (int i = 0; i < 32; ++i) {
        host[i] = static_cast<float>(i);
    }
    CUDA(cudaMalloc(&device, sizeof host));
    CUDA(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    run<<<1, 32>>>(device);
    CUDA(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) {
        EXPECT(host[i] == static_cast<float>(i * i) + 1 + 2 + 2 + 2);
    }
    EXPECT(read_counter() == 3 + 32);
    std::puts("ok");
    return 0;
}
