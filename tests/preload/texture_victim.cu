// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Reads some of its buffers through texture objects only: linear and pitched ones, handed over as
// parameters, in a structure in device memory, and by a graph. Beside these, buffers pass by that
// do not fit together. Prints the digest of all.
//
// usage: texture_victim [ROUNDS]

#include <cuda_runtime.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kBuffers = 10;
constexpr size_t kBytes = size_t{4} << 20;
constexpr unsigned kWords = static_cast<unsigned>(kBytes / 4);
constexpr unsigned kStride = 1024;
constexpr unsigned kCount = kWords / kStride;
constexpr unsigned kBlock = 128;
constexpr unsigned kGrid = (kCount + kBlock - 1) / kBlock;
// The pitched buffer's rows.
constexpr unsigned kRowWords = 1024, kRows = kWords / kRowWords;

#define MUST(call)                                                                     \
    do {                                                                               \
        if (const cudaError_t error_ = (call); error_ != cudaSuccess) {                \
            std::fprintf(stderr, "victim: %s: %s\n", #call, cudaGetErrorName(error_)); \
            std::_Exit(3);                                                             \
        }                                                                              \
    } while (0)

__device__ unsigned stirred(unsigned h, unsigned v) {
    return (h ^ (v + (h << 5) + (h >> 3))) * 0x01000193u;
}

struct Textures {
    cudaTextureObject_t linear, pitched;
};

__device__ unsigned both(const Textures& textures, unsigned i) {
    const unsigned word = i * kStride;
    const unsigned a = tex1Dfetch<unsigned>(textures.linear, static_cast<int>(word));
    const unsigned b =
        tex2D<unsigned>(textures.pitched, word % kRowWords + 0.5F, word / kRowWords + 0.5F);
    return stirred(a, b);
}

__global__ void pass(Textures textures, const unsigned* in, unsigned* out, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) out[i * kStride] = stirred(in[i * kStride] + salt, both(textures, i));
}

__global__ void pass_unseen(const Textures* textures, unsigned* words) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) words[i * kStride] = stirred(words[i * kStride], both(*textures, i));
}

/// Changes a texture's texels by their address.
__global__ void change(unsigned* texels, unsigned by) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) texels[i * kStride] += by + i;
}

unsigned* filled(unsigned value) {
    unsigned* buffer = nullptr;
    MUST(cudaMalloc(&buffer, kBytes));
    const std::vector<unsigned> words(kWords, value);
    MUST(cudaMemcpy(buffer, words.data(), kBytes, cudaMemcpyHostToDevice));
    return buffer;
}

cudaTextureObject_t linear_texture(unsigned* texels) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {texels, cudaCreateChannelDesc<unsigned>(), kBytes};
    const cudaTextureDesc how{};
    cudaTextureObject_t texture = 0;
    MUST(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    return texture;
}

cudaTextureObject_t pitched_texture(unsigned* texels) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {texels, cudaCreateChannelDesc<unsigned>(), kRowWords, kRows,
                            kRowWords * 4};
    const cudaTextureDesc how{};
    cudaTextureObject_t texture = 0;
    MUST(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    return texture;
}

cudaGraphExec_t captured(cudaStream_t stream, const Textures& textures, unsigned* in,
                         unsigned* out) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    pass<<<kGrid, kBlock, 0, stream>>>(textures, in, out, 77);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return executable;
}

uint64_t digest_of(const std::vector<unsigned*>& buffers) {
    uint64_t digest = 0xcbf29ce484222325ull;
    std::vector<unsigned> words(kWords);
    for (unsigned* buffer : buffers) {
        MUST(cudaMemcpy(words.data(), buffer, kBytes, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < words.size(); i += kStride / 2)
            digest = (digest ^ words[i]) * 0x100000001b3ull;
    }
    return digest;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
    unsigned* texels[] = {filled(5), filled(6)};
    std::vector<unsigned*> buffers;
    // By now the texels have left, where there is not room for all.
    for (int i = 0; i < kBuffers; ++i) buffers.push_back(filled(100 + i));
    cudaStream_t stream = nullptr;
    MUST(cudaStreamCreate(&stream));
    const Textures textures{linear_texture(texels[0]), pitched_texture(texels[1])};
    Textures* unseen = nullptr;
    MUST(cudaMalloc(&unseen, sizeof textures));
    MUST(cudaMemcpy(unseen, &textures, sizeof textures, cudaMemcpyHostToDevice));
    const cudaGraphExec_t graph = captured(stream, textures, buffers[0], buffers[1]);
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < kBuffers; ++i) {
            unsigned* const in = buffers[i];
            unsigned* const out = buffers[(i + 1) % kBuffers];
            pass<<<kGrid, kBlock, 0, stream>>>(textures, in, out, round);
            pass_unseen<<<kGrid, kBlock, 0, stream>>>(unseen, in);
            change<<<kGrid, kBlock, 0, stream>>>(texels[i % 2], i);
            MUST(cudaGetLastError());
        }
        MUST(cudaGraphLaunch(graph, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    buffers.insert(buffers.end(), {texels[0], texels[1]});
    std::printf("%016" PRIx64 "\n", digest_of(buffers));
    // The textures stay as they are: what is told at exit is told of them.
    return 0;
}
