// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "simgpu/driver/pool.hpp"

namespace simgpu::driver {

/// The pools of one device. @thread any
class Pools {
  public:
    explicit Pools(Gpu& gpu);
    Pool& standard() { return *default_; }
    Pool& current() { return *current_.load(); }
    void set_current(Pool& pool) { current_ = &pool; }
    CUresult create(const CUmemPoolProps& properties, CUmemoryPool* out);
    /// Of any kind and device; null if there is no such pool.
    static std::shared_ptr<Pool> find(CUmemoryPool handle);
    static CUresult destroy(CUmemoryPool handle);
    /// Waits for all that was freed, and gives back what is unused. Whether there was any.
    bool give_back();

  private:
    Gpu& gpu_;
    std::shared_ptr<Pool> default_;
    std::atomic<Pool*> current_;
};

/// What waiting for a stream, an event or a context does to all pools: those that hold more than
/// their threshold give back what is unused.
void release_after_wait();

/// For a full device: gives back all memory that pools and graphs hold without using it. Whether
/// there was any.
bool make_room(Gpu& gpu);

}  // namespace simgpu::driver
