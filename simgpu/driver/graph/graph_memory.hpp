// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/driver/device_block.hpp"
#include "simgpu/driver/graph/graph.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

class Gpu;

/// What one allocation node allocates. The addresses are its own from the node's making on; memory
/// comes at the first launch, and stays until it is trimmed, whether in use or not. @thread any
class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
  public:
    static CUresult create(Context& context, Gpu& gpu, std::uint64_t bytes,
                           std::vector<CUmemAccessDesc> access, std::shared_ptr<GraphMemory>& out);
    ~GraphMemory();
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    CUdeviceptr va() const { return block_->va(); }
    std::uint64_t bytes() const { return bytes_; }
    Context& context() const { return context_; }
    Gpu& gpu() const { return gpu_; }
    const std::vector<CUmemAccessDesc>& access() const { return access_; }

    /// A launch allocates it: CUDA_ERROR_INVALID_VALUE while it is allocated.
    CUresult allocate();
    /// CUDA_ERROR_INVALID_VALUE where it is not allocated.
    CUresult free();
    bool allocated() const;
    /// Takes the memory away where it is not in use.
    bool trim();

    bool freed_in_graph = false;  ///< A node of its own graph frees it. Under graphs_lock().

  private:
    GraphMemory(Context& context, Gpu& gpu, std::uint64_t bytes,
                std::vector<CUmemAccessDesc> access, std::unique_ptr<DeviceBlock> block);

    Context& context_;
    Gpu& gpu_;
    const std::uint64_t bytes_;
    const std::vector<CUmemAccessDesc> access_;
    const std::unique_ptr<DeviceBlock> block_;
    bool allocated_ = false;
};

/// The allocation at this address, for a free node; null where there is none.
std::shared_ptr<GraphMemory> find_graph_memory(CUdeviceptr va);

/// CUDA_ERROR_INVALID_VALUE where `graph` may not free `va`: no graph's allocation, or freed there
/// already. Under graphs_lock(); then notes that it does.
CUresult note_free(Graph& graph, CUdeviceptr va);
/// The same for the graph that a stream captures; takes the lock.
CUresult check_free_in_capture(const StreamRef& stream, CUdeviceptr va);

/// What the launch of a graph does to memory: allocates for its allocation nodes, and frees what
/// its free nodes name. With `auto_free`, what the last launch left is freed first. Changes nothing
/// when it fails.
CUresult launch_memory(const Graph& graph, bool auto_free);

/// Gives back what graphs hold on the device without using it. Whether there was any.
bool trim_graph_memory(Gpu& gpu);

}  // namespace simgpu::driver
