// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/gaps.hpp"

#include <algorithm>
#include <numeric>

namespace libswap::cost {

namespace {

struct Touch {
    OpIndex op;
    bool write;
    /// The operation that frees it before the next use; of the next iteration, counted on.
    OpIndex freed_by = kNotFreed;

    static constexpr OpIndex kNotFreed = UINT32_MAX;
    bool freed_before_next() const { return freed_by != kNotFreed; }
};

/// Uses of each tensor in order, and whether it is freed between one and the next.
std::vector<std::vector<Touch>> touches_of(const Workload& workload) {
    std::vector<std::vector<Touch>> touches(workload.tensors().size());
    std::vector<OpIndex> freed_early(workload.tensors().size(), Touch::kNotFreed);
    const auto ops = static_cast<OpIndex>(workload.op_count());
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        for (const Use& use : workload.uses(i)) {
            touches[use.tensor].push_back({static_cast<OpIndex>(i), use.write});
        }
        for (const TensorIndex t : workload.frees(i)) {
            OpIndex& freed_by = touches[t].empty() ? freed_early[t] : touches[t].back().freed_by;
            freed_by = std::min(freed_by, static_cast<OpIndex>(i));
        }
    }
    for (std::size_t t = 0; t < touches.size(); ++t) {
        if (freed_early[t] == Touch::kNotFreed || touches[t].empty()) continue;
        Touch& last = touches[t].back();
        if (!last.freed_before_next()) last.freed_by = freed_early[t] + ops;
    }
    return touches;
}

/// Memory in the steady state: as Workload::live_bytes, but what is left over from the iteration
/// before counts, and what no operation names does not.
std::vector<std::uint64_t> steady_live_bytes(const Workload& workload,
                                             const std::vector<std::vector<Touch>>& touches) {
    std::vector<bool> live(workload.tensors().size());
    std::uint64_t now = 0;
    for (std::size_t t = 0; t < live.size(); ++t) {
        live[t] = !touches[t].empty() && (!touches[t].back().freed_before_next() ||
                                          touches[t].back().freed_by >= workload.op_count());
        if (live[t]) now += workload.tensors()[t].bytes;
    }
    std::vector<std::uint64_t> result;
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        for (const Use& use : workload.uses(i)) {
            if (live[use.tensor]) continue;
            live[use.tensor] = true;
            now += workload.tensors()[use.tensor].bytes;
        }
        result.push_back(now + workload.op(i).workspace_bytes);
        for (const TensorIndex t : workload.frees(i)) {
            if (!live[t]) continue;
            live[t] = false;
            now -= workload.tensors()[t].bytes;
        }
    }
    return result;
}

/// Appends the gaps of one tensor. Begins after a write where there is one, so that the gaps of one
/// content come in a row.
void add_gaps(TensorIndex t, const std::vector<Touch>& touches, OpIndex ops, GapTable& table) {
    const auto written =
        std::find_if(touches.begin(), touches.end(), [](const Touch& u) { return u.write; });
    const std::size_t start =
        written == touches.end() ? 0 : static_cast<std::size_t>(written - touches.begin());
    bool fresh = true;
    OpIndex written_by = touches[start].op;
    for (std::size_t k = 0; k < touches.size(); ++k) {
        const std::size_t i = (start + k) % touches.size();
        const std::size_t j = (i + 1) % touches.size();
        if (touches[i].write) {
            fresh = true;
            written_by = touches[i].op;
        }
        const bool last = touches[i].freed_before_next();
        const OpIndex to = last ? touches[i].freed_by + 1 : touches[j].op + (j <= i ? ops : 0);
        if (to <= touches[i].op + 1) continue;
        if (fresh) {
            table.always_clean.push_back(written == touches.end());
            table.written.push_back(written_by);
            ++table.content_count;
            fresh = false;
        }
        table.gaps.push_back({t, touches[i].op, to, table.content_count - 1, last});
    }
}

}  // namespace

GapTable find_gaps(const Workload& workload, std::uint64_t min_bytes) {
    GapTable table;
    const auto touches = touches_of(workload);
    table.live_bytes = steady_live_bytes(workload, touches);
    const auto ops = static_cast<OpIndex>(workload.op_count());
    for (std::size_t t = 0; t < touches.size(); ++t) {
        if (touches[t].empty() || workload.tensors()[t].bytes < min_bytes) continue;
        add_gaps(static_cast<TensorIndex>(t), touches[t], ops, table);
    }
    return table;
}

std::vector<std::uint64_t> absent_bytes(const GapTable& table,
                                        std::span<const std::uint64_t> away) {
    const std::size_t ops = table.live_bytes.size();
    std::vector<std::uint64_t> absent(ops + 1);  // changes; they wrap below zero, their sums do not
    for (std::size_t g = 0; g < away.size(); ++g) {
        const Gap& gap = table.gaps[g];
        absent[gap.from + 1] += away[g];
        absent[gap.to % ops] -= away[g];
        if (gap.to >= ops) absent[0] += away[g];
    }
    absent.pop_back();
    std::partial_sum(absent.begin(), absent.end(), absent.begin());
    return absent;
}

std::vector<double> turning_bytes(const Workload& workload, const GapTable& table) {
    std::vector<double> turning(workload.op_count());
    for (const Gap& gap : table.gaps) {
        const auto bytes = static_cast<double>(workload.tensors()[gap.tensor].bytes);
        turning[gap.from] += bytes;
        turning[gap.to % turning.size()] += bytes;
    }
    return turning;
}

}  // namespace libswap::cost
