// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

namespace libswap {

/// Hash of an operation's signature and of the sizes of the blocks that it names, in order: what
/// takes the same time, where kernels of one name and grid do different amounts of work.
class SizedSignature {
  public:
    explicit SizedSignature(std::uint64_t signature) noexcept : value_(signature) {}

    void add(std::uint64_t bytes) noexcept {
        // A multiplication moves nothing downwards; low bits choose slots of tables.
        value_ = (value_ ^ bytes) * 0x9e3779b97f4a7c15ULL;
        value_ ^= value_ >> 32;
    }
    std::uint64_t value() const noexcept { return value_; }

  private:
    std::uint64_t value_;
};

}  // namespace libswap
