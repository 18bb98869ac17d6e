// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// A time that no plan's steady iteration can beat, to about 1e-4 of it: the fluid of fluid.hpp as
/// a relaxation, the highest of several cuts into at most `slots` slots (with as many as there are
/// operations, one cut is all). Unit us. Takes about 20 ns * slots^3; the compute time where the
/// program is not solved.
/// @thread any
double iteration_bound_us(const Workload& workload, const Machine& machine,
                          std::uint64_t budget_bytes, std::size_t slots);

}  // namespace libswap::cost
