// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// 16-bit floats outside of the interpreter, by its own conversions.
#pragma once

#ifndef SIMGPU_ISA
#define SIMGPU_ISA plain
#endif
#include "simgpu/exec/math.hpp"

namespace simgpu {

using exec::SIMGPU_ISA::bf16_to_float;
using exec::SIMGPU_ISA::double_to_bf16;
using exec::SIMGPU_ISA::double_to_half;
using exec::SIMGPU_ISA::half_to_float;

}  // namespace simgpu
