// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace simgpu::driver {

struct Context;
class GraphMemory;
class Pool;

/// What the memory manager below does not know of an allocation: who made it and how.
struct Allocation {
    enum class Kind : std::uint8_t { Device, Managed, HostPinned, HostRegistered, Pool, Graph };
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    Kind kind = Kind::Device;
    Context* context = nullptr;
    Pool* pool = nullptr;
    bool sync_memops = false;
    std::shared_ptr<GraphMemory> graph_memory;

    bool on_device() const {
        return kind == Kind::Device || kind == Kind::Pool || kind == Kind::Graph;
    }
};

/// The process's live allocations by address. @thread any
class Allocations {
  public:
    void add(const Allocation& allocation);
    /// The allocation that starts at `base`, taken out of the table.
    std::optional<Allocation> take(std::uint64_t base);
    std::optional<Allocation> at(std::uint64_t base) const;
    /// The allocation that `va` lies in.
    std::optional<Allocation> containing(std::uint64_t va) const;
    bool set_sync_memops(std::uint64_t va, bool value);
    std::vector<Allocation> of_context(const Context& context) const;

  private:
    mutable std::mutex mutex_;
    std::map<std::uint64_t, Allocation> by_base_;
};

Allocations& allocations();

/// cuMemFree, for any kind that it takes; waits as the driver does.
CUresult free_device_memory(CUdeviceptr va);
CUresult free_host_memory(void* pointer);

/// Frees what a context whose work is done still has.
void release_allocations_of(Context& context);

}  // namespace simgpu::driver
