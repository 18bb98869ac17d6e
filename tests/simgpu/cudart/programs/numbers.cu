// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Small classics with numbers to check: tiled matrix product, reductions with shuffles and atomics,
// a scan, a histogram, softmax and layer norm.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <vector>

#include "check.cuh"

namespace {

constexpr int kTile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += kTile) {
        a_tile[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        b_tile[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < kTile; ++k) {
            sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
    }
    return value;
}

__global__ void reduce(const float* values, int count, float* total) {
    __shared__ float warps[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0F);
        if (threadIdx.x == 0) {
            atomicAdd(total, sum);
        }
    }
}

__global__ void scan(int* values) {
    __shared__ int staged[256];
    staged[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    for (unsigned step = 1; step < 256; step *= 2) {
        const int left = threadIdx.x >= step ? staged[threadIdx.x - step] : 0;
        __syncthreads();
        staged[threadIdx.x] += left;
        __syncthreads();
    }
    values[threadIdx.x] = staged[threadIdx.x];
}

__global__ void histogram(const unsigned char* values, int count, unsigned* bins) {
    __shared__ unsigned local[16];
    if (threadIdx.x < 16) {
        local[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[values[i] & 15], 1U);
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
    }
}

__global__ void softmax(const float4* in, float4* out, int width4) {
    const float4* row = in + blockIdx.x * width4;
    float4* result = out + blockIdx.x * width4;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < width4; i += 32) {
        const float4 v = row[i];
        largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_down_sync(0xFFFFFFFF, largest, offset));
    }
    largest = __shfl_sync(0xFFFFFFFF, largest, 0);
    float sum = 0;
    for (int i = threadIdx.x; i < width4; i += 32) {
        const float4 v = row[i];
        sum +=
            expf(v.x - largest) + expf(v.y - largest) + expf(v.z - largest) + expf(v.w - largest);
    }
    sum = warp_sum(sum);
    for (int i = threadIdx.x; i < width4; i += 32) {
        const float4 v = row[i];
        result[i] = make_float4(expf(v.x - largest) / sum, expf(v.y - largest) / sum,
                                expf(v.z - largest) / sum, expf(v.w - largest) / sum);
    }
}

/// Layer norm, a row per warp, in the manner of trainers: group reductions and streaming accesses.
__global__ void normalise(const float* in, float* out, int rows, int width) {
    namespace cg = cooperative_groups;
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) {
        return;
    }
    const float* x = in + row * width;
    float sum = 0;
    for (int i = warp.thread_rank(); i < width; i += warp.size()) {
        sum += x[i];
    }
    const float mean = cg::reduce(warp, sum, cg::plus<float>{}) / width;
    float squares = 0;
    for (int i = warp.thread_rank(); i < width; i += warp.size()) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    const float scale = rsqrtf(cg::reduce(warp, squares, cg::plus<float>{}) / width);
    for (int i = warp.thread_rank(); i < width; i += warp.size()) {
        __stcs(out + row * width + i, (__ldcs(x + i) - mean) * scale);
    }
}

template <typename T>
T* upload(const std::vector<T>& host) {
    T* device = nullptr;
    CUDA(cudaMalloc(&device, host.size() * sizeof(T)));
    CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T>
std::vector<T> download(const T* device, size_t count) {
    std::vector<T> host(count);
    CUDA(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

void check_multiply() {
    constexpr int n = 64;
    std::vector<float> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) {
        a[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3);
        b[static_cast<size_t>(i)] = static_cast<float>(i % 5 - 2);
    }
    float* c = upload(std::vector<float>(n * n, -1.0F));
    multiply<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(upload(a), upload(b), c, n);
    const std::vector<float> result = download(c, n * n);
    for (int row = 0; row < n; ++row) {
        for (int column = 0; column < n; ++column) {
            float sum = 0;
            for (int k = 0; k < n; ++k) {
                sum += a[static_cast<size_t>(row * n + k)] * b[static_cast<size_t>(k * n + column)];
            }
            EXPECT(result[static_cast<size_t>(row * n + column)] == sum);
        }
    }
}

void check_reduce() {
    constexpr int kCount = 10000;
    std::vector<float> values(kCount);
    double expected = 0;
    for (int i = 0; i < kCount; ++i) {
        values[static_cast<size_t>(i)] = static_cast<float>(i % 16);
        expected += i % 16;
    }
    float* total = upload(std::vector<float>(1, 0.0F));
    reduce<<<7, 128>>>(upload(values), kCount, total);
    EXPECT(download(total, 1)[0] == static_cast<float>(expected));
}

void check_scan() {
    std::vector<int> values(256);
    for (int i = 0; i < 256; ++i) {
        values[static_cast<size_t>(i)] = i;
    }
    int* device = upload(values);
    scan<<<1, 256>>>(device);
    const std::vector<int> result = download(device, 256);
    for (int i = 0; i < 256; ++i) {
        EXPECT(result[static_cast<size_t>(i)] == i * (i + 1) / 2);
    }
}

void check_histogram() {
    std::vector<unsigned char> values(5000);
    std::vector<unsigned> expected(16, 0);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<unsigned char>(i * i);
        ++expected[values[i] & 15];
    }
    unsigned* bins = upload(std::vector<unsigned>(16, 0));
    histogram<<<4, 64>>>(upload(values), 5000, bins);
    EXPECT(download(bins, 16) == expected);
}

void check_softmax() {
    constexpr int kRows = 3, kWidth = 256;
    std::vector<float> in(kRows * kWidth);
    for (int i = 0; i < kRows * kWidth; ++i) {
        in[static_cast<size_t>(i)] = static_cast<float>(i % 11) * 0.5F;
    }
    float* out = upload(in);
    softmax<<<kRows, 32>>>(reinterpret_cast<float4*>(upload(in)), reinterpret_cast<float4*>(out),
                           kWidth / 4);
    const std::vector<float> result = download(out, in.size());
    for (int row = 0; row < kRows; ++row) {
        double sum = 0, expected_sum = 0;
        for (int i = 0; i < kWidth; ++i) {
            expected_sum +=
                std::exp(static_cast<double>(in[static_cast<size_t>(row * kWidth + i)]));
        }
        for (int i = 0; i < kWidth; ++i) {
            const auto at = static_cast<size_t>(row * kWidth + i);
            EXPECT(std::abs(result[at] - std::exp(static_cast<double>(in[at])) / expected_sum) <
                   1e-6);
            sum += result[at];
        }
        EXPECT(std::abs(sum - 1) < 1e-5);
    }
}

void check_normalise() {
    constexpr int kRows = 10, kWidth = 100;
    std::vector<float> in(kRows * kWidth);
    for (int i = 0; i < kRows * kWidth; ++i) {
        in[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 101);
    }
    float* out = upload(in);
    normalise<<<3, 128>>>(upload(in), out, kRows, kWidth);
    const std::vector<float> result = download(out, in.size());
    for (int row = 0; row < kRows; ++row) {
        double sum = 0, squares = 0;
        for (int i = 0; i < kWidth; ++i) {
            const double value = result[static_cast<size_t>(row * kWidth + i)];
            sum += value;
            squares += value * value;
        }
        EXPECT(std::abs(sum / kWidth) < 1e-5 && std::abs(squares / kWidth - 1) < 1e-4);
    }
}

}  // namespace

int main() {
    check_multiply();
    check_reduce();
    check_scan();
    check_histogram();
    check_softmax();
    check_normalise();
    std::puts("ok");
    return 0;
}
