// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs as wholes: their nodes and edges.

#include <algorithm>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/condition.hpp"
#include "simgpu/driver/graph/graph.hpp"

namespace simgpu::driver {
namespace {

CUresult create_graph(CUgraph* out, unsigned flags) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *out = Graph::create()->handle();
    return CUDA_SUCCESS;
}

CUresult destroy_graph(CUgraph handle) {
    std::shared_ptr<Graph> graph;  // goes after the lock: it may call the program's functions
    std::lock_guard lock(graphs_lock());
    SIMGPU_TRY(find_graph(handle, graph));
    if (graph->owned() || graph->captures != 0) return CUDA_ERROR_INVALID_VALUE;
    graph->forget_handles();
    return CUDA_SUCCESS;
}

CUresult clone_graph(CUgraph* out, CUgraph handle) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_graph(handle, graph));
    if (out == nullptr || graph->captures != 0) return CUDA_ERROR_INVALID_VALUE;
    if (has_memory_nodes(*graph) || has_conditional_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    *out = graph->copy(true)->handle();
    return CUDA_SUCCESS;
}

CUresult find_in_clone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(original, node));
    SIMGPU_TRY(find_graph(clone, graph));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& candidate : graph->nodes()) {
        if (candidate->original != node->serial) continue;
        *out = candidate->handle();
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/// The way of all queries for lists: how many there are, or as many as fit; what is left of the
/// array is null.
template <typename T>
void fill(const std::vector<T>& found, T* out, std::size_t capacity) {
    if (out == nullptr) return;
    for (std::size_t i = 0; i < capacity; ++i) out[i] = i < found.size() ? found[i] : T{};
}

CUresult list_nodes(CUgraph handle, CUgraphNode* out, std::size_t* count, bool roots_only) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_graph(handle, graph));
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> found;
    for (const auto& node : graph->nodes()) {
        if (!roots_only || node->dependencies.empty()) found.push_back(node->handle());
    }
    fill(found, out, *count);
    *count = out == nullptr ? found.size() : std::min(*count, found.size());
    return CUDA_SUCCESS;
}

/// Edges as lists of their ends and data.
struct EdgeList {
    std::vector<CUgraphNode> from, to;
    std::vector<CUgraphEdgeData> data;

    void add(GraphNode& earlier, GraphNode& later, const CUgraphEdgeData& with) {
        from.push_back(earlier.handle());
        to.push_back(later.handle());
        data.push_back(with);
    }
    bool plain() const {
        return std::all_of(data.begin(), data.end(), [](const CUgraphEdgeData& edge) {
            return edge.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
        });
    }
};

/// Where a query for edges puts them; each but `count` may be null.
struct EdgeAnswer {
    CUgraphNode* from;
    CUgraphNode* to;
    CUgraphEdgeData* data;
    std::size_t* count;
};

CUresult tell_edges(const EdgeList& edges, const EdgeAnswer& answer) {
    if (answer.count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool asked = answer.from != nullptr || answer.to != nullptr;
    if (asked && answer.data == nullptr && !edges.plain()) return CUDA_ERROR_LOSSY_QUERY;
    fill(edges.from, answer.from, *answer.count);
    fill(edges.to, answer.to, *answer.count);
    fill(edges.data, answer.data, *answer.count);
    *answer.count = asked ? std::min(*answer.count, edges.data.size()) : edges.data.size();
    return CUDA_SUCCESS;
}

CUresult list_edges(CUgraph handle, const EdgeAnswer& answer) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_graph(handle, graph));
    if ((answer.from == nullptr) != (answer.to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    EdgeList edges;
    for (const auto& node : graph->nodes()) {
        for (const GraphEdge& edge : node->dependencies) edges.add(*edge.from, *node, edge.data);
    }
    return tell_edges(edges, answer);
}

CUresult list_dependencies(CUgraphNode handle, const EdgeAnswer& answer) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    EdgeList edges;
    for (const GraphEdge& edge : node->dependencies) edges.add(*edge.from, *node, edge.data);
    return tell_edges(edges, answer);
}

CUresult list_dependents(CUgraphNode handle, const EdgeAnswer& answer) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    EdgeList edges;
    for (GraphNode* dependent : node->dependents) {
        for (const GraphEdge& edge : dependent->dependencies) {
            if (edge.from == node.get()) edges.add(*node, *dependent, edge.data);
        }
    }
    return tell_edges(edges, answer);
}

struct Ends {
    std::shared_ptr<GraphNode> from, to;
};

CUresult read_ends(const Graph& graph, CUgraphNode from, CUgraphNode to, Ends& out) {
    SIMGPU_TRY(find_node(from, out.from));
    SIMGPU_TRY(find_node(to, out.to));
    const bool inside = graph.owns(*out.from) && graph.owns(*out.to);
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, std::size_t count, bool add) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_graph(handle, graph));
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (!add && has_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<Ends> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<GraphEdge> checked;
        SIMGPU_TRY(read_ends(*graph, from[i], to[i], all[i]));
        SIMGPU_TRY(read_edges(*graph, &from[i], data != nullptr ? &data[i] : nullptr, 1, checked));
    }
    for (std::size_t i = 0; i < count; ++i) {
        const CUgraphEdgeData edge = data != nullptr ? data[i] : CUgraphEdgeData{};
        const bool changed = add ? graph->connect(*all[i].from, *all[i].to, edge)
                                 : graph->disconnect(*all[i].from, *all[i].to, edge);
        if (!changed) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult destroy_node(CUgraphNode handle) {
    std::shared_ptr<GraphNode> node;
    std::lock_guard lock(graphs_lock());
    SIMGPU_TRY(find_node(handle, node));
    Graph& graph = node->graph;
    if (graph.captures != 0) return CUDA_ERROR_INVALID_VALUE;
    if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    graph.remove(*node);
    return CUDA_SUCCESS;
}

CUresult node_type(CUgraphNode handle, CUgraphNodeType* type) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->task);
    return CUDA_SUCCESS;
}

CUresult create_condition(CUgraphConditionalHandle* out, CUgraph handle, CUcontext context_handle,
                          unsigned default_value, unsigned flags) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    Context* context = nullptr;
    SIMGPU_TRY(find_graph(handle, graph));
    const bool known_flags = (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) == 0;
    if (out == nullptr || !known_flags) return CUDA_ERROR_INVALID_VALUE;
    if (context_handle != nullptr) {
        SIMGPU_TRY(find_context(context_handle, context));
    } else {
        SIMGPU_TRY(current_context(context));
    }
    std::shared_ptr<Condition> condition;
    SIMGPU_TRY(Condition::create(*context, default_value, flags, condition));
    *out = condition->handle();
    graph->conditions.push_back(std::move(condition));
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGraphCreate, (CUgraph * out, unsigned flags),
            { return driver::create_graph(out, flags); })
SIMGPU_CALL(cuGraphDestroy, (CUgraph graph), { return driver::destroy_graph(graph); })
SIMGPU_CALL(cuGraphClone, (CUgraph * out, CUgraph graph),
            { return driver::clone_graph(out, graph); })
SIMGPU_CALL(cuGraphNodeFindInClone, (CUgraphNode * out, CUgraphNode original, CUgraph clone),
            { return driver::find_in_clone(out, original, clone); })
SIMGPU_CALL(cuGraphGetNodes, (CUgraph graph, CUgraphNode* nodes, size_t* count),
            { return driver::list_nodes(graph, nodes, count, false); })
SIMGPU_CALL(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode* nodes, size_t* count),
            { return driver::list_nodes(graph, nodes, count, true); })
SIMGPU_CALL(cuGraphGetEdges, (CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count), {
    return driver::list_edges(graph, {from, to, nullptr, count});
})
SIMGPU_CALL(cuGraphGetEdges_v2,
            (CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
             size_t* count),
            {
                return driver::list_edges(graph, {from, to, data, count});
            })
SIMGPU_CALL(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode* out, size_t* count), {
    return driver::list_dependencies(node, {out, nullptr, nullptr, count});
})
SIMGPU_CALL(cuGraphNodeGetDependencies_v2,
            (CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, size_t* count), {
                return driver::list_dependencies(node, {out, nullptr, data, count});
            })
SIMGPU_CALL(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode* out, size_t* count), {
    return driver::list_dependents(node, {nullptr, out, nullptr, count});
})
SIMGPU_CALL(cuGraphNodeGetDependentNodes_v2,
            (CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, size_t* count), {
                return driver::list_dependents(node, {nullptr, out, data, count});
            })
SIMGPU_CALL(cuGraphAddDependencies,
            (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count),
            { return driver::change_edges(graph, from, to, nullptr, count, true); })
SIMGPU_CALL(cuGraphAddDependencies_v2,
            (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
             const CUgraphEdgeData* data, size_t count),
            { return driver::change_edges(graph, from, to, data, count, true); })
SIMGPU_CALL(cuGraphRemoveDependencies,
            (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count),
            { return driver::change_edges(graph, from, to, nullptr, count, false); })
SIMGPU_CALL(cuGraphRemoveDependencies_v2,
            (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
             const CUgraphEdgeData* data, size_t count),
            { return driver::change_edges(graph, from, to, data, count, false); })
SIMGPU_CALL(cuGraphDestroyNode, (CUgraphNode node), { return driver::destroy_node(node); })
SIMGPU_CALL(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType* type),
            { return driver::node_type(node, type); })
SIMGPU_CALL(cuGraphConditionalHandleCreate,
            (CUgraphConditionalHandle * out, CUgraph graph, CUcontext context,
             unsigned default_value, unsigned flags),
            { return driver::create_condition(out, graph, context, default_value, flags); })
