// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Kernels as programs have them, to see how near to the Roofline each kind comes. All in fp32.
#pragma once

#include <cstdint>
#include <string>

namespace libswap::bench {

inline constexpr unsigned kKernelThreads = 256;  ///< of a block of each of these

/// bench_product(a, b, c, n): c = a b, n x n each, n a multiple of kProductTile. A block makes a
/// tile of c from tiles in shared memory, a thread 4 x 4 of it.
inline constexpr unsigned kProductTile = 64;
std::string product_ptx();

/// bench_convolution(x, w, y): 3 x 3, `channels` of kConvolutionSide x kConvolutionSide to as many,
/// x with a border of one. A thread makes one pixel of kConvolutionDepth channels (the grid's y).
inline constexpr unsigned kConvolutionSide = 64;
inline constexpr unsigned kConvolutionDepth = 8;
inline constexpr unsigned kConvolutionPadded = kConvolutionSide + 2;
std::string convolution_ptx(unsigned channels);

/// bench_elementwise(x, y, count): y = max(x, s + t x), and `steps` more multiply-adds for each.
/// count is in fours.
std::string elementwise_ptx(unsigned steps);

/// bench_reduction(x, out, count): adds the sum of x to out; count is in fours.
std::string reduction_ptx();

}  // namespace libswap::bench
