// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// SwapAdvisor: Huang, Jin and Li, "SwapAdvisor: Pushing Deep Learning Beyond the GPU Memory Limit
// via Smart Swapping", ASPLOS 2020.
//
// From the paper: a genetic algorithm over the schedule of operations and the allocation of memory,
// its fitness being a simulation of the swap plan that follows from both. Memory is pools of size
// classes; which sizes share a class is part of the chromosome. The swap plan evicts, where a pool
// is full, the tensor whose next use is furthest (Belady's rule), as soon as its last use is over,
// and fetches as early as the memory it will have is free. Crossover, mutation, and selection by
// fitness.
//
// Decided here: operations keep their order, as a plan cannot change it. Memory has no addresses
// here, so a pool that is full takes from others where it has no victim of its own. A gene per pair
// of neighbouring sizes says whether they share a class. Population 8, 5 generations (the paper
// searches for half an hour; more did not bring more here), a fixed seed.
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult swap_advisor_plan(const RivalInput& input);

/// Belady's demand paging made asynchronous: evictions right after the last use, fetches as early
/// as memory stays within the budget all the way. Changes `paged` in place.
void make_early(const UseTable& table, std::uint64_t budget_bytes, PagedPlan& paged);

}  // namespace libswap::cost
