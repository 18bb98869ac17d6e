// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <tl/expected.hpp>

#include "cost/generate/generate.hpp"

namespace libswap::tools {

/// A generated workload as asked for on the command line.
struct GenerateChoices {
    std::string model;
    std::string type = "fp32";
    std::int64_t batch = 32;
    std::int64_t sequence = 0;
    std::int64_t accumulation = 1;
    std::int64_t frozen_layers = 0;

    void add_to(CLI::App& command);
    /// The error is one line.
    tl::expected<cost::GenerateOptions, std::string> options(const cost::Ceilings& ceilings) const;
};

/// The names of generated models, separated by commas.
std::string generated_model_names();

}  // namespace libswap::tools
