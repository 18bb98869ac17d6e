// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/generate_options.hpp"

#include <fmt/format.h>

namespace libswap::tools {

std::string generated_model_names() {
    return fmt::format("{}", fmt::join(cost::generated_models(), ", "));
}

void GenerateChoices::add_to(CLI::App& command) {
    command.add_option("model", model, generated_model_names())->required();
    command.add_option("--batch", batch, "samples per iteration")->capture_default_str();
    command.add_option("--sequence", sequence, "tokens per sample (the model's own)");
    command.add_option("--accumulate", accumulation, "micro-batches that the batch is made of")
        ->capture_default_str();
    command.add_option("--freeze", frozen_layers, "first so many layers are not trained")
        ->capture_default_str();
    command.add_option("--dtype", type, "fp32, tf32, fp16 (also bf16) or fp64")
        ->capture_default_str();
}

tl::expected<cost::GenerateOptions, std::string> GenerateChoices::options(
    const cost::Ceilings& ceilings) const {
    cost::GenerateOptions options;
    options.ceilings = ceilings;
    options.batch = batch;
    options.sequence = sequence;
    if (accumulation < 1) return tl::unexpected(std::string("--accumulate must be at least 1"));
    if (frozen_layers < 0) return tl::unexpected(std::string("--freeze must not be below 0"));
    options.accumulation = static_cast<std::size_t>(accumulation);
    options.frozen_layers = static_cast<std::size_t>(frozen_layers);
    if (type == "tf32") {
        options.type = cost::DataType::Tf32;
    } else if (type == "fp16" || type == "bf16") {
        options.type = cost::DataType::Fp16;
    } else if (type == "fp64") {
        options.type = cost::DataType::Fp64;
    } else if (type != "fp32") {
        return tl::unexpected(
            fmt::format("unknown data type {} (known: fp32, tf32, fp16, bf16, fp64)", type));
    }
    return options;
}

}  // namespace libswap::tools
