// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Operations of 3 us each, on buffers that do not fit together: a few operations per buffer, one
// buffer after the other, round and round. Here every microsecond shows in which the host waits
// without need. Prints the digest of all buffers, and the median time of a round by CUDA events.
//
// usage: short_operations [BUFFERS] [OPERATIONS_PER_BUFFER] [ROUNDS]

#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kBufferBytes = size_t{2} << 20;
constexpr unsigned kWordsTouched = 4096;  // spread over all of the buffer

__global__ void stir(unsigned* words, size_t stride, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned& word = words[i * stride];
    word = (word ^ salt) * 0x9e3779b1u + i;
}

void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "short_operations: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

int argument(int argc, char** argv, int index, int otherwise) {
    return index < argc ? std::atoi(argv[index]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    const int count = argument(argc, argv, 1, 48);
    const int operations = argument(argc, argv, 2, 24);
    const int rounds = argument(argc, argv, 3, 12);
    std::vector<unsigned*> buffers(count);
    for (unsigned*& buffer : buffers) {
        CHECK(cudaMalloc(reinterpret_cast<void**>(&buffer), kBufferBytes));
        CHECK(cudaMemset(buffer, 1, kBufferBytes));
    }
    std::vector<cudaEvent_t> events(rounds + 1);
    for (cudaEvent_t& event : events) CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(events[0]));
    for (int round = 0; round < rounds; ++round) {
        for (unsigned* buffer : buffers)
            for (int i = 0; i < operations; ++i)
                stir<<<kWordsTouched / 128, 128>>>(buffer, kBufferBytes / 4 / kWordsTouched,
                                                   round * operations + i);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(events[round + 1]));
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<float> times_ms(rounds);
    for (int i = 0; i < rounds; ++i)
        CHECK(cudaEventElapsedTime(&times_ms[i], events[i], events[i + 1]));
    std::uint64_t digest = 0xcbf29ce484222325u;
    std::vector<unsigned> host(kBufferBytes / 4);
    for (unsigned* buffer : buffers) {
        CHECK(cudaMemcpy(host.data(), buffer, kBufferBytes, cudaMemcpyDeviceToHost));
        for (const unsigned word : host) digest = (digest ^ word) * 0x100000001b3u;
    }
    std::nth_element(times_ms.begin(), times_ms.begin() + rounds / 2, times_ms.end());
    std::printf("digest %016" PRIx64 "\nround %.3f ms (median of %d)\n", digest,
                times_ms[rounds / 2], rounds);
    return 0;
}
