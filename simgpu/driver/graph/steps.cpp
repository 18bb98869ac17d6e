// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/steps.hpp"

#include <unordered_map>

#include "simgpu/driver/graph/condition.hpp"
#include "simgpu/driver/launch.hpp"
#include "simgpu/driver/value_calls.hpp"

namespace simgpu::driver {

namespace {

using Indices = std::vector<std::uint32_t>;

/// Spreads a graph out into one list. A node becomes one or several steps; who comes after it is
/// after its last.
class Spreader {
  public:
    explicit Spreader(const std::unordered_set<const GraphNode*>& disabled) : disabled_(disabled) {}

    /// All of `graph` behind the steps `after`; returns the steps that nothing in it is behind.
    Indices spread(const Graph& graph, const Indices& after) {
        std::unordered_map<const GraphNode*, std::uint32_t> last;
        Indices ends;
        for (const GraphNode* node : graph.in_order()) {
            Indices before;
            for (const GraphEdge& edge : node->dependencies) before.push_back(last.at(edge.from));
            if (before.empty()) before = after;
            last[node] = disabled_.count(node) != 0 ? add({}, before) : add_node(*node, before);
            if (node->dependents.empty()) ends.push_back(last[node]);
        }
        return ends.empty() ? after : ends;
    }

    std::vector<GraphStep> take() { return std::move(steps_); }

  private:
    std::uint32_t add(GraphStep step, const Indices& after) {
        step.after = after;
        steps_.push_back(std::move(step));
        return static_cast<std::uint32_t>(steps_.size() - 1);
    }

    std::uint32_t add_node(const GraphNode& node, const Indices& after) {
        return std::visit([&](const auto& task) { return add_task(task, after); }, node.task);
    }

    static GraphStep in_context(GraphStep::Kind kind, Context& context) {
        GraphStep step;
        step.kind = kind;
        step.context = &context.device();
        return step;
    }

    std::uint32_t add_task(const KernelTask& task, const Indices& after) {
        GraphStep step = in_context(GraphStep::Kind::Kernel, task.call->function->context);
        step.launch = kernel_launch(task.call);
        return add(std::move(step), after);
    }

    std::uint32_t add_task(const CopyTask& task, const Indices& after) {
        if (task.request.bytes() == 0) return add({}, after);
        GraphStep step = in_context(GraphStep::Kind::Copy, *task.context);
        step.copy = task.request;
        return add(std::move(step), after);
    }

    std::uint32_t add_task(const MemsetTask& task, const Indices& after) {
        if (task.request.width * task.request.height == 0) return add({}, after);
        GraphStep step = in_context(GraphStep::Kind::Memset, *task.context);
        step.memset = task.request;
        return add(std::move(step), after);
    }

    std::uint32_t add_task(const HostTask& task, const Indices& after) {
        GraphStep step;
        step.kind = GraphStep::Kind::Function;
        step.function = [function = task.function, data = task.data] { function(data); };
        return add(std::move(step), after);
    }

    std::uint32_t add_task(const ChildTask& task, const Indices& after) {
        // A step before and one behind it, so that its edges are as many as the nodes' own.
        const std::uint32_t begin = add({}, after);
        return add({}, spread(*task.graph, {begin}));
    }

    std::uint32_t add_task(const EmptyTask&, const Indices& after) { return add({}, after); }

    std::uint32_t add_task(const EventWaitTask& task, const Indices& after) {
        return add_event(GraphStep::Kind::Wait, *task.event, after);
    }

    std::uint32_t add_task(const EventRecordTask& task, const Indices& after) {
        return add_event(GraphStep::Kind::Record, *task.event, after);
    }

    std::uint32_t add_event(GraphStep::Kind kind, EventObject& event, const Indices& after) {
        GraphStep step = in_context(kind, event.context);
        step.event = event.event.get();
        return add(std::move(step), after);
    }

    // Memory is in its place from the launch on.
    std::uint32_t add_task(const AllocTask&, const Indices& after) { return add({}, after); }
    std::uint32_t add_task(const FreeTask&, const Indices& after) { return add({}, after); }

    std::uint32_t add_task(const MemOpTask& task, const Indices& after) {
        std::uint32_t last = add({}, after);
        for (const CUstreamBatchMemOpParams& operation : task.operations) {
            auto step = value_step(operation);
            if (!step) continue;
            step->context = &task.context->device();
            last = add(std::move(*step), {last});
        }
        return last;
    }

    std::uint32_t add_task(const ConditionalTask& task, const Indices& after) {
        GraphStep step = in_context(GraphStep::Kind::Choice, *task.context);
        std::vector<std::vector<GraphStep>> bodies;
        for (const auto& body : task.bodies) bodies.push_back(steps_of(*body, disabled_));
        step.next = choice_of(task.condition, task.type, std::move(bodies));
        return add(std::move(step), after);
    }

    const std::unordered_set<const GraphNode*>& disabled_;
    std::vector<GraphStep> steps_;
};

}  // namespace

std::vector<GraphStep> steps_of(const Graph& graph,
                                const std::unordered_set<const GraphNode*>& disabled) {
    Spreader spreader(disabled);
    spreader.spread(graph, {});
    return spreader.take();
}

}  // namespace simgpu::driver
