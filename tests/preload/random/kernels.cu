// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "kernels.hpp"

namespace random_programs {
namespace {

constexpr size_t kStrideWords = 256;

__device__ unsigned* g_tables[kThreads][kTableEntries];

__device__ __forceinline__ unsigned mixed(unsigned h, unsigned v) {
    h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
    return h * 0x85ebca6bu;
}

__global__ void mix(unsigned* dst, const unsigned* a, const unsigned* b, unsigned count,
                    unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const size_t at = i * kStrideWords;
    dst[at] = mixed(mixed(dst[at], a[at]), mixed(b[at], salt + i));
}

// Pointers at odd places inside one parameter.
struct Operands {
    unsigned count;
    struct {
        unsigned char tag;
        unsigned* dst;
    } out;
    const unsigned* in[2];
    unsigned salt;
};

__global__ void mix_structure(Operands o) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.count) return;
    const size_t at = i * kStrideWords;
    o.out.dst[at] = mixed(o.out.dst[at] ^ o.in[0][at], o.in[1][at] + o.salt + o.out.tag);
}

// Bases of buffers, and where in them: what is named is not what is touched.
__global__ void mix_base(unsigned* dst, size_t dst_at, const unsigned* a, size_t a_at,
                         const unsigned* b, size_t b_at, unsigned count, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const size_t at = i * kStrideWords;
    dst[dst_at + at] = mixed(dst[dst_at + at] + a[a_at + at], b[b_at + at] ^ (salt + i));
}

__device__ void mix_entries(unsigned* const* table, unsigned count, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const size_t at = i * kStrideWords;
    unsigned h = salt;
    for (unsigned e = 1; e < kTableEntries; ++e) h = mixed(h, table[e][at]);
    table[0][at] = h;
}

__global__ void mix_table(unsigned* const* table, unsigned count, unsigned salt) {
    mix_entries(table, count, salt);
}

__global__ void mix_module_table(unsigned which, unsigned count, unsigned salt) {
    mix_entries(g_tables[which], count, salt);
}

unsigned blocks(unsigned count, unsigned threads) { return (count + threads - 1) / threads; }

cudaError_t launch_extended(const Part& dst, const Part& a, const Part& b, unsigned count,
                            unsigned salt, cudaStream_t stream) {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks(count, 64);
    config.blockDim = 64;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, mix, dst.words(), static_cast<const unsigned*>(a.words()),
                              static_cast<const unsigned*>(b.words()), count, salt);
}

}  // namespace

cudaError_t launch_mix(Passing passing, const Part& dst, const Part& a, const Part& b,
                       unsigned count, unsigned salt, cudaStream_t stream) {
    switch (passing) {
        case Passing::Structure: {
            const Operands operands{count,
                                    {static_cast<unsigned char>(salt), dst.words()},
                                    {a.words(), b.words()},
                                    salt};
            mix_structure<<<blocks(count, 64), 64, 0, stream>>>(operands);
            break;
        }
        case Passing::Extended:
            return launch_extended(dst, a, b, count, salt, stream);
        case Passing::Base:
            mix_base<<<blocks(count, 128), 128, 0, stream>>>(
                reinterpret_cast<unsigned*>(dst.base), dst.offset_bytes / 4,
                reinterpret_cast<const unsigned*>(a.base), a.offset_bytes / 4,
                reinterpret_cast<const unsigned*>(b.base), b.offset_bytes / 4, count, salt);
            break;
        default:
            mix<<<blocks(count, 256), 256, 0, stream>>>(dst.words(), a.words(), b.words(), count,
                                                        salt);
    }
    return cudaGetLastError();
}

cudaError_t launch_table_mix(unsigned* const* table, unsigned count, unsigned salt,
                             cudaStream_t stream) {
    mix_table<<<blocks(count, 128), 128, 0, stream>>>(table, count, salt);
    return cudaGetLastError();
}

cudaError_t launch_module_table_mix(unsigned which, unsigned count, unsigned salt,
                                    cudaStream_t stream) {
    mix_module_table<<<blocks(count, 128), 128, 0, stream>>>(which, count, salt);
    return cudaGetLastError();
}

cudaError_t module_table(unsigned which, void** address) {
    void* tables = nullptr;
    const cudaError_t result = cudaGetSymbolAddress(&tables, g_tables);
    *address = static_cast<unsigned**>(tables) + which * kTableEntries;
    return result;
}

}  // namespace random_programs
