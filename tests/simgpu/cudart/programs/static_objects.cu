// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A static object with device memory, as many trainers have for each layer: made before main(),
// used and freed when the process ends, after the thread_local objects of its last thread. The
// runtime may be unloading by then, and says so; what it still takes has to be right.

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int kWords = 1 << 20;

__global__ void add(int* words, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kWords) words[i] += value;
}

void fail(const char* what, cudaError_t error) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
    _exit(1);
}

/// False where the runtime is unloading.
bool taken(const char* what, cudaError_t error) {
    if (error == cudaErrorCudartUnloading) return false;
    if (error != cudaSuccess) fail(what, error);
    return true;
}

class Layer {
  public:
    explicit Layer(int value) : value_(value) {
        if (cudaMalloc(&words_, kWords * sizeof(int)) != cudaSuccess)
            fail("cudaMalloc", cudaErrorMemoryAllocation);
        if (cudaMemset(words_, 0, kWords * sizeof(int)) != cudaSuccess)
            fail("cudaMemset", cudaErrorUnknown);
    }
    ~Layer() {
        std::vector<int> back(kWords);
        add<<<kWords / 256, 256>>>(words_, 1);
        if (!taken("launch", cudaGetLastError())) return;
        if (!taken("copy",
                   cudaMemcpy(back.data(), words_, kWords * sizeof(int), cudaMemcpyDeviceToHost)))
            return;
        for (const int word : back)
            if (word != value_ + 1) fail("a wrong word", cudaErrorUnknown);
        taken("cudaFree", cudaFree(words_));
    }
    void set() { add<<<kWords / 256, 256>>>(words_, value_); }

  private:
    int value_;
    int* words_ = nullptr;
};

Layer first(7);
Layer second(8);

}  // namespace

int main() {
    first.set();
    second.set();
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
