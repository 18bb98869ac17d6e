// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What stands for the kernels of a recorded iteration: it reads and writes a word of every 2 MiB of
// its operands, and takes a given time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace play {

inline constexpr std::uint64_t kStepBytes = std::uint64_t{2} << 20;

/// Memory that a launch names. What it writes may be read before.
struct Operand {
    std::uint64_t address = 0;  ///< 8-byte aligned
    std::uint32_t words = 0;    ///< looked at, one every kStepBytes
    bool read = false;
};

/// The parameter of a launch. Written operands come first, so that a parameter that is written in
/// one launch of a kernel is written in all of them, as in real ones. Unused entries are 0.
template <int kWritten, int kRead>
struct Parameters {
    static constexpr int kMostWritten = kWritten;
    static constexpr int kMostRead = kRead;

    std::uint64_t addresses[kWritten + kRead];
    std::uint64_t duration_ns;  ///< from the kernel's begin to its end, at least
    std::uint16_t words[kWritten + kRead];
    std::uint8_t read[kWritten];  ///< the old content of what is written matters
};

/// Most operations have a few operands; fused optimizers and the like have hundreds.
using FewParameters = Parameters<12, 20>;
using ManyParameters = Parameters<180, 190>;
static_assert(sizeof(ManyParameters) <= 4096, "the parameters of one launch");

inline constexpr const char* kFewName = "play_few";
inline constexpr const char* kManyName = "play_many";

/// Of a word's value and place, so that neither lost nor exchanged words go unnoticed.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline std::uint64_t
    mix(std::uint64_t value, std::uint64_t place) {
    std::uint64_t x = value + (place + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// On the stream; returns at once.
cudaError_t launch(const FewParameters& parameters, cudaStream_t stream);
cudaError_t launch(const ManyParameters& parameters, cudaStream_t stream);

/// On simgpu, whose clock knows no spinning: has the kernels done natively, in the time they are
/// given. Does nothing on a GPU.
void register_simulated_kernels();

}  // namespace play
