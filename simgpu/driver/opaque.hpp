// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Kernels that come as machine code only. Their work cannot be done, but what depends on it can be
// kept: a launch reads what its parameters point to and fills what it may write with values that
// follow from all of it. A page lost, stale or late anywhere changes every later result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/device/operation.hpp"
#include "simgpu/exec/run.hpp"
#include "simgpu/host_kernels/written_operands.hpp"
#include "simgpu/image/image.hpp"

namespace simgpu::driver {

struct Function;
struct NamedFunction;

/// SIMGPU_OPAQUE: what becomes of kernels whose work nothing can do.
enum class OpaqueMode : std::uint8_t {
    Run,     ///< As above.
    Say,     ///< The same, and each is named once.
    Refuse,  ///< Their launches fail with NOT_SUPPORTED.
};

/// Read once. @thread any
OpaqueMode opaque_mode();

/// Names the kernel where that is asked for, once.
void say_opaque(NamedFunction& function);

/// A launch's parameter block, parameter by parameter.
std::vector<std::span<const std::byte>> split_parameters(
    const libswap::simgpu::image::KernelInfo& info, const std::vector<std::byte>& block);

/// One operand of an opaque launch.
struct OpaqueOperand {
    std::uint64_t va = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
};

/// What an opaque launch does; addresses only say where, never what is written.
struct OpaqueWork {
    std::uint64_t seed = 0;
    FillType type = FillType::Float;
    std::vector<OpaqueOperand> operands;
};

/// Notes what a launch that is not opaque names: it ends what opaque ones read. @thread any
void note_operands(const Function& function, const std::vector<std::byte>& parameters);

/// Reads the launch's parameters. To be called when the program launches: what is live is what the
/// program has then.
OpaqueWork opaque_work(const Function& function, const exec::LaunchGeometry& geometry,
                       const std::vector<std::byte>& parameters);

KernelOutcome run_opaque(const OpaqueWork& work, KernelMemory& memory);

}  // namespace simgpu::driver
