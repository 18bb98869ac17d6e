// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstddef>

#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cudnn {

/// Device memory that goes with the scope; the free waits for the work that uses it.
class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes) {
        if (bytes != 0) {
            status_ = cublas::driver()->cuMemAlloc_fn(&address_, bytes);
        }
    }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    ~DeviceMemory() {
        if (address_ != 0) {
            cublas::driver()->cuMemFree_fn(address_);
        }
    }
    CUresult status() const { return status_; }
    void* get() const { return reinterpret_cast<void*>(address_); }

  private:
    CUdeviceptr address_ = 0;
    CUresult status_ = CUDA_SUCCESS;
};

/// An event with a time, that goes with the scope.
class TimingEvent {
  public:
    TimingEvent() { cublas::driver()->cuEventCreate_fn(&event_, CU_EVENT_DEFAULT); }
    TimingEvent(const TimingEvent&) = delete;
    TimingEvent& operator=(const TimingEvent&) = delete;
    ~TimingEvent() {
        if (event_ != nullptr) {
            cublas::driver()->cuEventDestroy_fn(event_);
        }
    }
    CUresult record(CUstream stream) const {
        return cublas::driver()->cuEventRecord_fn(event_, stream);
    }
    /// Waits for this one. Milliseconds since `start`; negative where there is no answer.
    float since(const TimingEvent& start) const {
        float ms = -1;
        if (cublas::driver()->cuEventSynchronize_fn(event_) != CUDA_SUCCESS ||
            cublas::driver()->cuEventElapsedTime_fn(&ms, start.event_, event_) != CUDA_SUCCESS) {
            return -1;
        }
        return ms;
    }

  private:
    CUevent event_ = nullptr;
};

}  // namespace libswap::simgpu::cudnn
