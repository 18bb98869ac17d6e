// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Streams, events and host functions; built for the legacy and for the per-thread default stream.

#include <atomic>
#include <thread>
#include <vector>

#include "check.cuh"

namespace {

__global__ void add(int* values, int count, int amount) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += amount;
    }
}

std::atomic<int> called{0};

void host_function(void* data) { called += *static_cast<int*>(data); }

void callback(cudaStream_t, cudaError_t status, void* data) {
    EXPECT(status == cudaSuccess);
    called += *static_cast<int*>(data);
}

void check_streams() {
    constexpr int kCount = 4096, kStreams = 4;
    cudaStream_t streams[kStreams];
    int* buffers[kStreams];
    std::vector<int*> results(kStreams);
    for (int i = 0; i < kStreams; ++i) {
        CUDA(cudaStreamCreateWithFlags(&streams[i],
                                       i % 2 == 0 ? cudaStreamDefault : cudaStreamNonBlocking));
        CUDA(cudaMalloc(&buffers[i], kCount * sizeof(int)));
        CUDA(cudaMallocHost(&results[static_cast<size_t>(i)], kCount * sizeof(int)));
        CUDA(cudaMemsetAsync(buffers[i], 0, kCount * sizeof(int), streams[i]));
        for (int round = 0; round < 10; ++round) {
            add<<<kCount / 256, 256, 0, streams[i]>>>(buffers[i], kCount, i + 1);
        }
        CUDA(cudaMemcpyAsync(results[static_cast<size_t>(i)], buffers[i], kCount * sizeof(int),
                             cudaMemcpyDeviceToHost, streams[i]));
    }
    for (int i = 0; i < kStreams; ++i) {
        CUDA(cudaStreamSynchronize(streams[i]));
        CUDA(cudaStreamQuery(streams[i]));
        EXPECT(results[static_cast<size_t>(i)][0] == 10 * (i + 1));
        EXPECT(results[static_cast<size_t>(i)][kCount - 1] == 10 * (i + 1));
        unsigned flags = 99;
        CUDA(cudaStreamGetFlags(streams[i], &flags));
        EXPECT(flags == (i % 2 == 0 ? cudaStreamDefault : cudaStreamNonBlocking));
    }
    for (int i = 0; i < kStreams; ++i) {
        CUDA(cudaStreamDestroy(streams[i]));
        CUDA(cudaFree(buffers[i]));
        CUDA(cudaFreeHost(results[static_cast<size_t>(i)]));
    }
}

void check_events() {
    cudaStream_t first, second;
    cudaEvent_t start, middle, end;
    CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
    CUDA(cudaEventCreate(&end));
    int* values = nullptr;
    constexpr int kCount = 1 << 16;
    CUDA(cudaMalloc(&values, kCount * sizeof(int)));
    CUDA(cudaEventRecord(start, first));
    CUDA(cudaMemsetAsync(values, 0, kCount * sizeof(int), first));
    add<<<kCount / 256, 256, 0, first>>>(values, kCount, 5);
    CUDA(cudaEventRecord(middle, first));
    CUDA(cudaStreamWaitEvent(second, middle, 0));
    add<<<kCount / 256, 256, 0, second>>>(values, kCount, 6);
    CUDA(cudaEventRecord(end, second));
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventQuery(end));
    float milliseconds = -1;
    CUDA(cudaEventElapsedTime(&milliseconds, start, end));
    EXPECT(milliseconds > 0 && milliseconds < 10000);
    EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, middle));
    cudaGetLastError();
    int last = 0;
    CUDA(cudaMemcpy(&last, values + kCount - 1, sizeof last, cudaMemcpyDeviceToHost));
    EXPECT(last == 11);
    CUDA(cudaEventDestroy(start));
    CUDA(cudaEventDestroy(middle));
    CUDA(cudaEventDestroy(end));
    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
    CUDA(cudaFree(values));
}

void check_host_functions() {
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int one = 1, hundred = 100;
    CUDA(cudaLaunchHostFunc(stream, host_function, &one));
    CUDA(cudaStreamAddCallback(stream, callback, &hundred, 0));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(called == 101);
    CUDA(cudaStreamDestroy(stream));
}

void check_priorities() {
    int least = -1, greatest = 1;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    int priority = 100;
    CUDA(cudaStreamGetPriority(stream, &priority));
    EXPECT(priority == greatest);
    CUDA(cudaStreamDestroy(stream));
}

void check_default_stream_of_threads() {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([t, &right] {
            int* values = nullptr;
            CUDA(cudaMalloc(&values, 1024 * sizeof(int)));
            CUDA(cudaMemset(values, 0, 1024 * sizeof(int)));
            for (int round = 0; round < 5; ++round) {
                add<<<4, 256>>>(values, 1024, t + 1);
            }
            int last = 0;
            CUDA(cudaMemcpy(&last, values + 1023, sizeof last, cudaMemcpyDeviceToHost));
            right += last == 5 * (t + 1) ? 1 : 0;
            CUDA(cudaFree(values));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT(right == 3);
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

}  // namespace

int main() {
    check_streams();
    check_events();
    check_host_functions();
    check_priorities();
    check_default_stream_of_threads();
    std::puts("ok");
    return 0;
}
