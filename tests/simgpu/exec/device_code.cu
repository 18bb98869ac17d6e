// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Functions, tables, variables, printf and assert, for kernels_test.cpp.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cassert>
#include <cstdio>

__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int counter = 41;
__device__ int table[4] = {10, 20, 30, 40};
__device__ int* table_end = table + 3;

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ float twice(float x) { return x * 2.0f; }
__device__ __noinline__ float negated(float x) { return -x; }
__device__ float (*const operations[2])(float) = {twice, negated};

struct Pair {
    int key;
    double values[3];
};

__device__ __noinline__ Pair shifted(Pair p, int by) {
    p.key += by;
    for (int k = 0; k < 3; ++k) p.values[k] *= by;
    return p;
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

extern "C" {

__global__ void call_recursive(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 11); }

__global__ void call_indirect(const float* in, float* out) {
    out[threadIdx.x] = operations[threadIdx.x & 1](in[threadIdx.x]);
}

__global__ void call_struct(Pair start, double* out) {
    const Pair p = shifted(start, threadIdx.x);
    out[threadIdx.x] = p.key + p.values[0] + p.values[1] + p.values[2];
}

__global__ void call_virtual(float* out) {
    Square square(threadIdx.x);
    Circle circle(threadIdx.x);
    const Shape* shape = threadIdx.x % 2 ? static_cast<const Shape*>(&square) : &circle;
    out[threadIdx.x] = shape->area();
}

__global__ void use_variables(float* out, int* ints) {
    out[threadIdx.x] = weights[threadIdx.x % 8];
    ints[threadIdx.x] = *table_end + table[threadIdx.x % 4];
    if (threadIdx.x == 0) atomicAdd(&counter, 1);
}

__global__ void local_array(const int* in, int* out) {
    int values[16];
    for (int k = 0; k < 16; ++k) values[k] = in[threadIdx.x] * k;
    for (int k = 0; k < 16; ++k) values[(k * 7 + threadIdx.x) % 16] += k;
    out[threadIdx.x] = values[in[threadIdx.x] & 15];
}

__global__ void print(int n, float f, const char* unused) {
    if (threadIdx.x < 2)
        printf("thread %d of %u: %5.2f %s %lld %c%%\n", threadIdx.x, blockDim.x, f, "text",
               1LL << 40, 'x');
}

__global__ void fail_assert(int n) { assert(threadIdx.x < n); }

__global__ void stop(int n) {
    if (threadIdx.x == n) __trap();
}

__global__ void halves(const float* in, float* out, unsigned short* bits) {
    const int t = threadIdx.x;
    const __half h = __float2half(in[t]);
    const __half2 pair = __halves2half2(h, __float2half(2.0f));
    const __half2 sum = __hfma2(pair, pair, pair);
    out[t * 4 + 0] = __half2float(h);
    out[t * 4 + 1] = __low2float(sum);
    out[t * 4 + 2] = __high2float(sum);
    out[t * 4 + 3] = __bfloat162float(__float2bfloat16(in[t]));
    bits[t] = __half_as_ushort(__hadd(h, h));
}

__global__ void generic_addresses(int* out, int which) {
    __shared__ int shared_value[64];
    int local_value[2] = {int(threadIdx.x) * 3, which};
    shared_value[threadIdx.x] = threadIdx.x * 5;
    out[threadIdx.x] = threadIdx.x * 7;
    const int* p = threadIdx.x % 3 == 0   ? shared_value + threadIdx.x
                   : threadIdx.x % 3 == 1 ? &local_value[which]
                                          : out + threadIdx.x;
    const int value = *p;
    __syncthreads();
    out[threadIdx.x] = value;
}

}  // extern "C"
