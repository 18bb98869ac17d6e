// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Capuchin: Peng, Shi, Dai, Jin, Ma, Xiong, Yang and Qian, "Capuchin: Tensor-based GPU Memory
// Management for Deep Learning", ASPLOS 2020.
//
// From the paper: one measured iteration gives each tensor's accesses and their times. Of two
// accesses in a row, swapping has FT = SwapInStart - SwapOutEnd, SwapOutEnd = first access + T,
// SwapInStart = second access - T, T = bytes / bandwidth. Candidates that are idle while memory is
// over its limit are taken by greatest FT until all fits. The in-trigger is the last access before
// SwapInStart; where the second access is found to wait in the next iteration, it is moved ahead by
// 5 % of T (feedback). What is still over is evicted on demand, least recently used first (its
// passive mode).
//
// Decided here: recomputation is left out, as a plan cannot say it; persistent tensors may move
// within the iteration; a tensor's other pairs of accesses are taken where its best one was not
// enough; up to 16 iterations of feedback, of which the fastest counts.
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult capuchin_plan(const RivalInput& input);

}  // namespace libswap::cost
