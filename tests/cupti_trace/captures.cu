// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Rounds over buffers that do not fit together, in one stream, every operation of a round unlike
// the others; in another a capture is open from the CAPTURE_FROM-th round to the CAPTURE_TO-th.
// `capture_is_open` tells so to whoever asks. Prints the digest of all.
//
// usage: captures BUFFERS ROUNDS CAPTURE_FROM CAPTURE_TO

#include <cuda_runtime.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
__attribute__((visibility("default"))) int capture_is_open = 0;
}

namespace {

constexpr size_t kBytes = size_t{2} << 20;
constexpr unsigned kBlock = 32, kOperations = 8, kMostBuffers = 64;
constexpr unsigned kStride = kBytes / 4 / (kBlock * kOperations * kMostBuffers);

__global__ void stir(unsigned* words, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    words[i * kStride] = (words[i * kStride] ^ salt) * 0x9e3779b1u + i;
}

#define CHECK(call)                                                                      \
    do {                                                                                 \
        if (const cudaError_t error_ = (call); error_ != cudaSuccess) {                  \
            std::fprintf(stderr, "captures: %s: %s\n", #call, cudaGetErrorName(error_)); \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5 || std::atoi(argv[1]) > static_cast<int>(kMostBuffers)) return 2;
    const int rounds = std::atoi(argv[2]), from = std::atoi(argv[3]), to = std::atoi(argv[4]);
    std::vector<unsigned*> buffers(std::atoi(argv[1]));
    cudaStream_t work = nullptr, captured = nullptr;
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    for (unsigned*& buffer : buffers) {
        CHECK(cudaMalloc(&buffer, kBytes));
        CHECK(cudaMemsetAsync(buffer, 1, kBytes, work));
    }
    cudaGraph_t graph = nullptr;
    for (int round = 0; round < rounds; ++round) {
        if (round == from) {
            CHECK(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
            capture_is_open = 1;
            stir<<<1, kBlock, 0, captured>>>(buffers[0], 1);
        }
        if (round == to) {
            capture_is_open = 0;
            CHECK(cudaStreamEndCapture(captured, &graph));
        }
        unsigned blocks = 0;
        for (unsigned* buffer : buffers)
            for (unsigned i = 0; i < kOperations; ++i)
                stir<<<++blocks, kBlock, 0, work>>>(buffer, round + i);
        CHECK(cudaGetLastError());
        // The worker gets to look at what has come.
        CHECK(cudaStreamSynchronize(work));
    }
    if (graph != nullptr) CHECK(cudaGraphDestroy(graph));
    uint64_t digest = 0xcbf29ce484222325u;
    std::vector<unsigned> host(kBytes / 4);
    for (unsigned* buffer : buffers) {
        CHECK(cudaMemcpy(host.data(), buffer, kBytes, cudaMemcpyDeviceToHost));
        for (const unsigned word : host) digest = (digest ^ word) * 0x100000001b3u;
    }
    std::printf("digest %016" PRIx64 "\n", digest);
    return 0;
}
