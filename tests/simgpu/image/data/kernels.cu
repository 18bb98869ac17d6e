// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Compiled by nvcc in every way that the tests read: cubin, PTX, fat binaries of several packings.

__device__ int zeros[100];
__device__ int table[4] = {1, 2, 3, 4};
__device__ int* middle = &table[2];
__constant__ float scale[3] = {2.5F, 0.5F, 1.5F};
__managed__ int shared_with_host = 5;

extern "C" __global__ void __launch_bounds__(256) small(int* a, char b, double c, short d) {
    __shared__ float staged[33];
    staged[threadIdx.x] = static_cast<float>(b) + scale[a[1] & 1];
    __syncthreads();
    a[0] = static_cast<int>(staged[a[2] & 31] + c) + d + zeros[1] + *middle + shared_with_host;
}

struct Wide {
    char bytes[6000];
};

extern "C" __global__ void wide(Wide w, int* out) { out[threadIdx.x] = w.bytes[threadIdx.x * 10]; }

extern "C" __global__ void none() {}
