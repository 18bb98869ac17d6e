// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "kernels.hpp"

namespace play {
namespace {

constexpr unsigned kThreads = 256;

__device__ std::uint64_t now_ns() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

__device__ std::uint64_t* word(std::uint64_t address, unsigned index) {
    return reinterpret_cast<std::uint64_t*>(address + index * kStepBytes);
}

/// One block of threads: the sum of what is read must be known before the first word is written.
template <typename P>
__device__ void run(const P& parameters) {
    const std::uint64_t begun_ns = now_ns();
    __shared__ unsigned long long sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    unsigned long long mine = 0;
    for (int k = 0; k < P::kMostWritten + P::kMostRead; ++k) {
        if (parameters.addresses[k] == 0) continue;
        if (k < P::kMostWritten && parameters.read[k] == 0) continue;
        for (unsigned i = threadIdx.x; i < parameters.words[k]; i += kThreads)
            mine += mix(*word(parameters.addresses[k], i), std::uint64_t(k) << 32 | i);
    }
    atomicAdd(&sum, mine);
    __syncthreads();
    for (int k = 0; k < P::kMostWritten; ++k) {
        if (parameters.addresses[k] == 0) continue;
        for (unsigned i = threadIdx.x; i < parameters.words[k]; i += kThreads)
            *word(parameters.addresses[k], i) = mix(sum, std::uint64_t(k) << 32 | i);
    }
    if (threadIdx.x == 0)
        while (now_ns() - begun_ns < parameters.duration_ns) __nanosleep(500);
}

}  // namespace
}  // namespace play

extern "C" __global__ void play_few(const __grid_constant__ play::FewParameters parameters) {
    play::run(parameters);
}

extern "C" __global__ void play_many(const __grid_constant__ play::ManyParameters parameters) {
    play::run(parameters);
}

namespace play {

cudaError_t launch(const FewParameters& parameters, cudaStream_t stream) {
    play_few<<<1, kThreads, 0, stream>>>(parameters);
    return cudaGetLastError();
}

cudaError_t launch(const ManyParameters& parameters, cudaStream_t stream) {
    play_many<<<1, kThreads, 0, stream>>>(parameters);
    return cudaGetLastError();
}

}  // namespace play
