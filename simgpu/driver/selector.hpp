// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace simgpu::driver {

/// Which uses of something a rule means: the third (`3`), the third and later (`3+`), each seventh
/// (`every7`), all (`*`).
struct Selector {
    std::uint64_t first = 1;
    /// Distance between hits after the first; 0: the first only.
    std::uint64_t step = 1;

    /// Whether the use number `use` (from 1) is meant.
    bool hits(std::uint64_t use) const {
        if (use < first) return false;
        return step == 0 ? use == first : (use - first) % step == 0;
    }
};

std::optional<Selector> parse_selector(std::string_view text);

/// One `name:selector=value` of a comma-separated list.
struct RuleText {
    std::string_view name;
    Selector selector;
    std::string_view value;
};

/// Nothing if any rule of the list is malformed. The parts point into `spec`.
std::optional<std::vector<RuleText>> parse_rules(std::string_view spec);

}  // namespace simgpu::driver
