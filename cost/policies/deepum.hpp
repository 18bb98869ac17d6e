// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// DeepUM: Jung, Kim and Lee, "DeepUM: Tensor Migration and Prefetching in Unified Memory", ASPLOS
// 2023.
//
// From the paper: memory is unified and moves in blocks of 2 MiB. Tables of which kernel follows
// which, and which blocks each faults on, predict the next kernels; the blocks of the next N
// kernels are prefetched ahead of their faults. Victims are evicted ahead of faults too: the least
// recently migrated blocks that none of the next N kernels is expected to use.
//
// Decided here: an iteration repeats exactly, so the tables predict without error and a fault costs
// nothing but the copy (in its favour); N is 8, 16 or 32, whichever replays fastest (the paper
// calls it a parameter; the model of it in G10's artifact has 8).
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult deepum_plan(const RivalInput& input);

}  // namespace libswap::cost
