// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/memory_rows.hpp"

#include <algorithm>

namespace libswap::cost {

bool MemoryRows::add_worst(std::span<const double> over, double least) {
    const std::size_t before = at_.size();
    OpIndex worst = ops_;
    for (OpIndex k = 0; k <= ops_; ++k) {
        if (k < ops_ && over[k] >= least) {
            if (worst == ops_ || over[k] > over[worst]) worst = k;
        } else if (worst != ops_) {
            at_.push_back(worst);
            worst = ops_;
        }
    }
    std::sort(at_.begin(), at_.end());
    at_.erase(std::unique(at_.begin(), at_.end()), at_.end());
    return at_.size() > before;
}

OpIndex MemoryRows::row_of(OpIndex op) const {
    const auto found = std::lower_bound(at_.begin(), at_.end(), op % ops_);
    const auto rows = static_cast<OpIndex>(at_.size());
    return static_cast<OpIndex>(found - at_.begin()) + op / ops_ * rows;
}

MemoryRows::Span MemoryRows::span_of(const Gap& gap) const {
    return {row_of(gap.from + 1), row_of(gap.to)};
}

void MemoryRows::add_to(LinearProgram& lp, std::span<const double> need, double short_cost) const {
    double before = 0;
    for (std::size_t r = 0; r < at_.size(); ++r) {
        const auto row = static_cast<LinearProgram::Row>(r);
        const double here = need[at_[r]];
        lp.set_right(row, here - before);
        before = here;
        for (const double sign : {-1.0, 1.0}) {
            LinearProgram::Terms terms{{row, sign}};
            if (r + 1 < at_.size()) terms.emplace_back(row + 1, -sign);
            lp.add_column(sign > 0 ? short_cost : 0, LinearProgram::kUnlimited, terms);
        }
    }
}

void MemoryRows::add_terms(LinearProgram::Terms& terms, Span span) const {
    const auto rows = static_cast<OpIndex>(at_.size());
    if (span.first >= span.end) return;
    const OpIndex first = span.first % rows;
    const OpIndex end = span.end % rows;
    if (span.end - span.first < rows) {
        if (first != 0) terms.emplace_back(first, 1);
        if (end != 0) terms.emplace_back(end, -1);
    }
    const bool around = span.first / rows != (span.end - 1) / rows;
    if (first == 0 || around) terms.emplace_back(0, 1);
}

std::vector<double> over_by(const GapTable& table, std::span<const std::uint64_t> away,
                            std::span<const double> need) {
    const std::vector<std::uint64_t> absent = absent_bytes(table, away);
    std::vector<double> over(need.begin(), need.end());
    for (std::size_t k = 0; k < over.size(); ++k) over[k] -= static_cast<double>(absent[k]);
    return over;
}

}  // namespace libswap::cost
