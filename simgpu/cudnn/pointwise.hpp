// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudnn/graph.hpp"

namespace libswap::simgpu::cudnn {

/// Whether the stand-in has the mode.
bool is_pointwise(int mode);

/// One value of a pointwise operation, in double. Forward: x, and b and t where the mode has them;
/// backward: x is the input, b the gradient of the output. `index`: the element's place along the
/// axis of GEN_INDEX.
double pointwise(const GraphOp& op, double x, double b, double t, double index);

}  // namespace libswap::simgpu::cudnn
