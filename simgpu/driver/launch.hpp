// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "simgpu/driver/stream.hpp"

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
};

/// Checks as the driver does, copies the parameters, submits.
CUresult launch(const LaunchRequest& request);

}  // namespace simgpu::driver
