// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/use_table.hpp"

#include <algorithm>

namespace libswap::cost {

UseTable::UseTable(const Workload& workload)
    : workload_(workload),
      ends_(workload.tensors().size() + 1),
      live_bytes_(workload.live_bytes()) {
    const std::size_t tensors = workload.tensors().size();
    across_.assign(tensors, true);
    start_us_.push_back(0);
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        for (const Use& use : workload.uses(i)) ++ends_[use.tensor + 1];
        for (const TensorIndex t : workload.frees(i)) across_[t] = false;
        start_us_.push_back(start_us_.back() + workload.op(i).duration_us);
    }
    for (std::size_t t = 0; t < tensors; ++t) ends_[t + 1] += ends_[t];
    uses_.resize(ends_[tensors]);
    std::vector<std::uint32_t> next(ends_.begin(), ends_.end() - 1);
    for (OpIndex i = 0; i < workload.op_count(); ++i) {
        for (const Use& use : workload.uses(i)) {
            uses_[next[use.tensor]++] = {i, use.read, use.write};
        }
    }
}

std::span<const UseTable::At> UseTable::uses(TensorIndex tensor) const {
    return {uses_.data() + ends_[tensor], ends_[tensor + 1] - ends_[tensor]};
}

OpIndex UseTable::next_use(TensorIndex tensor, OpIndex op) const {
    const auto all = uses(tensor);
    const auto next = std::upper_bound(all.begin(), all.end(), op,
                                       [](OpIndex o, const At& at) { return o < at.op; });
    if (next != all.end()) return next->op;
    if (all.empty() || !across_[tensor]) return UINT32_MAX;
    return all.front().op + static_cast<OpIndex>(workload_.op_count());
}

std::vector<IdleSpan> UseTable::idle_spans(bool with_wrap) const {
    std::vector<IdleSpan> spans;
    const auto ops = static_cast<OpIndex>(workload_.op_count());
    for (TensorIndex t = 0; t < workload_.tensors().size(); ++t) {
        const auto all = uses(t);
        for (std::size_t u = 0; u + 1 < all.size(); ++u) {
            if (all[u + 1].op > all[u].op + 1) spans.push_back({t, all[u].op, all[u + 1].op});
        }
        if (!with_wrap || all.empty() || !across_[t]) continue;
        const OpIndex to = all.front().op + ops;
        if (to > all.back().op + 1) spans.push_back({t, all.back().op, to});
    }
    return spans;
}

OpIndex UseTable::turning_point() const {
    std::vector<std::int64_t> change(workload_.op_count() + 1);
    for (const IdleSpan& span : idle_spans(false)) {
        if (across_[span.tensor]) continue;
        const auto bytes = static_cast<std::int64_t>(workload_.tensors()[span.tensor].bytes);
        change[span.from + 1] += bytes;
        change[span.to] -= bytes;
    }
    std::int64_t idle = 0;
    std::int64_t most = -1;
    OpIndex turn = 0;
    for (OpIndex i = 0; i < workload_.op_count(); ++i) {
        idle += change[i];
        if (idle > most) {
            most = idle;
            turn = i;
        }
    }
    return turn;
}

}  // namespace libswap::cost
