// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/selector.hpp"

#include <charconv>

namespace simgpu::driver {

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::optional<Selector> parse_selector(std::string_view text) {
    constexpr std::string_view kEvery = "every";
    if (text == "*") return Selector{1, 1};
    if (text.starts_with(kEvery)) {
        auto step = parse_number(text.substr(kEvery.size()));
        if (!step || *step == 0) return std::nullopt;
        return Selector{*step, *step};
    }
    bool onwards = text.ends_with('+');
    if (onwards) text.remove_suffix(1);
    auto first = parse_number(text);
    if (!first || *first == 0) return std::nullopt;
    return Selector{*first, onwards ? 1u : 0u};
}

std::optional<std::vector<RuleText>> parse_rules(std::string_view spec) {
    std::vector<RuleText> rules;
    while (!spec.empty()) {
        std::string_view item = spec.substr(0, spec.find(','));
        spec.remove_prefix(std::min(spec.size(), item.size() + 1));
        if (item.empty()) continue;
        std::size_t colon = item.find(':');
        std::size_t equals = item.rfind('=');
        if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon)
            return std::nullopt;
        auto selector = parse_selector(item.substr(colon + 1, equals - colon - 1));
        if (!selector) return std::nullopt;
        rules.push_back({item.substr(0, colon), *selector, item.substr(equals + 1)});
    }
    return rules;
}

}  // namespace simgpu::driver
