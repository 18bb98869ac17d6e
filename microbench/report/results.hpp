// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What was measured, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {

struct Row {
    std::string name;
    Spread value;
};

/// One question. `key` names it for programs.
struct Table {
    std::string key;
    std::string question;
    std::string unit;
    std::vector<Row> rows;
    std::vector<std::string> notes;  ///< a line each, below the rows

    void add(std::string name, const std::vector<double>& values) {
        rows.push_back({std::move(name), spread_of(values)});
    }
    void add(std::string name, double value) {
        rows.push_back({std::move(name), {value, value, 0, 1}});
    }
};

/// "64 KiB", "2 MiB", "96 B": exact, with the largest unit that keeps it whole.
std::string size_name(double bytes);

/// Fixed width: name, median, minimum, spread.
std::string format_table(const Table& table);

}  // namespace libswap::bench
