// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/driver/host_kernel.h"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/opaque.hpp"
#include "simgpu/driver/stream.hpp"
#include "simgpu/driver/texture_objects.hpp"
#include "simgpu/exec/run.hpp"

namespace simgpu::driver {

/// The arguments of all launch calls.
struct LaunchRequest {
    CUfunction function = nullptr;
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    CUstream stream = nullptr;
    DefaultStream default_stream = DefaultStream::Legacy;
    void** parameters = nullptr;
    void** extra = nullptr;
    bool cooperative = false;
    /// As they were given; what only tunes a launch matters to a captured one's node alone.
    const CUlaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};

/// A launch that was checked: everything it needs, whatever the program does in the meantime.
struct KernelCall {
    std::shared_ptr<Function> function;
    exec::LaunchGeometry geometry;
    std::vector<std::byte> parameters;
    SimgpuHostKernel native = nullptr;
    /// Of machine code that nothing else does the work of.
    OpaqueWork opaque;
    bool cooperative = false;
    /// Of a kernel that uses any.
    LaunchedObjects objects;
};

/// Checks as the driver does, and copies the parameters; of the request all but the stream. The
/// function must be of `context`.
CUresult prepare(const LaunchRequest& request, Context& context, KernelCall& out);

/// What the device is given for it.
KernelLaunch kernel_launch(std::shared_ptr<const KernelCall> call);

/// The call that kernel_launch() made it of; null for other work.
const KernelCall* call_of(const KernelLaunch& launch);

/// Checks as the driver does, copies the parameters, submits.
CUresult launch(const LaunchRequest& request);

}  // namespace simgpu::driver
