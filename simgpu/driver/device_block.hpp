// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "simgpu/device/machine.hpp"

namespace simgpu::driver {

/// A range of addresses for memory of one device, in whole pages. Its memory may come and go; the
/// owner's device may always use what is there. Not thread-safe.
class DeviceBlock {
  public:
    /// Addresses without memory; null on failure.
    static Result<std::unique_ptr<DeviceBlock>> reserve(int device, std::uint64_t bytes);
    /// Gives memory and addresses back. Work that uses it must be done.
    ~DeviceBlock();
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock& operator=(const DeviceBlock&) = delete;

    /// Puts memory behind the addresses, for the own device and as `grants` say. Nothing to do
    /// where it is there. CUDA_ERROR_OUT_OF_MEMORY when the device is full.
    CUresult fill(std::span<const AccessGrant> grants);
    /// Takes the memory away.
    void empty();
    bool filled() const { return filled_; }
    CUresult grant(std::span<const AccessGrant> grants);

    std::uint64_t va() const { return va_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    DeviceBlock(int device, std::uint64_t va, std::uint64_t bytes)
        : device_(device), va_(va), bytes_(bytes) {}

    const int device_;
    const std::uint64_t va_, bytes_;
    bool filled_ = false;
};

}  // namespace simgpu::driver
