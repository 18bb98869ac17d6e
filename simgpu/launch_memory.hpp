// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <type_traits>

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu {

/// The device memory of one launch of a host kernel, and what the launch costs; tells the cost when
/// it goes. Once a span is not to be had the launch has faulted, and every later one is null too.
class LaunchMemory {
  public:
    explicit LaunchMemory(const SimgpuHostLaunch* launch) : launch_(launch) {}
    LaunchMemory(const LaunchMemory&) = delete;
    LaunchMemory& operator=(const LaunchMemory&) = delete;
    ~LaunchMemory() {
        *launch_->flops = flops_;
        *launch_->bytes = bytes_;
    }

    /// `elements` of T at a device address, writable where T is not const; null if there are none.
    template <typename T>
    T* span(std::uint64_t va, std::int64_t elements) {
        constexpr int kWrite = std::is_const_v<T> ? 0 : 1;
        if (faulted_ || elements <= 0) {
            return nullptr;
        }
        void* pointer =
            launch_->span(launch_, va, static_cast<std::size_t>(elements) * sizeof(T), kWrite);
        faulted_ = pointer == nullptr;
        return static_cast<T*>(pointer);
    }

    bool faulted() const { return faulted_; }

    /// Adds operations, and bytes of device memory read or written.
    void cost(double flops, double bytes) {
        flops_ += flops;
        bytes_ += bytes;
    }

  protected:
    const SimgpuHostLaunch& launch() const { return *launch_; }

  private:
    const SimgpuHostLaunch* launch_;
    bool faulted_ = false;
    double flops_ = 0;
    double bytes_ = 0;
};

}  // namespace libswap::simgpu
