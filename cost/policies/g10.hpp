// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// G10: Zhang, Zhou, Al-Maruf, Zhong, Xue, Lee, Wu, Chen and Huang, "G10: Enabling An Efficient
// Unified GPU Memory and Storage Architecture with Smart Tensor Migrations", MICRO 2023, and its
// artifact, platformxlab/G10 (src/analysis.cc).
//
// From the source: the candidates are all inactive periods of tensors, over the end of the
// iteration too. Each kernel has a ledger of bytes per direction, bandwidth times its time. The
// benefit of a period is the bytes times the time during which memory is over 99 % of its size,
// from where half of the eviction is done to where half of the fetch is; the greatest goes first,
// and benefits are taken anew after each. A period must be longer than the two transfers; the
// eviction takes ledger from its start on, the fetch backwards from its end; it is taken only if
// they do not meet, and then the memory between them counts as free. A second, tolerant pass takes
// what is left without ledgers while memory is still over. Last, fetches move earlier where memory
// allows. What the plan does not cover is demand paged (unified memory).
//
// Decided here: the host takes the part of the flash drive too; its safety margin delta is 0; pages
// are 2 MiB and victims the least recently used. Since no benefit ever grows, a queue that takes
// them anew only at its top gives the same order as sorting after each pick.
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult g10_plan(const RivalInput& input);

}  // namespace libswap::cost
