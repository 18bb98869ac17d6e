// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

class Gpu;

/// A CUmemoryPool. Freed memory is given back to the device once the stream has passed the free;
/// nothing is kept for reuse, so an allocation never waits for another stream unless the device is
/// full. @thread any
class Pool {
  public:
    Pool(Gpu& gpu, bool is_default) : gpu_(gpu), is_default_(is_default) {}

    CUresult allocate(CUdeviceptr* out, std::size_t bytes, const StreamRef& stream);
    CUresult free_async(CUdeviceptr va, const StreamRef& stream);
    /// Work that uses the memory must be done.
    CUresult free_now(CUdeviceptr va);
    /// Gives back what streams have passed; with `wait` all that was freed. Whether there was any.
    bool reap(bool wait);

    CUresult get(CUmemPool_attribute attribute, void* value) const;
    CUresult set(CUmemPool_attribute attribute, const void* value);
    bool is_default() const { return is_default_; }
    Gpu& gpu() const { return gpu_; }

  private:
    struct Freed {
        CUdeviceptr va;
        std::uint64_t bytes;
        std::unique_ptr<simgpu::Event> passed;
    };
    void give_back(const Freed& freed);

    Gpu& gpu_;
    const bool is_default_;
    std::mutex mutex_;
    std::deque<Freed> freed_;
    std::atomic<std::uint64_t> used_{0}, used_high_{0}, reserved_{0}, reserved_high_{0},
        threshold_{0};
    std::atomic<int> follow_events_{1}, opportunistic_{1}, internal_{1};
};

/// The pools of one device.
class Pools {
  public:
    explicit Pools(Gpu& gpu);
    Pool& standard() { return *default_; }
    Pool& current() { return *current_.load(); }
    void set_current(Pool& pool) { current_ = &pool; }
    CUresult create(CUmemoryPool* out);
    /// Of any kind and device; null if there is no such pool.
    static std::shared_ptr<Pool> find(CUmemoryPool handle);
    static CUresult destroy(CUmemoryPool handle);
    void reap();
    /// For a full device: waits until all that was freed is given back. Whether there was any.
    bool give_back();

  private:
    Gpu& gpu_;
    std::shared_ptr<Pool> default_;
    std::atomic<Pool*> current_;
};

}  // namespace simgpu::driver
