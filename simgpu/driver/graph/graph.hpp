// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "simgpu/driver/graph/task.hpp"
#include "simgpu/driver/handle_table.hpp"

namespace simgpu::driver {

class UserObject;
struct GraphNode;

/// Covers all graphs, what was instantiated from them, and all captures. Taken by the exported
/// calls and by what they ask about captures, before any lock of the device's.
std::mutex& graphs_lock();

/// What a node comes after.
struct GraphEdge {
    GraphNode* from = nullptr;
    CUgraphEdgeData data{};
};

/// What a CUgraphNode points at.
struct GraphNode {
    Graph& graph;
    Task task;
    unsigned id = 0;                      ///< In its graph, in order of creation.
    std::vector<GraphEdge> dependencies;  ///< In the order in which they were named.
    std::vector<GraphNode*> dependents;
    std::uint64_t serial = 0;    ///< Unique in the process.
    std::uint64_t original = 0;  ///< In a copy of a graph: the serial of what this was made from.
    /// Into the kernel's parameters, for who asks.
    std::vector<void*> parameter_pointers;

    CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
};

/// What a CUgraph points at. Nodes are owned by their graph, in order of creation.
class Graph : public std::enable_shared_from_this<Graph> {
  public:
    /// A graph that handles can name; `owned` ones are a node's, and cannot be destroyed by it.
    static std::shared_ptr<Graph> create(bool owned = false);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    CUgraph handle() { return reinterpret_cast<CUgraph>(this); }
    GraphNode& add(Task task, std::span<const GraphEdge> dependencies);
    void remove(GraphNode& node);
    /// False where the edge exists or joins a node with itself.
    bool connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
    /// False where there is no such edge.
    bool disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
    const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }
    bool owns(const GraphNode& node) const { return &node.graph == this; }

    /// With all graphs inside. `named`: for handles; else for the driver itself, as when it is
    /// instantiated.
    std::shared_ptr<Graph> copy(bool named, bool owned = false) const;
    /// Every node behind those that it depends on, as far as possible in order of creation; fewer
    /// nodes than there are where they form a cycle.
    std::vector<GraphNode*> in_order() const;
    /// Whether a node here or in a graph inside satisfies it.
    template <typename Predicate>
    bool any(Predicate&& predicate) const;

    /// Forgets the handles of the graph, its nodes and the graphs inside.
    void forget_handles();
    bool owned() const { return owned_; }
    void set_owned() { owned_ = true; }

    /// Holds `count` more references to the object, until it is destroyed itself.
    void retain(const std::shared_ptr<UserObject>& object, unsigned count);

    int captures = 0;  ///< Of streams that add to it now: it can be neither used nor destroyed.
    std::atomic<int> instances{0};  ///< Instantiated from it and alive.
    std::map<std::shared_ptr<UserObject>, unsigned> user_objects;  ///< References held.
    std::vector<std::shared_ptr<Condition>> conditions;  ///< Whose handles were made for it.

  private:
    Graph(bool named, bool owned) : named_(named), owned_(owned) {}

    const bool named_;
    bool owned_;
    unsigned next_id_ = 0;
    std::vector<std::shared_ptr<GraphNode>> nodes_;
};

/// The graphs inside a node: a child, or the bodies of a conditional node.
std::vector<std::shared_ptr<Graph>> graphs_inside(const Task& task);

template <typename Predicate>
bool Graph::any(Predicate&& predicate) const {
    for (const auto& node : nodes_) {
        if (predicate(*node)) return true;
        for (const auto& inside : graphs_inside(node->task)) {
            if (inside->any(predicate)) return true;
        }
    }
    return false;
}

bool has_memory_nodes(const Graph& graph);
bool has_conditional_nodes(const Graph& graph);

/// CUDA_ERROR_INVALID_VALUE for a handle that is no live graph's or node's.
CUresult find_graph(CUgraph handle, std::shared_ptr<Graph>& out);
CUresult find_node(CUgraphNode handle, std::shared_ptr<GraphNode>& out);

/// Edges from `count` nodes of `graph`; `data` may be null. CUDA_ERROR_INVALID_VALUE for others,
/// for one named twice, and for data that fits no edge.
CUresult read_edges(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                    std::size_t count, std::vector<GraphEdge>& out);

}  // namespace simgpu::driver
