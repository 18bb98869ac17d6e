// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/normal_matrix.hpp"

#include <algorithm>
#include <cmath>

#include "cost/cholesky.hpp"

namespace libswap::cost {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

std::size_t stride_of(std::size_t rows) {
    return ((rows + kCholeskyLanes - 1) / kCholeskyLanes | 1) * kCholeskyLanes;
}

}  // namespace

NormalMatrix::NormalMatrix(const LinearProgram& lp)
    : lp_(lp), m_(lp.rows_), stride_(stride_of(m_)), rest_(m_ * stride_ / kCholeskyLanes) {
    std::uint32_t first = static_cast<std::uint32_t>(m_);
    std::vector<std::uint32_t> group_of_row(lp.right_.size(), kNone);
    for (const std::uint32_t end : lp.group_end_) {
        for (std::uint32_t r = first; r < end; ++r) {
            group_of_row[r] = static_cast<std::uint32_t>(groups_.size());
        }
        groups_.push_back({first, end - first, {}, {}, {}});
        first = end;
    }
    group_of_.assign(lp.cost_.size(), kNone);
    std::uint32_t begin = 0;
    for (std::size_t j = 0; j < lp.cost_.size(); ++j) {
        for (std::uint32_t t = begin; t < lp.ends_[j]; ++t) {
            const std::uint32_t g = group_of_row[lp.terms_[t].row];
            if (g != kNone) group_of_[j] = g;
        }
        if (group_of_[j] != kNone) {
            for (std::uint32_t t = begin; t < lp.ends_[j]; ++t) {
                if (lp.terms_[t].row < m_) groups_[group_of_[j]].outer.push_back(lp.terms_[t].row);
            }
        }
        begin = lp.ends_[j];
    }
    for (Group& group : groups_) {
        std::sort(group.outer.begin(), group.outer.end());
        group.outer.erase(std::unique(group.outer.begin(), group.outer.end()), group.outer.end());
        group.inner_matrix.resize(std::size_t{group.count} * group.count);
        group.mixed_matrix.resize(group.count * group.outer.size());
    }
    place_.assign(lp.terms_.size(), kNone);
    begin = 0;
    for (std::size_t j = 0; j < lp.cost_.size(); ++j) {
        for (std::uint32_t t = begin; group_of_[j] != kNone && t < lp.ends_[j]; ++t) {
            const Group& group = groups_[group_of_[j]];
            const std::uint32_t row = lp.terms_[t].row;
            place_[t] = row >= m_
                            ? row - group.first
                            : static_cast<std::uint32_t>(
                                  std::lower_bound(group.outer.begin(), group.outer.end(), row) -
                                  group.outer.begin());
        }
        begin = lp.ends_[j];
    }
}

void NormalMatrix::assemble(const std::vector<double>& weight) {
    std::fill(rest_.begin(), rest_.end(), Line{});
    for (Group& group : groups_) {
        std::fill(group.inner_matrix.begin(), group.inner_matrix.end(), 0.0);
        std::fill(group.mixed_matrix.begin(), group.mixed_matrix.end(), 0.0);
    }
    std::size_t begin = 0;
    for (std::size_t j = 0; j < weight.size(); ++j) {
        const std::size_t end = lp_.ends_[j];
        for (std::size_t a = begin; a < end; ++a) {
            const auto& [row, value] = lp_.terms_[a];
            const double scaled = weight[j] * value;
            if (row < m_) {
                double* target = rest(row);
                for (std::size_t b = begin; b < end; ++b) {
                    const auto& other = lp_.terms_[b];
                    if (other.row >= row && other.row < m_)
                        target[other.row] += scaled * other.value;
                }
                continue;
            }
            Group& group = groups_[group_of_[j]];
            double* inner = group.inner_matrix.data() + std::size_t{place_[a]} * group.count;
            double* mixed = group.mixed_matrix.data() + place_[a] * group.outer.size();
            for (std::size_t b = begin; b < end; ++b) {
                const auto& other = lp_.terms_[b];
                (other.row < m_ ? mixed : inner)[place_[b]] += scaled * other.value;
            }
        }
        begin = end;
    }
}

bool NormalMatrix::eliminate(Group& group) {
    const std::size_t k = group.count;
    const std::size_t width = group.outer.size();
    if (!small_cholesky(group.inner_matrix.data(), k)) return false;
    const double* inner = group.inner_matrix.data();
    for (std::size_t i = 0; i < k; ++i) {
        double* target = group.mixed_matrix.data() + i * width;
        for (std::size_t c = 0; c < i; ++c) {
            const double* other = group.mixed_matrix.data() + c * width;
            const double factor = inner[c * k + i];
            for (std::size_t o = 0; o < width; ++o) target[o] -= factor * other[o];
        }
        const double inverse = 1 / inner[i * k + i];
        for (std::size_t o = 0; o < width; ++o) target[o] *= inverse;
        for (std::size_t a = 0; a < width; ++a) {
            if (target[a] == 0) continue;
            double* row = rest(group.outer[a]);
            for (std::size_t b = a; b < width; ++b) row[group.outer[b]] -= target[a] * target[b];
        }
    }
    return true;
}

bool NormalMatrix::factorise(const std::vector<double>& weight) {
    assemble(weight);
    std::vector<double> diagonal(m_);
    for (std::size_t i = 0; i < m_; ++i) diagonal[i] = rest(i)[i];
    for (Group& group : groups_) {
        if (!eliminate(group)) return false;
    }
    // What elimination leaves of a row that depends on others may be rounded below zero.
    for (std::size_t i = 0; i < m_; ++i) rest(i)[i] += 1e-12 + 1e-11 * diagonal[i];
    return cholesky(rest(0), m_, stride_);
}

void NormalMatrix::solve(std::vector<double>& b) const {
    for (const Group& group : groups_) {
        const std::size_t width = group.outer.size();
        for (std::size_t i = 0; i < group.count; ++i) {
            const double* inner = group.inner_matrix.data() + i;
            double sum = b[group.first + i];
            for (std::size_t c = 0; c < i; ++c) sum -= inner[c * group.count] * b[group.first + c];
            sum /= inner[i * group.count];
            b[group.first + i] = sum;
            const double* mixed = group.mixed_matrix.data() + i * width;
            for (std::size_t o = 0; o < width; ++o) b[group.outer[o]] -= mixed[o] * sum;
        }
    }
    solve_cholesky(rest_.data()->values, m_, stride_, b.data());
    for (const Group& group : groups_) {
        const std::size_t width = group.outer.size();
        for (std::size_t i = group.count; i-- > 0;) {
            const double* mixed = group.mixed_matrix.data() + i * width;
            double sum = b[group.first + i];
            for (std::size_t o = 0; o < width; ++o) sum -= mixed[o] * b[group.outer[o]];
            for (std::size_t c = i + 1; c < group.count; ++c) {
                sum -= group.inner_matrix[i * group.count + c] * b[group.first + c];
            }
            b[group.first + i] = sum / group.inner_matrix[i * group.count + i];
        }
    }
}

}  // namespace libswap::cost
