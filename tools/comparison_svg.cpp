// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/comparison.hpp"

namespace libswap::tools {

namespace {

constexpr double kRow = 18;
constexpr double kTop = 56;
constexpr double kLeft = 190;
constexpr double kWidth = 620;
constexpr double kRight = 30;
constexpr double kMark = 4.5;

// Okabe and Ito's colours, which stay apart for the colour-blind; ours is black.
constexpr std::array<const char*, 9> kColours{"#000000", "#999999", "#56b4e9", "#e69f00", "#009e73",
                                              "#cc79a7", "#0072b2", "#d55e00", "#f0e442"};

/// Names of workloads come from files' names.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '&':
                result += "&amp;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

class Picture {
  public:
    explicit Picture(const Comparison& comparison) : comparison_(comparison) {
        for (const ComparedCase& c : comparison.cases) {
            for (const Outcome& o : c.outcomes) {
                if (o.iteration_us && c.compute_us > 0) {
                    most_ = std::max(most_, *o.iteration_us / c.compute_us);
                }
            }
        }
        most_ = std::max(1.5, most_ * 1.05);
    }

    std::string draw() {
        const double height = kTop + kRow * static_cast<double>(comparison_.cases.size()) + 30;
        text_ = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
            "height=\"{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
            kLeft + kWidth + kRight, height);
        legend();
        axis(height - 30);
        double y = kTop + kRow / 2;
        for (const ComparedCase& c : comparison_.cases) {
            row(c, y);
            y += kRow;
        }
        label(kLeft + kWidth / 2, height - 4, "middle",
              "slowdown, iteration time / compute time (bar: no plan can be faster)");
        return text_ + "</svg>\n";
    }

  private:
    double x(double slowdown) const {
        return kLeft + kWidth * std::log(std::max(1.0, slowdown)) / std::log(most_);
    }

    void label(double at_x, double at_y, const char* anchor, std::string_view what) {
        text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x,
                             at_y, anchor, escaped(what));
    }

    void mark(double at_x, double at_y, std::size_t policy) {
        text_ += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"white\"/>\n", at_x,
            at_y, kMark, kColours[static_cast<std::size_t>(comparison_.policies[policy]) % 9]);
    }

    void legend() {
        double at = 12;
        for (std::size_t p = 0; p < comparison_.policies.size(); ++p) {
            const auto name = cost::policy_name(comparison_.policies[p]);
            mark(at, 18, p);
            label(at + 9, 22, "start", name);
            at += 26 + 7 * static_cast<double>(name.size());
        }
        label(at, 22, "start", comparison_.machine);
    }

    void axis(double bottom) {
        for (const double tick : {1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0}) {
            if (tick > most_) break;
            text_ += fmt::format(
                "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#dddddd\"/>\n",
                x(tick), kTop - 6, bottom);
            label(x(tick), kTop - 10, "middle", fmt::format("{}", tick));
        }
    }

    void row(const ComparedCase& c, double y) {
        label(kLeft - 10, y + 4, "end", fmt::format("{} {}", c.workload, c.budget));
        if (!(c.compute_us > 0)) return;
        if (c.bound_us) {
            text_ += fmt::format(
                "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"black\" "
                "stroke-width=\"2\"/>\n",
                x(*c.bound_us / c.compute_us), y - kRow / 2 + 1, y + kRow / 2 - 1);
        }
        for (std::size_t p = c.outcomes.size(); p-- > 0;) {  // the first on top
            const auto& us = c.outcomes[p].iteration_us;
            if (us) mark(x(*us / c.compute_us), y, p);
        }
    }

    const Comparison& comparison_;
    double most_ = 1;
    std::string text_;
};

}  // namespace

std::string format_svg(const Comparison& comparison) { return Picture(comparison).draw(); }

}  // namespace libswap::tools
