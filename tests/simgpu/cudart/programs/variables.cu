// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Globals and constants with initialisers, copies to and from symbols, statics in kernels,
// templates, managed variables, two translation units with names in common.

#include "check.cuh"

int other_unit_sum();

namespace {

__constant__ float scale = 2.5F;
__constant__ int offsets[4] = {10, 20, 30, 40};
__device__ int table[4] = {1, 2, 3, 4};
__device__ int* middle = &table[2];
__device__ double big[300];
__managed__ int shared_value = 5;
__managed__ float shared_array[8];

template <typename T>
__global__ void transform(T* values, int count) {
    static __device__ int launches = 7;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = values[i] * static_cast<T>(scale) + static_cast<T>(table[i & 3] + *middle);
    }
    if (i == 0) {
        atomicAdd(&launches, 1);
        table[3] = launches;
    }
}

__global__ void fill_big(double value) { big[threadIdx.x] = value + offsets[threadIdx.x & 3]; }

__global__ void use_managed() {
    shared_array[threadIdx.x] = static_cast<float>(shared_value) + threadIdx.x;
    if (threadIdx.x == 0) {
        shared_value = 77;
    }
}

template <typename T>
void check_transform() {
    T host[100];
    T* device = nullptr;
    for (int i = 0; i < 100; ++i) {
        host[i] = static_cast<T>(i);
    }
    CUDA(cudaMalloc(&device, sizeof host));
    CUDA(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    int before[4];
    CUDA(cudaMemcpyFromSymbol(before, table, sizeof before));
    float factor = 0;
    CUDA(cudaMemcpyFromSymbol(&factor, scale, sizeof factor));
    transform<<<4, 32>>>(device, 100);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; ++i) {
        if ((i & 3) != 3) {
            EXPECT(host[i] == static_cast<T>(i) * static_cast<T>(factor) +
                                  static_cast<T>(before[i & 3] + before[2]));
        }
    }
    CUDA(cudaFree(device));
}

void check_symbols() {
    void* address = nullptr;
    size_t bytes = 0;
    CUDA(cudaGetSymbolAddress(&address, table));
    CUDA(cudaGetSymbolSize(&bytes, table));
    EXPECT(address != nullptr && bytes == sizeof table);
    CUDA(cudaGetSymbolSize(&bytes, big));
    EXPECT(bytes == sizeof big);
    int part[2] = {-1, -2};
    CUDA(cudaMemcpyToSymbol(table, part, sizeof part, 4));
    int whole[4];
    CUDA(cudaMemcpy(whole, address, sizeof whole, cudaMemcpyDeviceToHost));
    EXPECT(whole[0] == 1 && whole[1] == -1 && whole[2] == -2);
    EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, part, sizeof part, 12));
    EXPECT_CODE(cudaErrorInvalidMemcpyDirection,
                cudaMemcpyToSymbol(table, part, sizeof part, 0, cudaMemcpyDeviceToHost));
    EXPECT_CODE(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(part, part, sizeof part));
    const float doubled = 5.0F;
    CUDA(cudaMemcpyToSymbolAsync(scale, &doubled, sizeof doubled, 0, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    cudaGetLastError();
}

void check_constants() {
    fill_big<<<1, 300>>>(0.5);
    double first = 0;
    CUDA(cudaMemcpyFromSymbol(&first, big, sizeof first, 299 * sizeof first));
    EXPECT(first == 40.5);
    const int changed[2] = {7, 8};
    CUDA(cudaMemcpyToSymbol(offsets, changed, sizeof changed, 8));
    fill_big<<<1, 300>>>(0.5);
    CUDA(cudaMemcpyFromSymbol(&first, big, sizeof first, 299 * sizeof first));
    EXPECT(first == 8.5);
}

void check_managed() {
    EXPECT(shared_value == 5);
    shared_value = 9;
    use_managed<<<1, 8>>>();
    CUDA(cudaDeviceSynchronize());
    EXPECT(shared_value == 77);
    for (int i = 0; i < 8; ++i) {
        EXPECT(shared_array[i] == 9.0F + static_cast<float>(i));
    }
}

}  // namespace

int main() {
    check_transform<float>();
    check_transform<int>();
    check_symbols();
    check_transform<float>();
    check_constants();
    check_managed();
    EXPECT(other_unit_sum() == 600);
    std::puts("ok");
    return 0;
}
