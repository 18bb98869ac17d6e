// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <optional>
#include <vector>

#include "cost/fluid.hpp"
#include "cost/gaps.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// An iteration that repeats itself (gradient accumulation), with most of the repetitions left out,
/// so that a fluid of few slots sees one of them in detail.
struct Condensed {
    Workload workload;
    /// Per operation of the whole iteration, the one of `workload` that is, or stands for, it.
    std::vector<OpIndex> op_of;
    OpIndex resume = 0;  ///< the first operation after those left out
    /// From there on, per tensor of the whole iteration, the one of `workload`.
    std::vector<TensorIndex> tensor_of;
};

/// Leaves kept_periods repetitions, cut where memory is lowest. Nothing where an iteration has
/// fewer than one more of them, or memory grows or shrinks from one to the next. Operations are
/// alike if they name tensors of the same sizes in the same way; their times may differ.
std::optional<Condensed> condense(const Workload& workload, std::size_t kept_periods);

/// What a fluid of the condensed iteration says of each gap and operation of the whole one.
/// `whole`, `small`: their gaps, with the same least size.
FluidResult expand(const FluidResult& fluid, const Workload& workload, const Condensed& condensed,
                   const GapTable& whole, const GapTable& small);

}  // namespace libswap::cost
