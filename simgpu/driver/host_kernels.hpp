// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>

#include "simgpu/driver/host_kernel.h"

namespace simgpu::driver {

/// What does the work of a kernel natively.
struct HostKernel {
    SimgpuHostKernel function = nullptr;  ///< Null: the kernel runs its own code.
    bool without_data = false;            ///< It may be called where no bytes exist.
};

/// See simgpuHostKernelRegister. @thread any
void register_host_kernel(std::string name, HostKernel kernel);

/// @thread any
HostKernel find_host_kernel(std::string_view name);

}  // namespace simgpu::driver
