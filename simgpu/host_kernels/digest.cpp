// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The same function as the kernel in runtime/digest_ptx.cpp; a test holds them together.

#include "simgpu/host_kernels/digest.hpp"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace simgpu {

void digest_words(const void* data, std::size_t words, std::uint64_t first, std::uint64_t low,
                  std::uint64_t span, std::uint64_t out[3]) {
    std::uint64_t sum_low = 0;
    std::uint64_t sum_high = 0;
    std::uint64_t pointers = 0;
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + i * sizeof word, sizeof word);
        pointers += word - low < span;
        std::uint64_t x = word + (first + i + 1) * 0x9e3779b97f4a7c15;
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

namespace {

struct Params {
    std::uint64_t base, words, first, out, low, span, result;
};

constexpr std::uint64_t kChunkBytes = std::uint64_t{2} << 20;

/// Chunks' write counts in place of their first words, wherever a digest is cut into pieces, and of
/// what it is summed up in.
void run_without_data(const SimgpuHostLaunch* launch, const Params& params) {
    // Launches of a device run one at a time, those of several side by side.
    static std::mutex mutex;
    static std::map<std::pair<int, std::uint64_t>, std::array<std::uint64_t, 3>> sums;
    launch->span(launch, params.base, params.words * 8, 0);
    launch->span(launch, params.out, 32, 1);
    std::lock_guard lock(mutex);
    auto& sum = sums[{launch->device, params.out}];
    if (params.first == 0) sum = {};
    for (std::uint64_t at = 0; at < params.words * 8; at += kChunkBytes) {
        const std::uint64_t count = launch->write_count(launch, params.base + at);
        digest_words(&count, 1, params.first + at / 8, 0, 0, sum.data());
    }
    if (params.result == 0) return;
    if (void* result = launch->span(launch, params.result, 24, 1))
        std::memcpy(result, sum.data(), 24);
}

}  // namespace

void run_digest(const SimgpuHostLaunch* launch) {
    if (launch->param_bytes < sizeof(Params)) return;
    const auto& params = *static_cast<const Params*>(launch->params);
    *launch->bytes = static_cast<double>(params.words) * 8;
    *launch->flops = 0;
    if (launch->without_data) {
        run_without_data(launch, params);
        return;
    }
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
}

}  // namespace simgpu
