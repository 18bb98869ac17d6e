// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "simgpu/exec/memory.hpp"
#include "simgpu/exec/ptx.hpp"
#include "simgpu/exec/texture.hpp"

namespace simgpu::exec {

/// Shape of a launch.
struct LaunchGeometry {
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::uint32_t dynamic_shared_bytes = 0;
};

/// How a launch ended.
enum class RunStatus {
    Ok,
    IllegalAddress,      ///< not mapped, not granted, or outside shared/local memory; see `address`
    MisalignedAddress,   ///< see `address`
    Trap,                ///< the kernel executed `trap`
    Assert,              ///< a device-side assert failed; its text is in `detail`
    UnknownInstruction,  ///< nothing was executed; the instruction is in `detail`
    InvalidLaunch,       ///< geometry or parameters do not fit the kernel, or a symbol is missing
    StackOverflow,       ///< a thread's local memory ran out in recursion
    BarrierDeadlock,     ///< every thread left waits at a barrier that cannot complete
    UnknownTexture,      ///< a texture or surface that is none was used; its number is in `detail`
    OutsideSurface,      ///< beyond a surface's edge, where that is to stop the kernel
};

/// What a launch did. Deterministic: the same inputs give the same counts and the same bytes.
struct RunCounters {
    /// Instructions times active lanes.
    std::uint64_t thread_instructions = 0;
    /// Asked for by loads and stores outside shared, local and parameter space.
    std::uint64_t global_bytes_loaded = 0;
    std::uint64_t global_bytes_stored = 0;
    /// Floating-point operations; a fused multiply-add is two.
    std::uint64_t flops = 0;
};

/// Result of `run`.
struct RunResult {
    RunStatus status = RunStatus::Ok;
    std::uint64_t address = 0;
    std::string detail;
    RunCounters counters;

    bool ok() const { return status == RunStatus::Ok; }
};

/// What a kernel can see of the world besides memory; every member may be left empty.
struct RunOptions {
    /// %globaltimer in nanoseconds, to which executed instructions are added. Without it: zero.
    std::function<std::uint64_t()> globaltimer_ns;
    /// Takes what device-side printf writes. Without it: stdout.
    std::function<void(std::string_view)> print;
    /// Texture and surface objects. Without it there are none.
    Textures* textures = nullptr;
    /// SMs among which %smid is dealt out.
    std::uint32_t sm_count = 108;
    /// All CTAs are under way at once, and may wait for each other.
    bool cooperative = false;
};

/// Largest dynamic plus static shared memory that `run` accepts.
inline constexpr std::uint32_t kMaxSharedBytes = 256 * 1024;

/// Executes a kernel to its end on the calling thread. `kernel` must belong to `module`; `params`
/// is the parameter block (at least `kernel.param_bytes`). After a fault nothing outside the
/// kernel's own earlier stores has changed. @thread any; launches may run at once
RunResult run(const ptx::Module& module, const ptx::Kernel& kernel, const LaunchGeometry& geometry,
              std::span<const std::byte> params, Memory& memory,
              const ptx::SymbolAddresses& addresses, const RunOptions& options = {});

}  // namespace simgpu::exec
