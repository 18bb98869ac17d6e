// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <vector>

namespace libswap::bench {

struct Point {
    double x = 0, y = 0;
};

/// What is drawn as one colour: joined by lines, or as dots.
struct Series {
    std::string name;
    std::vector<Point> points;
    bool dots = false;
};

/// Both axes are logarithmic; values that are not above 0 are left out.
struct Plot {
    std::string file;  ///< without ending
    std::string title, x_axis, y_axis;
    std::vector<Series> series;
    std::string shows[2];  ///< two sentences
    bool x_is_bytes = false;
};

std::string format_svg(const Plot& plot);

}  // namespace libswap::bench
