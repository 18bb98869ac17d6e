// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "cost/generate/network.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

enum class Optimizer : std::uint8_t {
    Sgd,   ///< with momentum: one state per parameter
    Adam,  ///< two states per parameter
};

struct TrainingOptions {
    DataType type = DataType::Fp32;
    Optimizer optimizer = Optimizer::Sgd;
    std::size_t accumulation = 1;  ///< micro-batches per update of the parameters
    Ceilings ceilings;
};

/// One training iteration of a network: forward and backward pass of each micro-batch, then the
/// update. Parameters and the optimizer's states persist. What a backward kernel reads lives until
/// then, everything is freed after its last use. Times by the Roofline.
///
/// As eager PyTorch does it: gradients that meet are added by a kernel of its own, each parameter
/// is updated by one, and gradients are freed after it.
Workload training_iteration(const Network& network, const TrainingOptions& options);

}  // namespace libswap::cost
