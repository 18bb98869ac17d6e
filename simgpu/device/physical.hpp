// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simgpu/device/memory.hpp"

namespace simgpu {

/// What is remembered of each physical 2 MiB chunk. Changed under Memory's lock.
struct ChunkState {
    std::uint64_t writes = 0;
    bool filled = false;  ///< Fresh device memory gets its fill at its first use, so that big
                          ///< allocations cost nothing.
};

/// A run of physical memory: bytes of the store's file.
struct Physical {
    HandleId id = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    Location location;
    std::uint64_t references = 0;  ///< Of the program (create, retain).
    std::uint64_t mappings = 0;
    std::vector<ChunkState> chunks;
};

/// Physical memory of all devices and of the host: one sparse file in memory. Offsets are never
/// used twice; released ones are punched out, so that the process shrinks. Not synchronised:
/// Memory's lock covers it.
class PhysicalStore {
  public:
    PhysicalStore(const MemoryConfig& config);
    ~PhysicalStore();
    PhysicalStore(const PhysicalStore&) = delete;
    PhysicalStore& operator=(const PhysicalStore&) = delete;

    /// nullptr when the device is full. Starts without references and mappings.
    std::shared_ptr<Physical> create(std::uint64_t bytes, Location location);
    /// Gives the bytes back when nothing refers to them any more.
    void drop_if_unused(const std::shared_ptr<Physical>& physical);
    std::shared_ptr<Physical> find(HandleId id) const;
    int fd() const { return fd_; }
    Memory::Usage usage(int device) const;

  private:
    bool take(int device, std::uint64_t bytes);
    void give_back(int device, std::uint64_t bytes);

    int fd_ = -1;
    bool without_data_ = false;
    std::uint64_t next_offset_ = 0;
    HandleId next_id_ = 1;
    std::array<Memory::Usage, kMaxDevices> usage_{};
    std::shared_ptr<SharedUsage> shared_;  ///< Null where the devices are this process's own.
    std::array<int, kMaxDevices> numbers_;
    std::map<HandleId, std::shared_ptr<Physical>> handles_;
};

}  // namespace simgpu
