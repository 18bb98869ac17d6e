// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/models/link_fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace libswap::cost {

namespace {

constexpr int kRounds = 60;
constexpr double kHuber = 1.345;        // 95 % as efficient as least squares on normal errors
constexpr double kMadToSigma = 1.4826;  // of normal errors
constexpr double kLeastSpread = 1e-9;   // exact samples have none
constexpr double kOutlierSigmas = 4;
constexpr double kWorthABreak = 0.7;  // of the error without one
constexpr double kGoodEnough = 1e-3;  // mean error of one line that needs no break
constexpr std::size_t kLeastPerPiece = 6;

struct Line {
    double setup_us = 0;
    double us_per_byte = 0;
    double at(double bytes) const { return setup_us + us_per_byte * bytes; }
};

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto mid = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), mid, values.end());
    return *mid;
}

/// Weighted least squares of us = setup + bytes * G. A negative setup is not a time: then through
/// 0.
Line weighted_line(std::span<const LinkSample> samples, const std::vector<double>& weights) {
    double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double w = weights[i];
        const auto x = static_cast<double>(samples[i].bytes);
        sw += w;
        sx += w * x;
        sy += w * samples[i].us;
        sxx += w * x * x;
        sxy += w * x * samples[i].us;
    }
    const double determinant = sw * sxx - sx * sx;
    Line line;
    if (determinant > 0) {
        line.us_per_byte = (sw * sxy - sx * sy) / determinant;
        line.setup_us = (sy - line.us_per_byte * sx) / sw;
    }
    if (line.setup_us < 0 || !(line.us_per_byte > 0)) {
        line = {0, sxx > 0 ? sxy / sxx : 0};
    }
    return line;
}

std::vector<double> relative_errors(std::span<const LinkSample> samples, const Line& line) {
    std::vector<double> errors;
    for (const LinkSample& s : samples) {
        const double model = line.at(static_cast<double>(s.bytes));
        errors.push_back(model > 0 ? (s.us - model) / model : 1);
    }
    return errors;
}

double spread_of(const std::vector<double>& errors) {
    std::vector<double> sizes;
    for (const double e : errors) sizes.push_back(std::abs(e));
    return std::max(kLeastSpread, kMadToSigma * median(std::move(sizes)));
}

Line robust_line(std::span<const LinkSample> samples) {
    std::vector<double> weights;
    for (const LinkSample& s : samples) weights.push_back(1 / (s.us * s.us));
    Line line = weighted_line(samples, weights);
    for (int round = 0; round < kRounds; ++round) {
        const auto errors = relative_errors(samples, line);
        const double spread = spread_of(errors);
        for (std::size_t i = 0; i < samples.size(); ++i) {
            const double model = std::max(1e-9, line.at(static_cast<double>(samples[i].bytes)));
            const double off = std::abs(errors[i]) / spread;
            weights[i] = (off <= kHuber ? 1 : kHuber / off) / (model * model);
        }
        const Line next = weighted_line(samples, weights);
        const bool settled =
            std::abs(next.us_per_byte - line.us_per_byte) <= 1e-12 * line.us_per_byte &&
            std::abs(next.setup_us - line.setup_us) <= 1e-12 * line.setup_us;
        line = next;
        if (settled) break;
    }
    return line;
}

double mean_size(const std::vector<double>& errors, double spread) {
    double sum = 0;
    for (const double e : errors) sum += std::min(std::abs(e), kOutlierSigmas * spread);
    return sum / static_cast<double>(errors.size());
}

/// Small messages at a rate of their own, with the setup of large ones, up to some size.
struct Piece {
    double us_per_byte = 0;
    std::uint64_t small_bytes = 0;
    double error = 0;
};

/// The small messages' rate, given the setup: the median of each one's.
double small_rate(std::span<const LinkSample> small, double setup_us) {
    std::vector<double> rates;
    for (const LinkSample& s : small) {
        if (s.bytes > 0) rates.push_back((s.us - setup_us) / static_cast<double>(s.bytes));
    }
    return median(std::move(rates));
}

Piece try_break(std::span<const LinkSample> sorted, std::size_t at, LinkFit& fit) {
    const auto small = sorted.first(at);
    const auto large = sorted.subspan(at);
    // Latency shows in the small ones only.
    const Line of_small = robust_line(small);
    Piece piece;
    piece.small_bytes = small.back().bytes;
    const double setup = of_small.setup_us;
    std::vector<double> rates;
    for (const LinkSample& s : large)
        rates.push_back((s.us - setup) / static_cast<double>(s.bytes));
    const double large_rate = median(std::move(rates));
    piece.us_per_byte = small_rate(small, setup);
    std::vector<double> errors;
    for (const LinkSample& s : sorted) {
        const double rate = s.bytes <= piece.small_bytes ? piece.us_per_byte : large_rate;
        const double model = setup + rate * static_cast<double>(s.bytes);
        errors.push_back(model > 0 ? (s.us - model) / model : 1);
    }
    piece.error = mean_size(errors, spread_of(errors));
    fit.model.latency_us = setup;
    fit.model.gbps = large_rate > 0 ? 1e-3 / large_rate : 0;
    fit.model.small_gbps = piece.us_per_byte > 0 ? 1e-3 / piece.us_per_byte : 0;
    fit.model.small_bytes = piece.small_bytes;
    return piece;
}

void report(std::span<const LinkSample> samples, LinkFit& fit) {
    std::vector<double> sizes;
    for (const LinkSample& s : samples) {
        const double model =
            fit.model.setup_us() + static_cast<double>(s.bytes) / fit.model.bytes_per_us(s.bytes);
        sizes.push_back(std::abs(s.us - model) / model);
    }
    const double spread = std::max(kLeastSpread, kMadToSigma * median(sizes));
    fit.samples = sizes.size();
    fit.outliers = static_cast<std::size_t>(std::count_if(
        sizes.begin(), sizes.end(), [&](double e) { return e > kOutlierSigmas * spread; }));
    std::sort(sizes.begin(), sizes.end());
    fit.median_error = sizes[sizes.size() / 2];
    fit.p95_error = sizes[std::min(sizes.size() - 1, sizes.size() * 95 / 100)];
}

}  // namespace

tl::expected<LinkFit, std::string> fit_link(std::span<const LinkSample> samples) {
    std::vector<LinkSample> sorted(samples.begin(), samples.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LinkSample& a, const LinkSample& b) { return a.bytes < b.bytes; });
    if (sorted.empty() || sorted.front().bytes == sorted.back().bytes) {
        return tl::unexpected(std::string("a link fit needs transfers of at least two sizes"));
    }
    for (const LinkSample& s : sorted) {
        if (!(s.us > 0) || !std::isfinite(s.us)) {
            return tl::unexpected(std::string("a link fit needs times above zero"));
        }
    }
    const Line line = robust_line(sorted);
    if (!(line.us_per_byte > 0)) {
        return tl::unexpected(std::string("the transfers do not take longer when they are larger"));
    }
    LinkFit best;
    best.model.latency_us = line.setup_us;
    best.model.gbps = 1e-3 / line.us_per_byte;
    const auto errors = relative_errors(sorted, line);
    double error = kWorthABreak * mean_size(errors, spread_of(errors));
    const bool look = error > kWorthABreak * kGoodEnough;
    for (std::size_t at = kLeastPerPiece; look && at + kLeastPerPiece <= sorted.size(); ++at) {
        if (sorted[at - 1].bytes == sorted[at].bytes) continue;
        LinkFit fit;
        const Piece piece = try_break(sorted, at, fit);
        if (piece.error >= error || !(fit.model.gbps > 0) || !(fit.model.small_gbps > 0)) continue;
        error = piece.error;
        best = fit;
    }
    report(sorted, best);
    return best;
}

double fit_duplex_gbps(const LogGp& alone, std::span<const LinkSample> samples) {
    std::vector<double> rates;
    for (const LinkSample& s : samples) {
        const double moving_us = s.us - alone.setup_us();
        if (moving_us > 0) rates.push_back(1e-3 * static_cast<double>(s.bytes) / moving_us);
    }
    return median(std::move(rates));
}

}  // namespace libswap::cost
