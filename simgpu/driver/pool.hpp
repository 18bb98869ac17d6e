// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/device_block.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

class Gpu;

/// A CUmemoryPool: blocks of device memory, cut into ranges. A freed range remembers where in which
/// stream it was freed, until that place has been passed; who may have it before follows from the
/// pool's reuse attributes. @thread any
class Pool {
  public:
    /// `max_bytes` 0: as much as there is.
    Pool(Gpu& gpu, bool is_default, std::uint64_t max_bytes)
        : gpu_(gpu), is_default_(is_default), max_bytes_(max_bytes) {}

    CUresult allocate(CUdeviceptr* out, std::size_t bytes, const StreamRef& stream);
    CUresult free_async(CUdeviceptr va, const StreamRef& stream);
    /// Work that uses the memory must be done.
    CUresult free_now(CUdeviceptr va);
    /// Gives blocks back in which nothing is in use or yet to be passed, until no more than
    /// `kept_bytes` are held; with `wait`, after all places where something was freed. Whether
    /// there were any.
    bool release(std::uint64_t kept_bytes, bool wait);
    /// What a wait for a stream does.
    void release_above_threshold();

    CUresult get(CUmemPool_attribute attribute, void* value);
    CUresult set(CUmemPool_attribute attribute, const void* value);
    CUresult set_access(const CUmemAccessDesc* descriptions, std::size_t count);
    CUresult get_access(const CUmemLocation& location, CUmemAccess_flags& out);
    bool is_default() const { return is_default_; }
    /// No handle names it any more: it keeps nothing.
    void abandon() { abandoned_ = true; }
    Gpu& gpu() const { return gpu_; }
    /// Held by all pools of the process.
    static std::uint64_t all_bytes();

  private:
    struct Range {
        std::uint64_t bytes = 0;
        const DeviceBlock* block = nullptr;
        bool used = false;
        std::uint64_t stream = 0;               ///< Where it was freed.
        std::shared_ptr<simgpu::Event> passed;  ///< Null once that is known to be passed.
    };
    using Ranges = std::map<std::uint64_t, Range>;

    Ranges::iterator find_free(std::uint64_t bytes, const StreamRef& stream, CUresult& status);
    CUresult grow(std::uint64_t bytes);
    CUresult add_block(std::uint64_t bytes);
    void cut(Ranges::iterator range, std::uint64_t bytes);
    void settle(bool wait);
    void join_neighbours();
    bool drop_unused(std::uint64_t kept_bytes);
    void put_back(std::uint64_t va, std::uint64_t stream, std::shared_ptr<simgpu::Event> passed);

    Gpu& gpu_;
    const bool is_default_;
    const std::uint64_t max_bytes_;
    std::atomic<bool> abandoned_{false};
    std::mutex mutex_;  ///< Covers what follows.
    std::vector<std::unique_ptr<DeviceBlock>> blocks_;
    Ranges ranges_;                      ///< By address; together all of the blocks.
    std::map<int, AccessGrant> grants_;  ///< Of other devices.
    std::uint64_t used_ = 0, used_high_ = 0, reserved_ = 0, reserved_high_ = 0, threshold_ = 0;
    int follow_events_ = 1, opportunistic_ = 1, internal_ = 1;
};

}  // namespace simgpu::driver
