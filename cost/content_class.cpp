// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/content_class.hpp"

#include <algorithm>

namespace libswap::cost {

namespace {
constexpr double kNearlyNone = 0.02;
constexpr double kNearlyAll = 0.95;
}  // namespace

void ContentClass::add_columns(LinearProgram& lp, std::span<const GapColumn> gaps) {
    const auto count = static_cast<std::uint32_t>(gaps.size());
    const bool grouped = !clean && count > 1;
    const double gb = bytes / kGb;
    const LinearProgram::Row first = grouped ? lp.add_group(count) : 0;
    if (grouped) {
        lp.set_right(first, gb);
        for (std::uint32_t i = 0; i < count; ++i) {
            lp.add_column(0, LinearProgram::kUnlimited, {{first + i, 1}});
        }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        LinearProgram::Terms terms = gaps[i].terms;
        if (!clean) {
            LinearProgram::Terms dirty = terms;
            dirty.insert(dirty.end(), gaps[i].dirty_terms.begin(), gaps[i].dirty_terms.end());
            for (std::uint32_t later = i + 1; grouped && later < count; ++later) {
                dirty.emplace_back(first + later, -1);
            }
            if (grouped) dirty.emplace_back(first, 1);
            columns_.push_back(lp.add_column(gaps[i].dirty_cost, gb, dirty));
        }
        if (!clean && i == 0) continue;
        if (grouped) terms.emplace_back(first + i, 1);
        columns_.push_back(lp.add_column(gaps[i].cost, gb, terms));
    }
}

void ContentClass::distribute(std::span<const double> values, const std::vector<Tensor>& tensors,
                              const GapTable& table, std::vector<std::uint64_t>& away) const {
    const std::size_t count = members.front().size();
    std::vector<double> dirty(count);
    std::vector<double> copied(count);
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (!clean) dirty[i] = values[columns_[next++]] * kGb;
        if (clean || i > 0) copied[i] = values[columns_[next++]] * kGb;
    }
    // Every content takes the same share of what is left, so that chains of gaps stay whole.
    for (const auto& gaps : members) {
        const auto whole = static_cast<double>(tensors[table.gaps[gaps[0]].tensor].bytes);
        double on_host = clean ? whole : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const double d = std::min(dirty[i], std::max(0.0, whole - on_host));
            const double c = std::min(copied[i], on_host);
            dirty[i] -= d;
            copied[i] -= c;
            double amount = d + c;
            on_host += clean ? 0 : d;
            if (amount < kNearlyNone * whole) continue;
            if (amount > kNearlyAll * whole) amount = whole;
            away[gaps[i]] = static_cast<std::uint64_t>(amount);
        }
    }
}

}  // namespace libswap::cost
