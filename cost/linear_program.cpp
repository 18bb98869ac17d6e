// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/linear_program.hpp"

#include <algorithm>
#include <cmath>

#include "cost/normal_matrix.hpp"

namespace libswap::cost {

LinearProgram::Row LinearProgram::add_group(std::size_t count) {
    const auto first = static_cast<Row>(right_.size());
    right_.resize(right_.size() + count, 0.0);
    group_end_.push_back(static_cast<std::uint32_t>(right_.size()));
    return first;
}

std::uint32_t LinearProgram::add_column(double cost, double limit, const Terms& terms) {
    const std::size_t begin = terms_.size();
    for (const auto& [row, value] : terms) {
        if (value == 0) continue;
        const auto same =
            std::find_if(terms_.begin() + static_cast<std::ptrdiff_t>(begin), terms_.end(),
                         [row = row](const Term& t) { return t.row == row; });
        if (same != terms_.end()) {
            same->value += value;
        } else {
            terms_.push_back({row, value});
        }
    }
    ends_.push_back(static_cast<std::uint32_t>(terms_.size()));
    cost_.push_back(cost);
    limit_.push_back(limit);
    return static_cast<std::uint32_t>(cost_.size() - 1);
}

/// One solution under way. Names follow Wright, Primal-Dual Interior-Point Methods (1997): x, its
/// slack w to the limit, duals y of the rows, z of x >= 0, v of x <= limit.
class InteriorPoint {
  public:
    explicit InteriorPoint(const LinearProgram& lp)
        : lp_(lp),
          m_(lp.right_.size()),
          n_(lp.cost_.size()),
          x_(n_),
          w_(n_, 1.0),
          z_(n_, 1.0),
          v_(n_, 0.0),
          y_(m_, 0.0),
          weight_(n_),
          matrix_(lp) {}

    LinearProgram::Solution run(double tolerance, int most_steps) {
        if (!begin()) return {};
        for (int step = 0; step < most_steps; ++step) {
            residuals();
            if (gap_ < tolerance && primal_error_ < 1e-6 * (1 + norm(lp_.right_))) return {x_, y_};
            if (!factorise()) break;
            advance();
        }
        // Rounding can end it early; what it has then may still do.
        if (gap_ < 1e-2 && primal_error_ < 1e-3 * (1 + norm(lp_.right_))) return {x_, y_};
        return {};
    }

  private:
    using Vector = std::vector<double>;

    bool bounded(std::size_t j) const { return lp_.limit_[j] < LinearProgram::kUnlimited; }

    static double norm(const Vector& a) {
        double most = 0;
        for (const double value : a) most = std::max(most, std::abs(value));
        return most;
    }

    template <typename Visit>
    void each_term(std::size_t j, Visit visit) const {
        const std::size_t begin = j == 0 ? 0 : lp_.ends_[j - 1];
        for (std::size_t t = begin; t < lp_.ends_[j]; ++t) {
            visit(lp_.terms_[t].row, lp_.terms_[t].value);
        }
    }

    double column_dot(std::size_t j, const Vector& rows) const {
        double sum = 0;
        each_term(j, [&](std::uint32_t row, double value) { sum += value * rows[row]; });
        return sum;
    }

    /// Mehrotra's starting point: least squares, moved inside.
    bool begin() {
        std::fill(x_.begin(), x_.end(), 1.0);
        if (!factorise()) return false;
        const Vector primal = solve_factored(lp_.right_);
        Vector costs(m_);
        for (std::size_t j = 0; j < n_; ++j) {
            each_term(j,
                      [&](std::uint32_t row, double value) { costs[row] += value * lp_.cost_[j]; });
        }
        y_ = solve_factored(std::move(costs));
        double shift = 0.1;
        for (std::size_t j = 0; j < n_; ++j) {
            x_[j] = column_dot(j, primal);
            z_[j] = lp_.cost_[j] - column_dot(j, y_);
            if (!bounded(j)) shift = std::max(shift, -1.5 * x_[j]);
        }
        for (std::size_t j = 0; j < n_; ++j) {
            const double reduced = z_[j];
            z_[j] = std::max(reduced, 0.0) + 0.1;
            if (!bounded(j)) {
                x_[j] += shift;
                z_[j] = std::max(z_[j], 0.1 - reduced);
                continue;
            }
            x_[j] = std::clamp(x_[j], 0.1 * lp_.limit_[j], 0.9 * lp_.limit_[j]);
            w_[j] = lp_.limit_[j] - x_[j];
            v_[j] = std::max(-reduced, 0.0) + 0.1;
        }
        return true;
    }

    void residuals() {
        rp_ = lp_.right_;
        rd_.assign(n_, 0.0);
        double complementarity = 0;
        double primal = 0;
        std::size_t pairs = 0;
        for (std::size_t j = 0; j < n_; ++j) {
            each_term(j, [&](std::uint32_t row, double value) { rp_[row] -= value * x_[j]; });
            rd_[j] = lp_.cost_[j] - column_dot(j, y_) - z_[j] + v_[j];
            complementarity += x_[j] * z_[j] + (bounded(j) ? w_[j] * v_[j] : 0);
            pairs += bounded(j) ? 2 : 1;
            primal += lp_.cost_[j] * x_[j];
        }
        mu_ = complementarity / static_cast<double>(pairs);
        primal_error_ = norm(rp_);
        gap_ = complementarity / (1 + std::abs(primal));
    }

    bool factorise() {
        for (std::size_t j = 0; j < n_; ++j) {
            weight_[j] = 1 / (z_[j] / x_[j] + (bounded(j) ? v_[j] / w_[j] : 0));
        }
        return matrix_.factorise(weight_);
    }

    Vector solve_factored(Vector b) const {
        matrix_.solve(b);
        return b;
    }

    struct Direction {
        Vector x, w, z, v, y;
    };

    Direction direction(const Vector& rxz, const Vector& rwv) const {
        Direction d;
        Vector g(n_);
        Vector right = rp_;
        for (std::size_t j = 0; j < n_; ++j) {
            g[j] = rd_[j] - rxz[j] / x_[j];
            if (bounded(j)) g[j] += rwv[j] / w_[j];  // x + w = limit holds from the start
            const double scaled = weight_[j] * g[j];
            each_term(j, [&](std::uint32_t row, double value) { right[row] += value * scaled; });
        }
        d.y = solve_factored(std::move(right));
        d.x.resize(n_);
        d.z.resize(n_);
        d.w.assign(n_, 0.0);
        d.v.assign(n_, 0.0);
        for (std::size_t j = 0; j < n_; ++j) {
            d.x[j] = weight_[j] * (column_dot(j, d.y) - g[j]);
            d.z[j] = (rxz[j] - z_[j] * d.x[j]) / x_[j];
            if (!bounded(j)) continue;
            d.w[j] = -d.x[j];
            d.v[j] = (rwv[j] - v_[j] * d.w[j]) / w_[j];
        }
        return d;
    }

    /// How far values can go along a direction and stay above zero.
    static double reach(const Vector& values, const Vector& steps, double most) {
        for (std::size_t j = 0; j < values.size(); ++j) {
            if (steps[j] < 0 && values[j] + most * steps[j] < 0) most = -values[j] / steps[j];
        }
        return most;
    }

    void advance() {
        Vector rxz(n_);
        Vector rwv(n_);
        for (std::size_t j = 0; j < n_; ++j) {
            rxz[j] = -x_[j] * z_[j];
            rwv[j] = -w_[j] * v_[j];
        }
        const Direction predicted = direction(rxz, rwv);
        const double primal = std::min(reach(x_, predicted.x, 1), reach(w_, predicted.w, 1));
        const double dual = std::min(reach(z_, predicted.z, 1), reach(v_, predicted.v, 1));
        double after = 0;
        std::size_t pairs = 0;
        for (std::size_t j = 0; j < n_; ++j) {
            after += (x_[j] + primal * predicted.x[j]) * (z_[j] + dual * predicted.z[j]);
            if (bounded(j)) {
                after += (w_[j] + primal * predicted.w[j]) * (v_[j] + dual * predicted.v[j]);
            }
            pairs += bounded(j) ? 2 : 1;
        }
        const double ratio = after / static_cast<double>(pairs) / mu_;
        const double target = mu_ * ratio * ratio * ratio;
        for (std::size_t j = 0; j < n_; ++j) {
            rxz[j] += target - predicted.x[j] * predicted.z[j];
            if (bounded(j)) rwv[j] += target - predicted.w[j] * predicted.v[j];
        }
        const Direction d = direction(rxz, rwv);
        constexpr double kShort = 0.995;
        const double p = std::min(1.0, kShort * std::min(reach(x_, d.x, 2), reach(w_, d.w, 2)));
        const double q = std::min(1.0, kShort * std::min(reach(z_, d.z, 2), reach(v_, d.v, 2)));
        for (std::size_t j = 0; j < n_; ++j) {
            x_[j] += p * d.x[j];
            z_[j] += q * d.z[j];
            if (!bounded(j)) continue;
            w_[j] += p * d.w[j];
            v_[j] += q * d.v[j];
        }
        for (std::size_t i = 0; i < m_; ++i) y_[i] += q * d.y[i];
    }

    const LinearProgram& lp_;
    std::size_t m_;
    std::size_t n_;
    Vector x_, w_, z_, v_, y_, rp_, rd_;
    Vector weight_;
    NormalMatrix matrix_;
    double mu_ = 0;
    double gap_ = 0;
    double primal_error_ = 0;
};

LinearProgram::Solution LinearProgram::solve(double tolerance, int most_steps) const {
    return InteriorPoint(*this).run(tolerance, most_steps);
}

}  // namespace libswap::cost
