// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Where one tensor of a big buffer ends and the next begins, as far as launches have told. An
// address that a launch names is taken for the beginning of a tensor, a *cut*; what a pointer
// reaches is believed to run to the next cut, in whole blocks.
//
//   blocks   |    0    |    1    |    2    |    3    |
//   cuts      ^p           ^q^q'            ^r
//   believed  p: 0, 1    q: 1, 2, 3 (q' is near q: the same tensor)    r: 3
//
// A belief may be wrong. Too much costs room; too little costs time, as the rest is reached over
// the link. What keeps it from costing data is in trials.hpp.
#pragma once

#include <cstdint>

#include "runtime/block_table.hpp"

namespace libswap {

/// Cuts nearer than this to each other are of one tensor: a convolution passes the same tensor
/// shifted by some pixels, a structure's members lie side by side.
inline constexpr std::uint64_t kSameTensorBytes = std::uint64_t{64} << 10;

/// Buffers of fewer blocks than this move as wholes.
inline constexpr std::uint32_t kFewestParts = 4;

/// Blocks of one buffer, counted from its first.
struct BlockSpan {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t end() const noexcept { return first + count; }
};

/// A launch named this address, which lies in the block. @thread any
void note_cut(Block& block, std::uint64_t address) noexcept;

/// The blocks that a pointer of a launch is believed to reach. `address` lies in block `at` of the
/// buffer, or in the gap behind it. Gives the address at which the next tensor begins; 0 where it
/// is known by its block only. @thread any
BlockSpan believed_extent(BlockTable& blocks, const Buffer& buffer, std::uint32_t at,
                          std::uint64_t address, std::uint64_t* next = nullptr) noexcept;

}  // namespace libswap
