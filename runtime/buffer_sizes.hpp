// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

#include "runtime/address_space.hpp"

namespace libswap {

/// Memory that a buffer of `bytes` takes: whole pages. Overflows to less than `bytes` near 2^64.
constexpr std::uint64_t span_of(std::uint64_t bytes) noexcept {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// Addresses that it takes: without slack at its end, one more page, which stays unmapped.
constexpr std::uint64_t range_of_buffer(std::uint64_t bytes) noexcept {
    return span_of(bytes) == bytes ? bytes + kPageBytes : span_of(bytes);
}

/// Buffers of one key can take each other's place: same span, both with or without a gap.
constexpr std::uint64_t size_key(std::uint64_t span_bytes, bool has_gap) noexcept {
    return span_bytes | (has_gap ? 1 : 0);
}
constexpr std::uint64_t size_key(std::uint64_t bytes) noexcept {
    return size_key(span_of(bytes), span_of(bytes) == bytes);
}

}  // namespace libswap
