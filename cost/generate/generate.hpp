// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "cost/generate/training.hpp"

namespace libswap::cost {

struct GenerateOptions {
    std::int64_t batch = 1;         ///< samples per iteration, over all micro-batches
    std::int64_t sequence = 0;      ///< tokens per sample; 0: the model's own
    std::size_t accumulation = 1;   ///< micro-batches; must divide the batch
    std::size_t frozen_layers = 0;  ///< of the layers with parameters, counted from the input
    DataType type = DataType::Fp32;
    Ceilings ceilings;
};

/// The names that generate_network knows.
std::span<const std::string_view> generated_models();

/// The forward pass of a model for one micro-batch. The error is one line.
tl::expected<Network, std::string> generate_network(std::string_view model,
                                                    const GenerateOptions& options);

/// One training iteration: convolutional networks with SGD, the others with Adam.
tl::expected<Workload, std::string> generate_workload(std::string_view model,
                                                      const GenerateOptions& options);

}  // namespace libswap::cost
