// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <string>

#include "simgpu/host_kernels/kernel_name.hpp"
#include "simgpu/host_kernels/named_kernel.hpp"

namespace simgpu::driver {

/// What the name of a machine-code kernel says of it.
struct NamedFunction {
    KernelName name;
    /// What does its work by its name, empty where nothing does.
    NamedKernel work;
    std::atomic<bool> said_opaque{false};
};

/// Read at the first call per name, and kept. @thread any
NamedFunction& named_function(const std::string& mangled);

}  // namespace simgpu::driver
