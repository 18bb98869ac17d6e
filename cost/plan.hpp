// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

inline constexpr std::uint64_t kWholeTensor = UINT64_MAX;

/// What libswap-plan/1 calls out, copy, drop and in.
enum class ActionKind : std::uint8_t {
    Out,   ///< copy to the host once `op` has ended, then release the memory
    Copy,  ///< copy to the host once `op` has ended, and keep it
    Drop,  ///< release once `op` has ended: the host has the content already
    In,    ///< fetch; may begin once `op` is next
};

/// The kind's name in libswap-plan/1.
constexpr const char* action_name(ActionKind kind) noexcept {
    switch (kind) {
        case ActionKind::Out:
            return "out";
        case ActionKind::Copy:
            return "copy";
        case ActionKind::Drop:
            return "drop";
        case ActionKind::In:
            return "in";
    }
    return "?";
}

struct Action {
    ActionKind kind = ActionKind::Out;
    TensorIndex tensor = 0;
    OpIndex op = 0;
    std::uint64_t bytes = kWholeTensor;  ///< a part, or kWholeTensor
};

/// What an action moves at most.
inline std::uint64_t bytes_of(const Action& action, const Workload& workload) {
    return action.bytes == kWholeTensor ? workload.tensors()[action.tensor].bytes : action.bytes;
}

/// The first part of what a fetch brings, when it is cut in two. `action`: its place in the plan.
struct Division {
    std::uint32_t action = 0;
    std::uint64_t bytes = 0;
};

/// Actions in issue order; repeats every iteration.
struct Plan {
    std::vector<Action> actions;
};

/// When a fetch of a plan took its memory and arrived, in the last iteration replayed.
struct FetchTime {
    OpIndex claimed_at = kNoOperation;  ///< that was running, or next; kNoOperation: it did not
    double arrived_us = 0;              ///< since the iteration's start
};

}  // namespace libswap::cost
