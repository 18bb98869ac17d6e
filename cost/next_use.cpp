// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/next_use.hpp"

#include <algorithm>
#include <numeric>

namespace libswap::cost {

NextUse::NextUse(const Workload& workload) : ends_(workload.tensors().size(), 0) {
    std::size_t uses = 0;
    for (OpIndex op = 0; op < workload.op_count(); ++op) {
        for (const Use& use : workload.uses(op)) ++ends_[use.tensor];
        uses += workload.uses(op).size();
    }
    ops_.resize(uses);
    // The uses fill each tensor's piece from its begin on, which makes the begin its end.
    std::exclusive_scan(ends_.begin(), ends_.end(), ends_.begin(), 0U);
    for (OpIndex op = 0; op < workload.op_count(); ++op) {
        for (const Use& use : workload.uses(op)) ops_[ends_[use.tensor]++] = op;
    }
}

OpIndex NextUse::of(TensorIndex tensor, OpIndex from) const {
    const auto begin = ops_.begin() + (tensor == 0 ? 0 : ends_[tensor - 1]);
    const auto end = ops_.begin() + ends_[tensor];
    if (begin == end) return kNoOperation;
    const auto next = std::lower_bound(begin, end, from);
    return next == end ? *begin : *next;
}

}  // namespace libswap::cost
