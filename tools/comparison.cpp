// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/comparison.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace libswap::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string cell(const std::optional<double>& value, int digits = 3) {
    return value ? fmt::format("{:.{}f}", *value, digits) : std::string("-");
}

std::optional<double> slowdown(const ComparedCase& c, const std::optional<double>& us) {
    if (!us || !(c.compute_us > 0)) return std::nullopt;
    return *us / c.compute_us;
}

}  // namespace

tl::expected<Bounds, std::string> Bounds::parse(std::string_view text) {
    try {
        Bounds bounds;
        for (const json& entry : json::parse(text)) {
            bounds.entries_.push_back({entry.at("workload"), entry.at("machine"), entry.at("share"),
                                       entry.at("iteration_us")});
        }
        return bounds;
    } catch (const json::parse_error& e) {
        return tl::unexpected(fmt::format("not JSON (byte {})", e.byte));
    } catch (const std::exception&) {
        return tl::unexpected(std::string(
            "not a list of bounds (workload, machine, share and iteration_us in each)"));
    }
}

std::optional<double> Bounds::find_us(std::string_view workload, std::string_view machine,
                                      double share) const {
    for (const Entry& e : entries_) {
        const bool same = e.workload == workload && e.machine == machine;
        if (same && std::abs(e.share - share) < 1e-6) return e.us;
    }
    return std::nullopt;
}

std::optional<double> mean_ratio(const Comparison& comparison, std::size_t numerator,
                                 std::optional<std::size_t> denominator) {
    double logs = 0;
    int count = 0;
    for (const ComparedCase& c : comparison.cases) {
        const auto over = c.outcomes[numerator].iteration_us;
        const auto under = denominator ? c.outcomes[*denominator].iteration_us : c.bound_us;
        if (!over || !under || !(*over > 0) || !(*under > 0)) continue;
        logs += std::log(*over / *under);
        ++count;
    }
    if (count == 0) return std::nullopt;
    return std::exp(logs / count);
}

std::string format_table(const Comparison& comparison) {
    std::string text = "| workload | budget | bound |";
    std::string rule = "|---|---|---|";
    for (const cost::PolicyKind kind : comparison.policies) {
        text += fmt::format(" {} |", cost::policy_name(kind));
        rule += "---|";
    }
    text += "\n" + rule + "\n";
    for (const ComparedCase& c : comparison.cases) {
        text +=
            fmt::format("| {} | {} | {} |", c.workload, c.budget, cell(slowdown(c, c.bound_us)));
        for (const Outcome& o : c.outcomes) {
            text += fmt::format(" {} |", cell(slowdown(c, o.iteration_us)));
        }
        text += "\n";
    }
    const auto means = [&](const char* what, std::optional<std::size_t> denominator) {
        std::string line = fmt::format("| {} | | |", what);
        bool any = false;
        for (std::size_t p = 0; p < comparison.policies.size(); ++p) {
            const auto mean = mean_ratio(comparison, p, denominator);
            any = any || mean;
            line += fmt::format(" {} |", cell(mean));
        }
        if (any) text += line + "\n";
    };
    means("mean of time / bound", std::nullopt);
    means(fmt::format("mean of time / {}", cost::policy_name(comparison.policies[0])).c_str(), 0);
    return text;
}

std::string format_comparison_json(const Comparison& comparison) {
    ordered_json cases = ordered_json::array();
    for (const ComparedCase& c : comparison.cases) {
        ordered_json one{{"workload", c.workload},
                         {"budget", c.budget},
                         {"share", c.share},
                         {"compute_us", c.compute_us}};
        if (c.bound_us) one["bound_us"] = *c.bound_us;
        for (std::size_t p = 0; p < c.outcomes.size(); ++p) {
            const Outcome& o = c.outcomes[p];
            ordered_json outcome{{"planning_ms", o.planning_ms}, {"note", o.note}};
            if (o.iteration_us) outcome["iteration_us"] = *o.iteration_us;
            one["policies"][std::string(cost::policy_name(comparison.policies[p]))] =
                std::move(outcome);
        }
        cases.push_back(std::move(one));
    }
    return ordered_json{{"machine", comparison.machine}, {"cases", std::move(cases)}}.dump() + "\n";
}

}  // namespace libswap::tools
