// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "cost/policies/policy.hpp"

namespace libswap::tools {

/// What one policy reached in one case.
struct Outcome {
    std::optional<double> iteration_us;  ///< nothing: no plan
    double planning_ms = 0;
    std::string note;  ///< the policy's, or why there is no plan
};

/// One workload under one budget.
struct ComparedCase {
    std::string workload;  ///< its file's name without folder and endings
    std::string budget;    ///< as it was asked for
    double share = 0;      ///< of the peak
    double compute_us = 0;
    std::optional<double> bound_us;  ///< no plan can be faster
    std::vector<Outcome> outcomes;   ///< per policy
};

struct Comparison {
    std::string machine;
    std::vector<cost::PolicyKind> policies;
    std::vector<ComparedCase> cases;
};

/// Times that no plan can beat, from a file as the referee's bounds.json: a list of objects with
/// workload, machine, share and iteration_us.
class Bounds {
  public:
    static tl::expected<Bounds, std::string> parse(std::string_view text);
    std::optional<double> find_us(std::string_view workload, std::string_view machine,
                                  double share) const;

  private:
    struct Entry {
        std::string workload;
        std::string machine;
        double share;
        double us;
    };
    std::vector<Entry> entries_;
};

/// Geometric mean over the cases in which `numerator` and `denominator` both have a time; nothing
/// if there are none. A missing denominator policy means the bound.
std::optional<double> mean_ratio(const Comparison& comparison, std::size_t numerator,
                                 std::optional<std::size_t> denominator);

/// Slowdowns as a Markdown table, with geometric means below.
std::string format_table(const Comparison& comparison);
std::string format_comparison_json(const Comparison& comparison);
/// A picture: a row per case, a mark per policy, slowdown on a logarithmic axis.
std::string format_svg(const Comparison& comparison);

}  // namespace libswap::tools
