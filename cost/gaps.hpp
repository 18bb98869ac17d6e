// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

/// A tensor lies idle between two uses, after operation `from` until operation `to`; or between its
/// last use and operation to - 1, which frees it. Operations of the next iteration count on past
/// the end, so from < op_count <= to where a gap spans it.
struct Gap {
    TensorIndex tensor = 0;
    OpIndex from = 0;
    OpIndex to = 0;
    /// Gaps between two writes share their content: what one copied out, later ones drop for
    /// nothing.
    std::uint32_t content = 0;
    bool last = false;  ///< nothing uses it again: what leaves is never fetched
};

/// The gaps of an iteration in its steady state, and the memory it takes with none of them used.
struct GapTable {
    /// Those of one content are neighbours, in the order they come after the write.
    std::vector<Gap> gaps;
    /// Per content: the host has it from the start, as nothing in the iteration writes it.
    std::vector<bool> always_clean;
    /// Per content: the operation that writes it, of the iteration of its first gap or the one
    /// before. Unused where always_clean.
    std::vector<OpIndex> written;
    std::uint32_t content_count = 0;
    std::vector<std::uint64_t> live_bytes;  ///< while each operation runs, workspace included
};

/// Gaps of at least one whole operation, of tensors of at least `min_bytes`.
GapTable find_gaps(const Workload& workload, std::uint64_t min_bytes);

/// Bytes that are away while each operation runs, with these bytes away per gap.
std::vector<std::uint64_t> absent_bytes(const GapTable& table, std::span<const std::uint64_t> away);

/// Bytes that begin or end to lie idle at each operation.
std::vector<double> turning_bytes(const Workload& workload, const GapTable& table);

/// Calls visit(gaps, clean) for the gaps that `takes` takes of each content. Those of what is
/// always clean have nothing to do with each other and come one by one.
template <typename Takes, typename Visit>
void each_content(const GapTable& table, Takes takes, Visit visit) {
    for (std::uint32_t g = 0; g < table.gaps.size();) {
        const std::uint32_t content = table.gaps[g].content;
        const bool clean = table.always_clean[content];
        std::vector<std::uint32_t> gaps;
        for (; g < table.gaps.size() && table.gaps[g].content == content; ++g) {
            if (takes(table.gaps[g])) gaps.push_back(g);
        }
        if (!clean && !gaps.empty()) visit(std::move(gaps), false);
        for (std::size_t i = 0; clean && i < gaps.size(); ++i) {
            visit(std::vector<std::uint32_t>{gaps[i]}, true);
        }
    }
}

}  // namespace libswap::cost
