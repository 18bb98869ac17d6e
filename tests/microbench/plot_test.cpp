// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/report/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace libswap::bench {
namespace {

std::vector<double> numbers(const std::string& svg, const std::string& pattern) {
    std::vector<double> found;
    const std::regex expression(pattern);
    for (std::sregex_iterator it(svg.begin(), svg.end(), expression), end; it != end; ++it)
        found.push_back(std::stod((*it)[1]));
    return found;
}

Plot plot_of(const std::vector<std::string>& names, bool dots = false) {
    Plot plot;
    plot.title = "a < b";
    plot.shows[0] = "One.";
    plot.shows[1] = "Two.";
    for (const std::string& name : names)
        plot.series.push_back({name, {{1, 10}, {100, 1000}}, dots});
    return plot;
}

TEST(Plot, ShowsTitleAndBothSentences) {
    const std::string svg = format_svg(plot_of({"x"}));
    for (const char* text : {">a &lt; b<", ">One.<", ">Two.<", ">x<"})
        EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(Plot, HasRoomForItsLegend) {
    const std::string name(40, 'm');
    const std::string svg = format_svg(plot_of({name}));
    const double width = numbers(svg, "<svg[^>]* width=\"([0-9.]+)\"").at(0);
    const double begins = numbers(svg, "<text x=\"([0-9.]+)\"[^>]*>m+<").at(0);
    EXPECT_GT(width - begins, 6.0 * 40);
}

/// The same curve three times: each is seen beside the one that is drawn over it.
TEST(Plot, HidesNoCurveBehindAnother) {
    const auto widths =
        numbers(format_svg(plot_of({"x", "y", "z"})), "<polyline[^>]* stroke-width=\"([0-9.]+)\"");
    ASSERT_EQ(widths.size(), 3u);
    EXPECT_GE(widths[0], widths[1] + 1);
    EXPECT_GE(widths[1], widths[2] + 1);
    const auto radii =
        numbers(format_svg(plot_of({"x", "y"}, true)), "<circle[^>]* r=\"([0-9.]+)\"");
    ASSERT_EQ(radii.size(), 6u);  // two dots each, and the legend's
    EXPECT_GE(radii[0], radii[2] + 1);
}

TEST(Plot, LeavesOutWhatHasNoLogarithm) {
    Plot plot = plot_of({"x"});
    plot.series[0].points = {{0, 10}, {1, -1}};
    EXPECT_EQ(format_svg(plot).find("<polyline"), std::string::npos);
}

}  // namespace
}  // namespace libswap::bench
