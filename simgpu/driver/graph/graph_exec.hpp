// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/device/graph.hpp"
#include "simgpu/driver/graph/graph.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

/// What a CUgraphExec points at: a copy of a graph, and what the device is given for it. Under
/// graphs_lock().
class GraphExec {
  public:
    /// What went wrong with an instantiation, and where.
    struct Failure {
        CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
        CUgraphNode node = nullptr;
    };

    static CUresult instantiate(const std::shared_ptr<Graph>& source, unsigned long long flags,
                                std::shared_ptr<GraphExec>& out, Failure& failure);
    ~GraphExec();
    GraphExec(const GraphExec&) = delete;
    GraphExec& operator=(const GraphExec&) = delete;

    CUgraphExec handle() { return reinterpret_cast<CUgraphExec>(this); }
    unsigned long long flags() const { return flags_; }
    Graph& graph() { return *copy_; }
    /// The node here that was made from `node` of the graph; null if there is none.
    GraphNode* find(const GraphNode& node) const;
    CUresult launch(const StreamRef& stream);
    /// Takes over what the graph's node does now. The next launch shows it.
    void replace(GraphNode& own, Task task);
    bool enabled(const GraphNode& own) const { return disabled_.count(&own) == 0; }
    void set_enabled(const GraphNode& own, bool enabled);

  private:
    GraphExec(std::shared_ptr<Graph> source, unsigned long long flags);
    void index(const Graph& graph);

    const std::shared_ptr<Graph> source_;
    const std::shared_ptr<Graph> copy_;
    const unsigned long long flags_;
    const bool allocates_;                                       ///< Or frees.
    std::unordered_map<std::uint64_t, GraphNode*> by_original_;  ///< By serial.
    std::unordered_set<const GraphNode*> disabled_;
    /// For the device; null after a change.
    std::shared_ptr<std::vector<GraphStep>> steps_;
    GraphRun run_;
};

/// CUDA_ERROR_INVALID_VALUE for a handle that is none.
CUresult find_graph_exec(CUgraphExec handle, std::shared_ptr<GraphExec>& out);
void add_graph_exec(const std::shared_ptr<GraphExec>& exec);
std::shared_ptr<GraphExec> remove_graph_exec(CUgraphExec handle);

/// Gives every node of `exec` the parameters of the node of `graph` in its place, or tells why not
/// and changes nothing.
CUresult update_graph_exec(GraphExec& exec, Graph& graph, CUgraphExecUpdateResultInfo& info);

/// The same for the graph inside a child node of `exec`; CUDA_ERROR_INVALID_VALUE where it does not
/// fit.
CUresult update_child_of(GraphExec& exec, GraphNode& own, Graph& child);

/// Whether a node of an executable graph may go from one task to the other: else what the driver
/// says of it.
CUgraphExecUpdateResult check_update(const Task& from, const Task& to);

}  // namespace simgpu::driver
