// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/report/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "microbench/report/results.hpp"

namespace libswap::bench {

namespace {

constexpr double kLeft = 70, kTop = 52, kWidth = 560, kHeight = 320;
constexpr double kLegend = 140, kOfLetter = 6.5;  // at least; of a sans-serif font of 11
constexpr double kLineWidth = 1.5, kDotRadius = 3.5;
constexpr double kBelow = 96;  // axis, its name, two sentences

// Okabe and Ito's colours, which stay apart for the colour-blind.
constexpr std::array<const char*, 8> kColours{"#000000", "#0072b2", "#e69f00", "#009e73",
                                              "#cc79a7", "#56b4e9", "#d55e00", "#999999"};

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '<') {
            result += "&lt;";
        } else if (c == '>') {
            result += "&gt;";
        } else if (c == '&') {
            result += "&amp;";
        } else {
            result += c;
        }
    }
    return result;
}

/// One logarithmic axis. It ends at round values: powers of two, or 1, 2 and 5 times powers of ten.
class Axis {
  public:
    Axis(bool binary, double from, double length) : binary_(binary), from_(from), length_(length) {}

    void include(double value) {
        low_ = std::min(low_, value);
        high_ = std::max(high_, value);
    }
    bool empty() const { return low_ > high_; }
    double at(double value) const {
        const double low = std::log(round_below());
        const double high = std::log(round_above());
        // A single value lies in the middle.
        return high > low ? from_ + length_ * (std::log(value) - low) / (high - low)
                          : from_ + length_ / 2;
    }
    /// At most about ten: fewer where all of them would be more.
    std::vector<double> ticks() const {
        std::vector<double> all;
        for (double value = round_below(); value <= round_above() * kAlmost; value = next(value))
            all.push_back(value);
        if (all.size() <= kMostTicks) return all;
        if (binary_) return every(all, (all.size() + kMostTicks - 1) / kMostTicks);
        std::vector<double> decades;
        for (const double value : all)
            if (std::abs(mantissa(value) - 1) < 1e-6) decades.push_back(value);
        return every(decades, (decades.size() + kMostTicks - 1) / kMostTicks);
    }

  private:
    static constexpr std::size_t kMostTicks = 10;
    static constexpr double kAlmost = 1 + 1e-9;

    static double power_below(double base, double value) {
        return std::pow(base, std::floor(std::log(value) / std::log(base) + 1e-9));
    }
    static double mantissa(double value) { return value / power_below(10, value); }
    static std::vector<double> every(const std::vector<double>& all, std::size_t step) {
        std::vector<double> some;
        for (std::size_t k = 0; k < all.size(); k += step) some.push_back(all[k]);
        return some;
    }
    double next(double value) const {
        if (binary_) return 2 * value;
        const double m = mantissa(value);
        return value * (m < 1.5 || m > 4.5 ? 2 : 2.5);
    }
    double round_below() const {
        double value = power_below(binary_ ? 2 : 10, low_);
        while (next(value) <= low_ * kAlmost) value = next(value);
        return value;
    }
    double round_above() const {
        double value = round_below();
        while (value * kAlmost < high_) value = next(value);
        return value;
    }

    bool binary_;
    double from_, length_;
    double low_ = std::numeric_limits<double>::infinity();
    double high_ = -std::numeric_limits<double>::infinity();
};

class Drawing {
  public:
    explicit Drawing(const Plot& plot)
        : plot_(plot), x_(plot.x_is_bytes, kLeft, kWidth), y_(false, kTop + kHeight, -kHeight) {
        for (const Series& s : plot.series) {
            for (const Point& p : s.points) {
                if (!drawn(p)) continue;
                x_.include(p.x);
                y_.include(p.y);
            }
        }
    }

    std::string draw() {
        text_ = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
            "height=\"{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
            kLeft + kWidth + legend_width(), kTop + kHeight + kBelow);
        title();
        if (!x_.empty()) {
            grid();
            // Lines first: measured dots lie on the line that was fitted to them.
            for (std::size_t k = 0; k < plot_.series.size(); ++k) curve(k);
            for (std::size_t k = 0; k < plot_.series.size(); ++k) dots(k);
            for (std::size_t k = 0; k < plot_.series.size(); ++k) legend(k);
        }
        const double below = kTop + kHeight;
        label(kLeft + kWidth / 2, below + 34, "middle", plot_.x_axis);
        label(kLeft - 60, kTop - 8, "start", plot_.y_axis);
        label(kLeft - 60, below + 60, "start", plot_.shows[0]);
        label(kLeft - 60, below + 76, "start", plot_.shows[1]);
        return text_ + "</svg>\n";
    }

  private:
    static bool drawn(const Point& p) { return p.x > 0 && p.y > 0; }

    void label(double x, double y, const char* anchor, const std::string& what) {
        text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                             anchor, escaped(what));
    }

    void title() {
        text_ += fmt::format(
            "<text x=\"{:.1f}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{}</text>\n",
            kLeft - 60, escaped(plot_.title));
    }

    void line(double x1, double y1, double x2, double y2, const char* colour = "#dddddd",
              double width = 1) {
        text_ += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"{}\"/>\n",
            x1, y1, x2, y2, colour, width);
    }

    void dot(double x, double y, const char* colour, double radius) {
        text_ += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"white\"/>\n", x,
            y, radius, colour);
    }

    double legend_width() const {
        std::size_t letters = 0;
        for (const Series& s : plot_.series) letters = std::max(letters, s.name.size());
        return std::max(kLegend, 40 + kOfLetter * static_cast<double>(letters));
    }

    /// Series of the same kind that are drawn over this one.
    double over(std::size_t k) const {
        const auto same = [&](const Series& s) { return s.dots == plot_.series[k].dots; };
        return static_cast<double>(std::count_if(
            plot_.series.begin() + static_cast<std::ptrdiff_t>(k) + 1, plot_.series.end(), same));
    }
    /// What lies under others is wider, and shows where they are the same.
    double width_of(std::size_t k) const { return kLineWidth * (1 + over(k)); }
    double radius_of(std::size_t k) const { return kDotRadius + kLineWidth * over(k); }

    void grid() {
        for (const double tick : x_.ticks()) {
            line(x_.at(tick), kTop, x_.at(tick), kTop + kHeight);
            label(x_.at(tick), kTop + kHeight + 15, "middle",
                  plot_.x_is_bytes ? size_name(tick) : fmt::format("{:g}", tick));
        }
        for (const double tick : y_.ticks()) {
            line(kLeft, y_.at(tick), kLeft + kWidth, y_.at(tick));
            label(kLeft - 6, y_.at(tick) + 4, "end", fmt::format("{:g}", tick));
        }
    }

    static const char* colour_of(std::size_t k) { return kColours[k % kColours.size()]; }

    void curve(std::size_t k) {
        if (plot_.series[k].dots) return;
        std::string path;
        for (const Point& p : plot_.series[k].points)
            if (drawn(p)) path += fmt::format("{:.1f},{:.1f} ", x_.at(p.x), y_.at(p.y));
        text_ += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", path,
            colour_of(k), width_of(k));
    }

    /// A curve of one point is a dot.
    void dots(std::size_t k) {
        const Series& s = plot_.series[k];
        if (!s.dots && s.points.size() != 1) return;
        for (const Point& p : s.points)
            if (drawn(p)) dot(x_.at(p.x), y_.at(p.y), colour_of(k), radius_of(k));
    }

    void legend(std::size_t k) {
        const Series& s = plot_.series[k];
        const double x = kLeft + kWidth + 16;
        const double y = kTop + 8 + 16 * static_cast<double>(k);
        if (s.dots) {
            dot(x, y, colour_of(k), radius_of(k));
        } else {
            line(x - 8, y, x + 8, y, colour_of(k), width_of(k));
        }
        label(x + 14, y + 4, "start", s.name);
    }

    const Plot& plot_;
    Axis x_, y_;
    std::string text_;
};

}  // namespace

std::string format_svg(const Plot& plot) { return Drawing(plot).draw(); }

}  // namespace libswap::bench
