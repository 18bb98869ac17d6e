// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/graph_exec.hpp"

#include <algorithm>

#include "simgpu/driver/graph/condition.hpp"
#include "simgpu/driver/graph/graph_memory.hpp"
#include "simgpu/driver/graph/steps.hpp"
#include "simgpu/driver/handle_table.hpp"

namespace simgpu::driver {

namespace {

HandleTable<GraphExec>& graph_execs() {
    static auto* table =
        new HandleTable<GraphExec>;  // leaked: calls may come after static destructors
    return *table;
}

using Failure = GraphExec::Failure;

CUresult fail(Failure& failure, CUgraphInstantiateResult result, const GraphNode* node) {
    failure.result = result;
    failure.node = node != nullptr ? const_cast<GraphNode*>(node)->handle() : nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

/// A node that is part of a cycle, or behind one; null where there is none.
const GraphNode* node_in_cycle(const Graph& graph) {
    const std::vector<GraphNode*> order = graph.in_order();
    if (order.size() != graph.nodes().size()) {
        const std::unordered_set<const GraphNode*> placed(order.begin(), order.end());
        for (const auto& node : graph.nodes()) {
            if (placed.count(node.get()) == 0) return node.get();
        }
    }
    for (const auto& node : graph.nodes()) {
        for (const auto& inside : graphs_inside(node->task)) {
            if (const GraphNode* found = node_in_cycle(*inside)) return found;
        }
    }
    return nullptr;
}

/// What a body of a conditional node may hold.
const GraphNode* unfit_for_body(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
        const auto* conditional = std::get_if<ConditionalTask>(&node->task);
        if (conditional == nullptr) continue;
        for (const auto& body : conditional->bodies) {
            const GraphNode* unfit = nullptr;
            body->any([&](const GraphNode& inside) {
                const CUgraphNodeType type = type_of(inside.task);
                const bool fits =
                    type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                    type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_EMPTY ||
                    type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
                if (!fits) unfit = &inside;
                return !fits;
            });
            if (unfit != nullptr) return unfit;
        }
    }
    return nullptr;
}

CUresult check(const Graph& graph, unsigned long long flags, Failure& failure) {
    constexpr unsigned long long kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                          CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
        fail(failure, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if ((flags & ~kKnown) != 0 || graph.captures != 0 || graph.owned())
        return fail(failure, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr);
    if (const GraphNode* node = node_in_cycle(graph))
        return fail(failure, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node);
    if (const GraphNode* node = unfit_for_body(graph))
        return fail(failure, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node);
    const bool single = has_memory_nodes(graph) || has_conditional_nodes(graph);
    if (single && graph.instances != 0) return fail(failure, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr);
    for (const auto& condition : graph.conditions) {
        if (!condition->used)
            return fail(failure, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr);
    }
    return CUDA_SUCCESS;
}

/// The values that conditions have at the beginning of every launch, those of the graphs inside
/// too.
void add_default_values(const Graph& graph, std::vector<GraphStep>& steps) {
    for (const auto& condition : graph.conditions) {
        if ((condition->flags & CU_GRAPH_COND_ASSIGN_DEFAULT) == 0) continue;
        GraphStep step;
        step.kind = GraphStep::Kind::WriteValue;
        step.context = &condition->context().device();
        step.va = condition->handle();
        step.value = condition->default_value;
        steps.push_back(std::move(step));
    }
    for (const auto& node : graph.nodes()) {
        for (const auto& inside : graphs_inside(node->task)) add_default_values(*inside, steps);
    }
}

/// `rest` behind all of `first`.
std::vector<GraphStep> chain(std::vector<GraphStep> first, std::vector<GraphStep> rest) {
    if (first.empty()) return rest;
    const auto count = static_cast<std::uint32_t>(first.size());
    for (GraphStep& step : rest) {
        for (std::uint32_t& earlier : step.after) earlier += count;
        if (step.after.empty()) {
            for (std::uint32_t i = 0; i < count; ++i) step.after.push_back(i);
        }
        first.push_back(std::move(step));
    }
    return first;
}

bool has_user_objects(const Graph& graph) {
    if (!graph.user_objects.empty()) return true;
    return graph.any([](const GraphNode& node) {
        const auto inside = graphs_inside(node.task);
        return std::any_of(inside.begin(), inside.end(),
                           [](const auto& one) { return !one->user_objects.empty(); });
    });
}

/// A last step that lets go of the graph, and with it of the program's objects: they outlive the
/// launch, whatever becomes of what was launched. Called without any lock.
void keep_until_done(std::vector<GraphStep>& steps, std::shared_ptr<Graph> graph) {
    std::vector<bool> followed(steps.size(), false);
    for (const GraphStep& step : steps) {
        for (const std::uint32_t earlier : step.after) followed[earlier] = true;
    }
    GraphStep last;
    last.kind = GraphStep::Kind::Function;
    last.function = [graph = std::move(graph)]() mutable { graph = nullptr; };
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
        if (!followed[i]) last.after.push_back(i);
    }
    steps.push_back(std::move(last));
}

}  // namespace

GraphExec::GraphExec(std::shared_ptr<Graph> source, unsigned long long flags)
    : source_(std::move(source)),
      copy_(source_->copy(false)),
      flags_(flags),
      allocates_(has_memory_nodes(*copy_)) {
    ++source_->instances;
    index(*copy_);
}

GraphExec::~GraphExec() { --source_->instances; }

void GraphExec::index(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
        by_original_[node->original] = node.get();
        for (const auto& inside : graphs_inside(node->task)) index(*inside);
    }
}

CUresult GraphExec::instantiate(const std::shared_ptr<Graph>& source, unsigned long long flags,
                                std::shared_ptr<GraphExec>& out, Failure& failure) {
    SIMGPU_TRY(check(*source, flags, failure));
    out.reset(new GraphExec(source, flags));
    return CUDA_SUCCESS;
}

GraphNode* GraphExec::find(const GraphNode& node) const {
    const auto found = by_original_.find(node.serial);
    return found != by_original_.end() ? found->second : nullptr;
}

void GraphExec::replace(GraphNode& own, Task task) {
    own.task = std::move(task);
    steps_ = nullptr;
}

void GraphExec::set_enabled(const GraphNode& own, bool enabled) {
    if (enabled) {
        disabled_.erase(&own);
    } else {
        disabled_.insert(&own);
    }
    steps_ = nullptr;
}

CUresult GraphExec::launch(const StreamRef& stream) {
    if (allocates_) {
        const bool auto_free = (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
        SIMGPU_TRY(stream.context->device().sticky_error());
        SIMGPU_TRY(launch_memory(*copy_, auto_free));
    }
    if (steps_ == nullptr) {
        std::vector<GraphStep> first;
        add_default_values(*copy_, first);
        steps_ = std::make_shared<std::vector<GraphStep>>(
            chain(std::move(first), steps_of(*copy_, disabled_)));
        if (has_user_objects(*copy_)) keep_until_done(*steps_, copy_);
    }
    return stream.stream->launch_graph(*steps_, run_);
}

CUresult find_graph_exec(CUgraphExec handle, std::shared_ptr<GraphExec>& out) {
    out = graph_execs().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void add_graph_exec(const std::shared_ptr<GraphExec>& exec) { graph_execs().add(exec); }

std::shared_ptr<GraphExec> remove_graph_exec(CUgraphExec handle) {
    return graph_execs().remove(handle);
}

}  // namespace simgpu::driver
