// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Updates of executable graphs. The nodes of the two graphs are paired as the driver documents it:
// exit nodes in their order, then the dependencies of each pair in the order of their edges.

#include <unordered_map>

#include "simgpu/driver/graph/graph_exec.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {

namespace {

using Info = CUgraphExecUpdateResultInfo;
using Pairs = std::vector<std::pair<GraphNode*, GraphNode*>>;  ///< Own, and the new graph's.

CUgraphExecUpdateResult check_kernel(const KernelTask& from, const KernelTask& to) {
    if (&from.call->function->context != &to.call->function->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    return from.call->cooperative == to.call->cooperative
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

CUgraphExecUpdateResult check_copy_change(const CopyTask& from, const CopyTask& to) {
    const bool same = from.context == to.context &&
                      from.parameters.dstMemoryType == to.parameters.dstMemoryType &&
                      from.parameters.srcMemoryType == to.parameters.srcMemoryType;
    return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult check_memset_change(const MemsetTask& from, const MemsetTask& to) {
    bool same = from.context == to.context && from.request.height == to.request.height;
    if (from.request.height > 1) {
        same = same && from.request.width == to.request.width &&
               from.request.pitch == to.request.pitch &&
               from.request.element_bytes == to.request.element_bytes;
    }
    return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

class Pairing {
  public:
    explicit Pairing(Info& info) : info_(info) {}

    bool pair(const Graph& own, const Graph& given) {
        if (own.nodes().size() != given.nodes().size()) return differs(nullptr, nullptr);
        const auto own_exits = exits(own);
        const auto given_exits = exits(given);
        if (own_exits.size() != given_exits.size())
            return differs(given_exits.size() > own_exits.size() ? given_exits.back() : nullptr,
                           nullptr);
        for (std::size_t i = 0; i < own_exits.size(); ++i) join(*own_exits[i], *given_exits[i]);
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            if (!pair_dependencies(*pairs_[i].first, *pairs_[i].second)) return false;
        }
        return pairs_.size() == own.nodes().size() || differs(nullptr, nullptr);
    }

    const Pairs& pairs() const { return pairs_; }

  private:
    static std::vector<GraphNode*> exits(const Graph& graph) {
        std::vector<GraphNode*> found;
        for (const auto& node : graph.nodes()) {
            if (node->dependents.empty()) found.push_back(node.get());
        }
        return found;
    }

    bool differs(GraphNode* node, GraphNode* from) {
        info_.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        info_.errorNode = node != nullptr ? node->handle() : nullptr;
        info_.errorFromNode = from != nullptr ? from->handle() : nullptr;
        return false;
    }

    void join(GraphNode& own, GraphNode& given) {
        by_given_[&given] = &own;
        by_own_[&own] = &given;
        pairs_.emplace_back(&own, &given);
    }

    bool pair_dependencies(GraphNode& own, GraphNode& given) {
        if (own.dependencies.size() != given.dependencies.size()) return differs(&given, nullptr);
        for (std::size_t i = 0; i < own.dependencies.size(); ++i) {
            GraphNode* own_from = own.dependencies[i].from;
            GraphNode* given_from = given.dependencies[i].from;
            const auto known = by_given_.find(given_from);
            const bool taken = by_own_.count(own_from) != 0;
            if (known == by_given_.end() && !taken) {
                join(*own_from, *given_from);
            } else if (known == by_given_.end() || known->second != own_from) {
                return differs(&given, given_from);
            }
        }
        return true;
    }

    Info& info_;
    Pairs pairs_;
    std::unordered_map<const GraphNode*, GraphNode*> by_given_, by_own_;
};

/// All pairs of two graphs and of those inside, checked; false, and `info` says why.
bool collect(const Graph& own, const Graph& given, Pairs& out, Info& info) {
    Pairing pairing(info);
    if (!pairing.pair(own, given)) return false;
    for (const auto& [mine, other] : pairing.pairs()) {
        info.result = check_update(mine->task, other->task);
        if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            info.errorNode = other->handle();
            return false;
        }
        out.emplace_back(mine, other);
        const auto inside = graphs_inside(mine->task);
        const auto theirs = graphs_inside(other->task);
        for (std::size_t i = 0; i < inside.size(); ++i) {
            if (!collect(*inside[i], *theirs[i], out, info)) return false;
        }
    }
    return true;
}

void take_over(GraphExec& exec, const Pairs& pairs) {
    for (const auto& [own, given] : pairs) {
        // Graphs inside keep their place: their nodes are in the list themselves.
        if (graphs_inside(own->task).empty()) exec.replace(*own, given->task);
    }
}

}  // namespace

CUgraphExecUpdateResult check_update(const Task& from, const Task& to) {
    if (from.index() != to.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (const auto* kernel = std::get_if<KernelTask>(&from))
        return check_kernel(*kernel, std::get<KernelTask>(to));
    if (const auto* copy = std::get_if<CopyTask>(&from))
        return check_copy_change(*copy, std::get<CopyTask>(to));
    if (const auto* memset = std::get_if<MemsetTask>(&from))
        return check_memset_change(*memset, std::get<MemsetTask>(to));
    if (const auto* operations = std::get_if<MemOpTask>(&from)) {
        return operations->context == std::get<MemOpTask>(to).context
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    if (const auto* conditional = std::get_if<ConditionalTask>(&from)) {
        const auto& other = std::get<ConditionalTask>(to);
        const bool same =
            conditional->type == other.type && conditional->bodies.size() == other.bodies.size();
        return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    if (const auto* alloc = std::get_if<AllocTask>(&from)) {
        return alloc->memory == std::get<AllocTask>(to).memory
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    if (const auto* free = std::get_if<FreeTask>(&from)) {
        return free->va == std::get<FreeTask>(to).va
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult update_graph_exec(GraphExec& exec, Graph& graph, Info& info) {
    Pairs pairs;
    info = {};
    if (!collect(exec.graph(), graph, pairs, info)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    info = {};
    take_over(exec, pairs);
    return CUDA_SUCCESS;
}

CUresult update_child_of(GraphExec& exec, GraphNode& own, Graph& child) {
    Pairs pairs;
    Info info{};
    const Graph& inside = *std::get<ChildTask>(own.task).graph;
    if (!collect(inside, child, pairs, info)) return CUDA_ERROR_INVALID_VALUE;
    take_over(exec, pairs);
    return CUDA_SUCCESS;
}

}  // namespace simgpu::driver
