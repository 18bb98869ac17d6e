// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

/// A block as one operation names it. `block` is one allocation of it: never 0 and never used
/// twice, so that a buffer freed and allocated anew is another block.
struct TracedOperand {
    std::uint64_t block = 0;
    std::uint64_t bytes = 0;
    bool read = true;
    bool write = true;
};

/// Operations as they were seen, oldest first.
struct Trace {
    struct Op {
        std::uint64_t signature = 0;
        double duration_us = -1;  ///< negative: not measured
        std::uint64_t workspace_bytes = 0;
        std::uint32_t operands_end = 0;  ///< operands of op i begin where those of op i - 1 end
        std::uint32_t frees_end = 0;     ///< likewise; freed after op i, before op i + 1
        std::string_view name;
        double late_us = -1;  ///< the device waited for the program before it; negative: not known
    };
    std::vector<Op> ops;
    std::vector<TracedOperand> operands;
    std::vector<std::uint64_t> frees;

    std::span<const TracedOperand> operands_of(std::size_t op) const;
    std::span<const std::uint64_t> frees_of(std::size_t op) const;
};

/// A trace's iteration as a workload, and the way back from its tensors to blocks.
///
/// Buffers that are freed and allocated again each iteration are other blocks every time. What
/// stays is where they are named: *slot* (i, k) is operand k of operation i. Slots that one block
/// was ever seen in belong to one tensor, so a tensor is a class of slots, and the block that it
/// stands for at any moment is the one that filled one of its slots last.
struct Iteration {
    Workload workload;
    /// Operation 0 of the workload is operation `origin` of the period, counted from the trace's
    /// start modulo its period: where the fewest bytes live on from one iteration to the next.
    OpIndex origin = 0;
    std::vector<std::uint32_t> slots_end;  ///< per operation of the workload
    std::vector<TensorIndex> slots;        ///< tensor of each operand
    std::vector<std::uint64_t> blocks;  ///< per tensor: the block it stood for at the trace's end

    std::span<const TensorIndex> slots_of(std::size_t op) const;
};

/// Builds the iteration from a trace of at least two whole periods (the last two count). Durations
/// are the mean of what was measured; unmeasured ones become `default_us`. The device's wait for
/// the program counts with the operation behind it, the shorter of two: the longer had some other
/// cause.
Iteration build_iteration(const Trace& trace, std::size_t period, double default_us = 5.0);

}  // namespace libswap::cost
