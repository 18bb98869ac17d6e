// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/opaque_fill.hpp"

#include <cstring>

#include "simgpu/host_kernels/digest.hpp"

namespace simgpu {
namespace {

std::uint64_t mix(std::uint64_t x) {
    // splitmix64's finaliser.
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Bits of the `type` whose value `random` chooses.
std::uint64_t bits_of(FillType type, std::uint64_t random) {
    switch (type) {
        case FillType::Float: {
            // From -1/16 to 1/16 in steps that a float has.
            const auto value =
                static_cast<float>(static_cast<std::int32_t>(random) >> 8) * 0x1p-27F;
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof(bits));
            return bits;
        }
        case FillType::Double: {
            const double value =
                static_cast<double>(static_cast<std::int64_t>(random) >> 11) * 0x1p-56;
            std::uint64_t bits = 0;
            std::memcpy(&bits, &value, sizeof(bits));
            return bits;
        }
        case FillType::Half:
            // Exponent 8, 9 or 10 of 15: 2^-7 to 2^-4.
            return (random & 0x8000) | ((8 + (random >> 16) % 3) << 10) | (random & 0x3ff);
        case FillType::BFloat:
            return (random & 0x8000) | ((120 + (random >> 16) % 3) << 7) | (random & 0x7f);
        case FillType::Integer:
        case FillType::Long:
            return random & 7;
        case FillType::Byte:
            break;
    }
    return random & 1;
}

template <typename Word>
void fill_words(std::uint64_t seed, FillType type, void* data, std::size_t bytes) {
    auto* out = static_cast<std::byte*>(data);
    for (std::size_t i = 0; i < bytes / sizeof(Word); ++i) {
        const auto word =
            static_cast<Word>(bits_of(type, mix(seed + (i + 1) * 0x9e3779b97f4a7c15)));
        std::memcpy(out + i * sizeof(Word), &word, sizeof(Word));
    }
}

}  // namespace

std::uint64_t stir(std::uint64_t digest, const void* data, std::size_t bytes) {
    std::uint64_t sums[3] = {};
    const std::size_t words = bytes / 8;
    digest_words(data, words, 0, 0, 0, sums);
    std::uint64_t rest = 0;
    std::memcpy(&rest, static_cast<const std::byte*>(data) + words * 8, bytes % 8);
    return mix(mix(digest + sums[0]) + sums[1]) + mix(rest + bytes);
}

void fill_from(std::uint64_t seed, FillType type, void* data, std::size_t bytes) {
    switch (bytes_of(type)) {
        case 1:
            return fill_words<std::uint8_t>(seed, type, data, bytes);
        case 2:
            return fill_words<std::uint16_t>(seed, type, data, bytes);
        case 8:
            return fill_words<std::uint64_t>(seed, type, data, bytes);
        default:
            return fill_words<std::uint32_t>(seed, type, data, bytes);
    }
}

}  // namespace simgpu
