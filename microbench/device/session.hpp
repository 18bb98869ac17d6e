// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "microbench/device/driver.hpp"

namespace libswap::bench {

/// What a table's header says.
struct DeviceInfo {
    std::string name;
    std::string uuid;        ///< "GPU-..." as nvidia-smi writes it
    int driver_version = 0;  ///< 13000 for 13.0
    int compute_major = 0, compute_minor = 0;
    int sm_count = 0;
    int clock_khz = 0;
    int copy_engines = 0;  ///< as the device says
    std::uint64_t memory_bytes = 0;
    std::uint64_t l2_bytes = 0;
    bool has_vmm = false;
};

/// Handles of the driver's, given back at the end of their scope. Not for use after the session.
struct Stream {
    explicit Stream(const Driver& driver);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    const Driver& driver;
    CUstream handle = nullptr;
};

struct Event {
    explicit Event(const Driver& driver);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    const Driver& driver;
    CUevent handle = nullptr;
};

struct DeviceBuffer {
    DeviceBuffer(const Driver& driver, std::uint64_t bytes);
    ~DeviceBuffer();
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    const Driver& driver;
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
};

struct PinnedBuffer {
    PinnedBuffer(const Driver& driver, std::uint64_t bytes);
    ~PinnedBuffer();
    PinnedBuffer(const PinnedBuffer&) = delete;
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    const Driver& driver;
    void* pointer = nullptr;
    std::uint64_t bytes = 0;
};

struct Module {
    Module(const Driver& driver, const char* ptx);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    CUfunction function(const char* name) const;
    const Driver& driver;
    CUmodule handle = nullptr;
};

/// One device, its primary context current on the calling thread, which stays the only one.
class Session {
  public:
    /// Throws CudaError.
    explicit Session(int device = 0);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const Driver& driver() const { return *driver_; }
    const DeviceInfo& info() const { return info_; }
    CUdevice device() const { return device_; }
    /// For threads that make calls beside this one.
    CUcontext context() const { return context_; }
    int attribute(CUdevice_attribute which) const;
    CUstream stream() const { return stream_->handle; }
    std::uint64_t free_bytes() const;

    /// Device time from before to after what `work` submits to stream(), or does on the host while
    /// the stream is idle. Unit us
    double time_us(const std::function<void()>& work) const;
    /// The same `times` times, after one that does not count.
    std::vector<double> times_us(std::size_t times, const std::function<void()>& work) const;
    void synchronize() const { BENCH_CU(*driver_, cuCtxSynchronize()); }

  private:
    void read_info();

    std::unique_ptr<Driver> driver_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    DeviceInfo info_;
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<Event> begin_, end_;
};

}  // namespace libswap::bench
