// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The same function as the kernel in runtime/digest_ptx.cpp; a test holds them together.

#include "simgpu/host_kernels/digest.hpp"

#include <cstring>

namespace simgpu {

void digest_words(const std::uint64_t* data, std::size_t words, std::uint64_t first,
                  std::uint64_t low, std::uint64_t span, std::uint64_t out[3]) {
    std::uint64_t sum_low = 0;
    std::uint64_t sum_high = 0;
    std::uint64_t pointers = 0;
    for (std::size_t i = 0; i < words; ++i) {
        pointers += data[i] - low < span;
        std::uint64_t x = data[i] + (first + i + 1) * 0x9e3779b97f4a7c15;
        x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 29) * 0x94d049bb133111eb;
        sum_low += x ^ x >> 32;
        x *= 0xc2b2ae3d27d4eb4f;
        sum_high += x ^ x >> 31;
    }
    out[0] += sum_low;
    out[1] += sum_high;
    out[2] += pointers;
}

void run_digest(const SimgpuHostLaunch* launch) {
    struct Params {
        std::uint64_t base, words, first, out, low, span, result;
    };
    if (launch->param_bytes < sizeof(Params)) return;
    const auto& params = *static_cast<const Params*>(launch->params);
    const void* data = launch->span(launch, params.base, params.words * 8, 0);
    auto* out = static_cast<std::uint64_t*>(launch->span(launch, params.out, 32, 1));
    if (!data || !out) return;
    digest_words(static_cast<const std::uint64_t*>(data), params.words, params.first, params.low,
                 params.span, out);
    if (params.result) {
        void* result = launch->span(launch, params.result, 24, 1);
        if (!result) return;
        std::memcpy(result, out, 24);
        std::memset(out, 0, 32);
    }
    *launch->bytes = static_cast<double>(params.words) * 8;
    *launch->flops = 0;
}

}  // namespace simgpu
