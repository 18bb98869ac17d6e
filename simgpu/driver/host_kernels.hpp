// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>

#include "simgpu/driver/host_kernel.h"

namespace simgpu::driver {

/// See simgpuHostKernelRegister. @thread any
void register_host_kernel(std::string name, SimgpuHostKernel function);

/// Null where a kernel runs its own code. @thread any
SimgpuHostKernel find_host_kernel(std::string_view name);

}  // namespace simgpu::driver
