// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <optional>

#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

struct DivideOptions {
    std::uint64_t budget_bytes = 0;
    std::uint64_t least_bytes = std::uint64_t{1} << 20;  ///< of a part
    std::uint64_t part_bytes = 1;                        ///< parts are multiples of this
};

/// A large fetch waits until there is room for all of it and all is mapped. Where the link to the
/// device idles meanwhile in a replay, what had room, or so much that the rest is mapped while it
/// comes in, becomes a fetch of its own in front of the rest. Both are issued where the whole was,
/// so no more memory is asked for at any operation. Not always faster: replay it. Nothing where no
/// fetch was late, or the plan cannot be executed.
/// @thread any
std::optional<Plan> divide_late_fetches(const Workload& workload, const Machine& machine,
                                        const Plan& plan, const DivideOptions& options);

}  // namespace libswap::cost
