// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a cache replaces, told from w + 1 lines of one set of w ways read in random order. One of
// them is always out; the load that misses next names it, and so what the miss before threw out.
// How many of the others were used after the victim (its age) tells the policies apart, whichever
// way holds which line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "microbench/hierarchy/residency.hpp"

namespace libswap::bench {

enum class Policy : std::uint8_t { Unknown, DirectMapped, Lru, PseudoLru, Random, Fifo };
const char* policy_name(Policy policy);

struct PolicyFinding {
    Policy policy = Policy::Unknown;
    std::size_t evictions = 0;   ///< seen
    double oldest_part = 0;      ///< of the victims: the line used longest ago
    double first_come_part = 0;  ///< of the victims: the line that came first
    std::vector<double> by_age;  ///< part of the victims, by age: 0 was used last
    double certainty = 0;        ///< log likelihood per eviction over that of the next best policy
};

/// `group`: lines that share a set which holds all but one of them.
PolicyFinding find_policy(Prober& prober, const LevelView& view,
                          const std::vector<std::uint64_t>& group, std::uint32_t companion_bytes);

/// Hits and misses of loads of lines 0 to ways (one more than there is room for): what
/// find_policy's second half works on.
struct SetTrace {
    std::vector<std::uint32_t> lines;
    std::vector<bool> missed;
};
PolicyFinding judge_policy(const std::vector<SetTrace>& traces, std::uint32_t ways);

}  // namespace libswap::bench
