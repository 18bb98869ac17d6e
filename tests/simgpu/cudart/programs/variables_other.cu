// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "check.cuh"

namespace {

// The same name as in the other unit, and another value.
__constant__ int offsets[3] = {100, 200, 300};

__global__ void sum(int* out) { *out = offsets[0] + offsets[1] + offsets[2]; }

}  // namespace

int other_unit_sum() {
    int* device = nullptr;
    int host = 0;
    CUDA(cudaMalloc(&device, sizeof host));
    sum<<<1, 1>>>(device);
    CUDA(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(device));
    return host;
}
