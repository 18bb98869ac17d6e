// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/plan.hpp"

namespace libswap::cost {

/// The fetches of a plan, or all its other actions, by the operation that issues them, in plan
/// order. The plan must live as long.
class ActionTable {
  public:
    ActionTable(std::size_t ops, const Plan& plan, bool fetches) : begin_(ops + 1, 0) {
        const auto ours = [&](const Action& a) { return (a.kind == ActionKind::In) == fetches; };
        for (const Action& a : plan.actions) begin_[a.op + 1] += ours(a);
        for (std::size_t i = 0; i < ops; ++i) begin_[i + 1] += begin_[i];
        actions_.resize(begin_[ops]);
        std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
        for (const Action& a : plan.actions) {
            if (ours(a)) actions_[next[a.op]++] = &a;
        }
    }

    std::span<const Action* const> at(std::size_t op) const {
        return {actions_.data() + begin_[op], begin_[op + 1] - begin_[op]};
    }

  private:
    std::vector<std::uint32_t> begin_;
    std::vector<const Action*> actions_;
};

}  // namespace libswap::cost
