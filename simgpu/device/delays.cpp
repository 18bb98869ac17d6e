// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/delays.hpp"

#include <charconv>

namespace simgpu {

namespace {

bool parse_number(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

bool parse_duration(std::string_view text, std::uint64_t& ns) {
    const std::size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return false;
    const std::string_view unit = text.substr(digits);
    const std::uint64_t scale = unit == "ns"   ? 1
                                : unit == "us" ? 1'000
                                : unit == "ms" ? 1'000'000
                                : unit == "s"  ? 1'000'000'000
                                               : 0;
    std::uint64_t value = 0;
    if (scale == 0 || !parse_number(text.substr(0, digits), value)) return false;
    ns = value * scale;
    return true;
}

bool parse_class(std::string_view text, OpClass& op_class) {
    for (int i = 0; i < kOpClasses; ++i) {
        op_class = static_cast<OpClass>(i);
        if (text == op_class_name(op_class)) return true;
    }
    return false;
}

bool is_copy(OpClass op_class) {
    return op_class == OpClass::H2d || op_class == OpClass::D2h || op_class == OpClass::D2d ||
           op_class == OpClass::H2h;
}

}  // namespace

const char* op_class_name(OpClass op_class) {
    static const char* const names[kOpClasses] = {"kernel", "h2d",    "d2h",  "d2d",
                                                  "h2h",    "memset", "host", "other"};
    return names[static_cast<int>(op_class)];
}

bool Delays::parse_rule(std::string_view text, Rule& rule) {
    const std::size_t colon = text.find(':');
    const std::size_t equals = text.find('=');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) {
        return false;
    }
    if (!parse_class(text.substr(0, colon), rule.op_class)) return false;
    rule.does.loses_page = text.substr(equals + 1) == "lost";
    const bool fits = rule.does.loses_page
                          ? is_copy(rule.op_class)
                          : parse_duration(text.substr(equals + 1), rule.does.delay_ns);
    if (!fits) return false;
    std::string_view which = text.substr(colon + 1, equals - colon - 1);
    if (which == "*") return true;
    rule.when = Rule::When::Nth;
    if (which.starts_with("every")) {
        rule.when = Rule::When::Every;
        which.remove_prefix(5);
    } else if (which.ends_with("+")) {
        rule.when = Rule::When::From;
        which.remove_suffix(1);
    }
    return parse_number(which, rule.n) && rule.n != 0;
}

bool Delays::parse(std::string_view spec, std::string* error) {
    std::vector<Rule> rules;
    while (!spec.empty()) {
        const std::size_t comma = spec.find(',');
        const std::string_view text = spec.substr(0, comma);
        spec.remove_prefix(comma == std::string_view::npos ? spec.size() : comma + 1);
        if (text.empty()) continue;
        Rule rule;
        if (!parse_rule(text, rule)) {
            if (error != nullptr) {
                *error = "cannot read the delay '" + std::string(text) +
                         "', wanted CLASS:WHICH=TIME as in h2d:5=2ms, kernel:*=100us, "
                         "kernel:every7=1ms, d2h:3+=10us or d2h:5=lost";
            }
            return false;
        }
        rules.push_back(rule);
    }
    rules_ = std::move(rules);
    for (auto& count : counts_) count = 0;
    return true;
}

Disturbance Delays::next(OpClass op_class) {
    const std::uint64_t n = ++counts_[static_cast<int>(op_class)];
    Disturbance result;
    for (const Rule& rule : rules_) {
        if (rule.op_class != op_class) continue;
        const bool hit = rule.when == Rule::When::Nth    ? n == rule.n
                         : rule.when == Rule::When::From ? n >= rule.n
                                                         : n % rule.n == 0;
        if (!hit) continue;
        result.delay_ns += rule.does.delay_ns;
        result.loses_page = result.loses_page || rule.does.loses_page;
    }
    return result;
}

}  // namespace simgpu
