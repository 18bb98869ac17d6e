// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/report/results.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace libswap::bench {

namespace {

constexpr int kNameWidth = 44;

std::string number(double value) {
    const double size = std::abs(value);
    if (size != 0 && size < 0.01) return fmt::format("{:.5f}", value);
    if (size < 100) return fmt::format("{:.3f}", value);
    return fmt::format("{:.1f}", value);
}

}  // namespace

std::string size_name(double bytes) {
    constexpr std::array<const char*, 4> kUnits{"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    while (unit + 1 < kUnits.size() && bytes >= 1024 && std::fmod(bytes, 1024) == 0) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string format_table(const Table& table) {
    std::string text = fmt::format("\n{}\n", table.question);
    text += fmt::format("{:<{}} {:>12} {:>12} {:>9}\n", fmt::format("  [{}]", table.unit),
                        kNameWidth, "median", "minimum", "spread");
    for (const Row& row : table.rows) {
        const std::string spread =
            row.value.samples > 1 ? fmt::format("{:.1f} %", row.value.spread_percent) : "-";
        text += fmt::format("  {:<{}} {:>12} {:>12} {:>9}\n", row.name, kNameWidth - 2,
                            number(row.value.median), number(row.value.least), spread);
    }
    for (const std::string& note : table.notes) text += fmt::format("  {}\n", note);
    return text;
}

}  // namespace libswap::bench
