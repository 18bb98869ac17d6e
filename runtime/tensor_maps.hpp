// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Descriptors of tensors (CUtensorMap) that the program had built, and where their tensors lie.
// What a descriptor looks like inside is the vendor's business: whole ones are compared.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <shared_mutex>

#include <tsl/robin_map.h>

namespace libswap {

/// @thread any
class TensorMaps {
  public:
    static constexpr std::size_t kBytes = 128;
    static constexpr std::size_t kAlignment = 64;
    static constexpr std::size_t kMost = std::size_t{1} << 16;

    /// A descriptor of a tensor at `address` was built. False if there is no room for more.
    bool built(const void* descriptor, std::uint64_t address);
    /// The address that these kBytes describe, or 0.
    std::uint64_t find(const void* bytes) const;
    bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    /// Calls `visit(offset, address)` for each descriptor among `bytes` of memory whose first byte
    /// lies `misalignment` bytes behind an aligned place.
    template <typename Visit>
    void for_each(const void* memory, std::size_t bytes, std::size_t misalignment,
                  Visit&& visit) const {
        std::size_t offset = (kAlignment - misalignment % kAlignment) % kAlignment;
        for (; offset + kBytes <= bytes; offset += kAlignment)
            if (const std::uint64_t address = find(static_cast<const char*>(memory) + offset))
                visit(offset, address);
    }

  private:
    using Words = std::array<std::uint64_t, kBytes / 8>;
    struct Hash {
        std::size_t operator()(const Words& words) const noexcept {
            std::uint64_t hash = 0xcbf29ce484222325;
            for (const std::uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15;
            return hash ^ hash >> 32;
        }
    };

    mutable std::shared_mutex mutex_;
    tsl::robin_map<Words, std::uint64_t, Hash> maps_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace libswap
