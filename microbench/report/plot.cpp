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

constexpr double kLeft = 70, kTop = 40, kWidth = 560, kHeight = 320, kLegend = 170;
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

/// One logarithmic axis, of whole ticks.
class Axis {
  public:
    Axis(double base, double from, double length) : base_(base), from_(from), length_(length) {}

    void include(double value) {
        low_ = std::min(low_, std::floor(exponent(value) + 1e-9));
        high_ = std::max(high_, std::ceil(exponent(value) - 1e-9));
    }
    bool empty() const { return low_ > high_; }
    double at(double value) const {
        const double span = std::max(1.0, high_ - low_);
        return from_ + length_ * (exponent(value) - low_) / span;
    }
    /// At most ten.
    std::vector<double> ticks() const {
        std::vector<double> all;
        const double step = std::max(1.0, std::ceil((high_ - low_) / 10));
        for (double e = low_; e <= high_; e += step) all.push_back(std::pow(base_, e));
        return all;
    }

  private:
    double exponent(double value) const { return std::log(value) / std::log(base_); }

    double base_, from_, length_;
    double low_ = std::numeric_limits<double>::infinity();
    double high_ = -std::numeric_limits<double>::infinity();
};

class Drawing {
  public:
    explicit Drawing(const Plot& plot)
        : plot_(plot),
          x_(plot.x_is_bytes ? 2 : 10, kLeft, kWidth),
          y_(10, kTop + kHeight, -kHeight) {
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
            kLeft + kWidth + kLegend, kTop + kHeight + kBelow);
        label(kLeft, 20, "start", plot_.title);
        if (!x_.empty()) {
            grid();
            for (std::size_t k = 0; k < plot_.series.size(); ++k) series(k);
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

    void line(double x1, double y1, double x2, double y2) {
        text_ += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n",
            x1, y1, x2, y2);
    }

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

    void series(std::size_t k) {
        const Series& s = plot_.series[k];
        const char* colour = kColours[k % kColours.size()];
        std::string path;
        for (const Point& p : s.points) {
            if (!drawn(p)) continue;
            if (s.dots) {
                text_ +=
                    fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n",
                                x_.at(p.x), y_.at(p.y), colour);
            } else {
                path += fmt::format("{:.1f},{:.1f} ", x_.at(p.x), y_.at(p.y));
            }
        }
        if (!path.empty())
            text_ += fmt::format(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                path, colour);
        const double y = kTop + 8 + 16 * static_cast<double>(k);
        text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n",
                             kLeft + kWidth + 14, y, colour);
        label(kLeft + kWidth + 24, y + 4, "start", s.name);
    }

    const Plot& plot_;
    Axis x_, y_;
    std::string text_;
};

}  // namespace

std::string format_svg(const Plot& plot) { return Drawing(plot).draw(); }

}  // namespace libswap::bench
