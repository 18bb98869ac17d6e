// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// SIMGPU_CACHES: loads of kernels take the time of a memory hierarchy.
#pragma once

#include <memory>

#include "simgpu/device/machine.hpp"
#include "simgpu/exec/timed_loads.hpp"

namespace simgpu::driver {

/// A kernel's memory when its loads are timed.
class TimedKernelMemory : public exec::TimedMemory {
  public:
    /// What its loads took, all together. Unit ns
    virtual double waited_ns() const = 0;
};

/// Reads SIMGPU_CACHES; before any module is loaded. What does not parse is said in one line, and
/// loads take no time.
void set_up_cache_timing(const MachineProfile& profile, int devices);

/// For one launch on `device`; nullptr where loads are not timed. `memory` must outlive it. The
/// caches of a device are shared by its launches. @thread any
std::unique_ptr<TimedKernelMemory> timed_memory(KernelMemory& memory, int device);

}  // namespace simgpu::driver
