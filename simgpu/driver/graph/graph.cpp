// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/graph.hpp"

#include <algorithm>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "simgpu/driver/context.hpp"
#include "simgpu/driver/graph/user_object.hpp"

namespace simgpu::driver {

namespace {

HandleTable<Graph>& graphs() {
    static auto* table = new HandleTable<Graph>;  // leaked: calls may come after static destructors
    return *table;
}

HandleTable<GraphNode>& graph_nodes() {
    static auto* table = new HandleTable<GraphNode>;  // leaked likewise
    return *table;
}

bool same(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
    return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

/// Ports other than the default are kernels' alone, and only of programmatic edges.
bool valid(const GraphEdge& edge) {
    const CUgraphEdgeData& data = edge.data;
    const CUgraphEdgeData zero{};
    if (data.to_port != 0 || std::memcmp(data.reserved, zero.reserved, sizeof zero.reserved) != 0)
        return false;
    if (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
        return data.from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT;
    return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
           (data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
            data.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) &&
           std::holds_alternative<KernelTask>(edge.from->task);
}

Task copy_task(const Task& task, bool named) {
    Task copied = task;
    if (auto* child = std::get_if<ChildTask>(&copied))
        child->graph = child->graph->copy(named, true);
    if (auto* conditional = std::get_if<ConditionalTask>(&copied)) {
        for (auto& body : conditional->bodies) body = body->copy(named, true);
    }
    return copied;
}

}  // namespace

std::mutex& graphs_lock() {
    static auto* mutex = new std::mutex;  // leaked: calls may come after static destructors
    return *mutex;
}

CUgraphNodeType type_of(const Task& task) {
    constexpr CUgraphNodeType kTypes[] = {
        CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,
        CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_CONDITIONAL};
    static_assert(std::size(kTypes) == std::variant_size_v<Task>);
    return kTypes[task.index()];
}

std::vector<std::shared_ptr<Graph>> graphs_inside(const Task& task) {
    if (const auto* child = std::get_if<ChildTask>(&task)) return {child->graph};
    if (const auto* conditional = std::get_if<ConditionalTask>(&task)) return conditional->bodies;
    return {};
}

std::shared_ptr<Graph> Graph::create(bool owned) {
    std::shared_ptr<Graph> graph(new Graph(true, owned));
    graphs().add(graph);
    return graph;
}

Graph::~Graph() {
    for (const auto& [object, count] : user_objects) object->release(count);
}

void Graph::retain(const std::shared_ptr<UserObject>& object, unsigned count) {
    object->retain(count);
    user_objects[object] += count;
}

GraphNode& Graph::add(Task task, std::span<const GraphEdge> dependencies) {
    static std::uint64_t last_serial = 0;  // under graphs_lock()
    auto node = std::make_shared<GraphNode>(
        GraphNode{*this, std::move(task), next_id_++, {}, {}, ++last_serial, 0, {}});
    node->dependencies.assign(dependencies.begin(), dependencies.end());
    for (const GraphEdge& edge : dependencies) edge.from->dependents.push_back(node.get());
    if (named_) graph_nodes().add(node);
    nodes_.push_back(node);
    return *node;
}

void Graph::remove(GraphNode& node) {
    for (const GraphEdge& edge : node.dependencies) std::erase(edge.from->dependents, &node);
    for (GraphNode* dependent : node.dependents) {
        std::erase_if(dependent->dependencies,
                      [&](const GraphEdge& edge) { return edge.from == &node; });
    }
    for (const auto& inside : graphs_inside(node.task)) inside->forget_handles();
    graph_nodes().remove(&node);
    std::erase_if(nodes_, [&](const auto& own) { return own.get() == &node; });
}

bool Graph::connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
    const bool known = std::any_of(
        to.dependencies.begin(), to.dependencies.end(),
        [&](const GraphEdge& edge) { return edge.from == &from && same(edge.data, data); });
    if (known || &from == &to) return false;
    to.dependencies.push_back({&from, data});
    from.dependents.push_back(&to);
    return true;
}

bool Graph::disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
    const auto edge = std::find_if(
        to.dependencies.begin(), to.dependencies.end(),
        [&](const GraphEdge& known) { return known.from == &from && same(known.data, data); });
    if (edge == to.dependencies.end()) return false;
    to.dependencies.erase(edge);
    from.dependents.erase(std::find(from.dependents.begin(), from.dependents.end(), &to));
    return true;
}

std::shared_ptr<Graph> Graph::copy(bool named, bool owned) const {
    std::shared_ptr<Graph> graph(new Graph(named, owned));
    std::unordered_map<const GraphNode*, GraphNode*> copies;
    for (const auto& node : nodes_) {
        GraphNode& added = graph->add(copy_task(node->task, named), {});
        added.original = node->serial;
        copies[node.get()] = &added;
    }
    for (const auto& node : nodes_) {
        for (const GraphEdge& edge : node->dependencies)
            graph->connect(*copies.at(edge.from), *copies.at(node.get()), edge.data);
    }
    for (const auto& [object, count] : user_objects) graph->retain(object, count);
    graph->conditions = conditions;
    if (named) graphs().add(graph);
    return graph;
}

std::vector<GraphNode*> Graph::in_order() const {
    std::unordered_map<const GraphNode*, std::size_t> open;
    const auto younger = [](const GraphNode* a, const GraphNode* b) { return a->id > b->id; };
    std::priority_queue<GraphNode*, std::vector<GraphNode*>, decltype(younger)> ready(younger);
    for (const auto& node : nodes_) {
        open[node.get()] = node->dependencies.size();
        if (node->dependencies.empty()) ready.push(node.get());
    }
    std::vector<GraphNode*> order;
    while (!ready.empty()) {
        GraphNode* node = ready.top();
        ready.pop();
        order.push_back(node);
        for (GraphNode* dependent : node->dependents) {
            if (--open[dependent] == 0) ready.push(dependent);
        }
    }
    return order;
}

void Graph::forget_handles() {
    graphs().remove(this);
    for (const auto& node : nodes_) {
        graph_nodes().remove(node.get());
        for (const auto& inside : graphs_inside(node->task)) inside->forget_handles();
    }
}

bool has_memory_nodes(const Graph& graph) {
    return graph.any([](const GraphNode& node) {
        return std::holds_alternative<AllocTask>(node.task) ||
               std::holds_alternative<FreeTask>(node.task);
    });
}

bool has_conditional_nodes(const Graph& graph) {
    return graph.any(
        [](const GraphNode& node) { return std::holds_alternative<ConditionalTask>(node.task); });
}

CUresult find_graph(CUgraph handle, std::shared_ptr<Graph>& out) {
    out = graphs().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_node(CUgraphNode handle, std::shared_ptr<GraphNode>& out) {
    out = graph_nodes().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult read_edges(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                    std::size_t count, std::vector<GraphEdge>& out) {
    if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    out.clear();
    for (std::size_t i = 0; i < count; ++i) {
        std::shared_ptr<GraphNode> node;
        SIMGPU_TRY(find_node(nodes[i], node));
        GraphEdge edge{node.get(), data != nullptr ? data[i] : CUgraphEdgeData{}};
        const bool twice = std::any_of(out.begin(), out.end(), [&](const GraphEdge& known) {
            return known.from == edge.from && same(known.data, edge.data);
        });
        if (!graph.owns(*node) || twice || !valid(edge)) return CUDA_ERROR_INVALID_VALUE;
        out.push_back(edge);
    }
    return CUDA_SUCCESS;
}

}  // namespace simgpu::driver
