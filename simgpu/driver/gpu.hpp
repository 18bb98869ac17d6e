// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/context.hpp"

namespace simgpu::driver {

class Pools;

/// One device of the process.
class Gpu {
  public:
    Gpu(int ordinal, int number);
    ~Gpu();

    const int ordinal;  ///< Among the devices that the process sees.
    const int number;   ///< Among all there are: what its UUID and its place on the bus go by.
    PrimaryContext primary;
    /// Its stream-ordered memory pools.
    std::unique_ptr<Pools> pools;
};

/// What the environment says about the devices.
struct Options {
    bool vmm = true;                 ///< SIMGPU_VMM
    bool host_numa = true;           ///< SIMGPU_HOST_NUMA
    std::vector<int> devices = {0};  ///< The numbers of those that CUDA_VISIBLE_DEVICES names.
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
