// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/context.hpp"

namespace simgpu::driver {

class Pools;

/// One device of the process.
class Gpu {
  public:
    explicit Gpu(int ordinal);
    ~Gpu();

    const int ordinal;
    PrimaryContext primary;
    /// Its stream-ordered memory pools.
    std::unique_ptr<Pools> pools;
};

/// What the environment says about the devices.
struct Options {
    bool vmm = true;        ///< SIMGPU_VMM
    bool host_numa = true;  ///< SIMGPU_HOST_NUMA
    int devices = 1;        ///< SIMGPU_DEVICES
};

/// cuInit: the first call builds the machine.
CUresult initialise(unsigned flags);
bool initialised() noexcept;

/// The rest needs initialised().
Machine& machine();
const Options& options();
int gpu_count();
/// Null for an ordinal that does not exist.
Gpu* gpu_at(int ordinal);

/// CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_DEVICE, or `out`.
CUresult find_gpu(CUdevice device, Gpu*& out);

}  // namespace simgpu::driver
