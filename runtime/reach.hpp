// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Where the plain numbers of a launch may take it. A kernel that is passed a pointer and an index
// touches what no word of its parameters names; what its pointers are believed to reach
// (extents.hpp) is then too little.
//
//   parameters   p                i
//                |                '--- p + i, 2i, 4i, 8i or 16i bytes: inside the buffer, beyond
//                v                     the extent of p?   ----v
//   blocks   |   0   |   1   |   2   |   3   |   4   |   5   |   6   |
//   believed  '--- p: 0, 1 ---'
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/extents.hpp"

namespace libswap {

/// What a pointer of a launch is believed to reach, within a buffer. Addresses.
struct Reach {
    std::uint64_t pointer = 0;
    std::uint64_t low = 0;  ///< believed: from here
    std::uint64_t high = 0;
    std::uint64_t buffer_low = 0;
    std::uint64_t buffer_high = 0;

    /// The pointer plus `number` elements of 1 to 16 bytes lies in the buffer, but not in what is
    /// believed.
    bool is_left_by(std::int64_t number) const noexcept {
        for (unsigned shift = 0; shift <= 4; ++shift) {
            const std::uint64_t at = pointer + (static_cast<std::uint64_t>(number) << shift);
            if (at - buffer_low < buffer_high - buffer_low && at - low >= high - low) return true;
        }
        return false;
    }
};

/// Most numbers: as an index, too near to lead out of a tensor.
constexpr bool is_small(std::int64_t number) noexcept {
    constexpr std::int64_t kNear = kSameTensorBytes / 16;
    return -kNear < number && number < kNear;
}

/// `number` elements of 1 to 16 bytes are as long as a tensor of `tensor_bytes`, give or take what
/// lies between it and the next one: it counts that tensor's elements.
bool counts_elements(std::uint64_t tensor_bytes, std::int64_t number) noexcept;

/// A number among the parameters of a launch.
struct LaunchNumber {
    std::int64_t value = 0;
    std::size_t offset = 0;   ///< in its parameter
    bool like_float = false;  ///< its bits are those of an everyday floating-point number
    bool again = false;       ///< another reading of bytes that come alone too
};

/// Calls `visit(LaunchNumber)` for whatever number may lie in a parameter: words of 4 bytes, signed
/// and not, words of 8, and what is left at the end. Words of 8 bytes that `is_address` are none.
template <typename IsAddress, typename Visit>
void for_each_number(const void* memory, std::size_t bytes, IsAddress&& is_address, Visit&& visit);

/// The numbers of a launch, hashed: all of them, and a few bits of each, by their order.
struct NumbersHash {
    std::uint64_t all = 0;
    std::uint64_t each = 0;

    void add(std::uint64_t place, std::int64_t value) noexcept;
    /// At most one number is another one, as far as the bits tell.
    bool differs_in_one(const NumbersHash& other) const noexcept;

  private:
    unsigned count_ = 0;
};

/// The numbers that functions were launched with, by function, grid and pointer. A tensor's counts
/// and strides are its own: they are the same in each launch of a function with its pointer, or, in
/// memory that another tensor has now, several of them change. One that changes alone is an index.
/// @thread any
class SeenNumbers {
  public:
    /// Whether launches with this key have an index among their numbers: one was seen to change
    /// alone, or nothing is known of them yet.
    bool may_have_index(std::uint64_t key, const NumbersHash& numbers) noexcept;

  private:
    static constexpr std::size_t kEntries = std::size_t{1} << 14;
    static constexpr std::size_t kProbes = 8;
    static constexpr std::uint64_t kHasIndex = 0;  ///< in place of a hash

    struct Entry {
        std::atomic<std::uint64_t> key{0};
        std::atomic<std::uint64_t> all{0};
        std::atomic<std::uint64_t> each{0};
    };
    std::array<Entry, kEntries> entries_{};
};

/// Between 2^-24 and 2^24, or their negatives. The upper half of such a double is like that too.
inline bool is_like_float(std::uint32_t word) noexcept {
    const std::uint32_t exponent = word >> 23 & 0xff;
    return exponent >= 127 - 24 && exponent < 127 + 24;
}

template <typename IsAddress, typename Visit>
void for_each_number(const void* memory, std::size_t bytes, IsAddress&& is_address, Visit&& visit) {
    const char* const at = static_cast<const char*>(memory);
    std::size_t i = 0;
    while (i + 4 <= bytes) {
        if (i % 8 == 0 && i + 8 <= bytes) {
            std::uint64_t word;
            std::memcpy(&word, at + i, 8);
            if (is_address(word)) {
                i += 8;
                continue;
            }
            if (word >> 32 != 0)
                visit(LaunchNumber{std::bit_cast<std::int64_t>(word), i, false, true});
        }
        std::uint32_t word;
        std::memcpy(&word, at + i, 4);
        const bool like_float = is_like_float(word);
        visit(LaunchNumber{word, i, like_float, false});
        if (word >> 31) visit(LaunchNumber{std::bit_cast<std::int32_t>(word), i, like_float, true});
        i += 4;
    }
    if (i == bytes) return;
    std::uint32_t rest = 0;
    std::memcpy(&rest, at + i, bytes - i);
    visit(LaunchNumber{rest, i, false, false});
}

}  // namespace libswap
