// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Nodes by kind: added, asked for what they do, and told to do something else.

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/task_params.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {
namespace {

/// Where a new node goes.
struct Place {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    const CUgraphEdgeData* data;
    std::size_t count;
};

/// Adds what `make(graph, task)` makes.
template <typename Make>
CUresult add_node(const Place& place, Make&& make) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    std::vector<GraphEdge> edges;
    SIMGPU_TRY(find_graph(place.graph, graph));
    if (place.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(read_edges(*graph, place.dependencies, place.data, place.count, edges));
    Task task;
    SIMGPU_TRY(make(*graph, task));
    *place.out = graph->add(std::move(task), edges).handle();
    return CUDA_SUCCESS;
}

/// Calls `tell(node, task)` for a node of the right kind.
template <typename Kind, typename Tell>
CUresult ask_node(CUgraphNode handle, const void* out, Tell&& tell) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    auto* task = std::get_if<Kind>(&node->task);
    if (task == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    tell(*node, *task);
    return CUDA_SUCCESS;
}

/// Replaces what a node of the right kind does by what `make(task)` makes.
template <typename Kind, typename Make>
CUresult change_node(CUgraphNode handle, const void* given, Make&& make) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    auto* old = std::get_if<Kind>(&node->task);
    if (old == nullptr || given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Task task;
    SIMGPU_TRY(make(task));
    if constexpr (std::is_same_v<Kind, KernelTask>)
        std::get<KernelTask>(task).attributes = old->attributes;
    node->task = std::move(task);
    return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS_v2 newer(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
    return {old.func,         old.gridDimX,  old.gridDimY,  old.gridDimZ,
            old.blockDimX,    old.blockDimY, old.blockDimZ, old.sharedMemBytes,
            old.kernelParams, old.extra,     nullptr,       nullptr};
}

CUDA_KERNEL_NODE_PARAMS_v1 older(const CUDA_KERNEL_NODE_PARAMS_v2& shown) {
    return {shown.func,         shown.gridDimX,  shown.gridDimY,  shown.gridDimZ,
            shown.blockDimX,    shown.blockDimY, shown.blockDimZ, shown.sharedMemBytes,
            shown.kernelParams, shown.extra};
}

CUresult add_kernel(const Place& place, const CUDA_KERNEL_NODE_PARAMS_v2& given) {
    return add_node(place, [&](Graph&, Task& task) { return kernel_task(given, task); });
}

CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& given) {
    return change_node<KernelTask>(node, &given,
                                   [&](Task& task) { return kernel_task(given, task); });
}

CUresult add_child(const Place& place, CUgraph child) {
    return add_node(place, [&](Graph& graph, Task& task) -> CUresult {
        if (child == graph.handle()) return CUDA_ERROR_INVALID_VALUE;
        return child_task(child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, task);
    });
}

template <typename Kind>
CUresult get_event(CUgraphNode node, CUevent* out) {
    return ask_node<Kind>(node, out, [&](GraphNode&, Kind& task) {
        *out = reinterpret_cast<CUevent>(task.event.get());
    });
}

/// A node of any kind; what the driver tells in the structure are its own pointers.
CUresult add_any(const Place& place, CUgraphNodeParams* given) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_node(place, [&](Graph& graph, Task& task) { return task_of(*given, graph, task); });
}

CUresult set_any(CUgraphNode handle, CUgraphNodeParams* given) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> node;
    SIMGPU_TRY(find_node(handle, node));
    if (given == nullptr || given->type != type_of(node->task)) return CUDA_ERROR_INVALID_VALUE;
    const bool fixed =
        given->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || given->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        given->type == CU_GRAPH_NODE_TYPE_CONDITIONAL || given->type == CU_GRAPH_NODE_TYPE_GRAPH;
    if (fixed) return CUDA_ERROR_NOT_SUPPORTED;
    Task task;
    SIMGPU_TRY(task_of(*given, node->graph, task));
    if (auto* kernel = std::get_if<KernelTask>(&task))
        kernel->attributes = std::get<KernelTask>(node->task).attributes;
    node->task = std::move(task);
    return CUDA_SUCCESS;
}

CUresult get_attribute(CUgraphNode node, CUlaunchAttributeID which, CUlaunchAttributeValue* out) {
    CUresult result = CUDA_SUCCESS;
    SIMGPU_TRY(ask_node<KernelTask>(node, out, [&](GraphNode&, KernelTask& task) {
        *out = {};
        const auto found = task.attributes.find(which);
        if (found != task.attributes.end()) {
            *out = found->second;
        } else if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            out->cooperative = task.call->cooperative ? 1 : 0;
        } else if (which == CU_LAUNCH_ATTRIBUTE_IGNORE || which >= CU_LAUNCH_ATTRIBUTE_MAX) {
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }));
    return result;
}

CUresult set_attribute(CUgraphNode node, CUlaunchAttributeID which,
                       const CUlaunchAttributeValue* value) {
    CUresult result = CUDA_SUCCESS;
    SIMGPU_TRY(ask_node<KernelTask>(node, value, [&](GraphNode&, KernelTask& task) {
        if (which == CU_LAUNCH_ATTRIBUTE_IGNORE || which >= CU_LAUNCH_ATTRIBUTE_MAX) {
            result = CUDA_ERROR_INVALID_VALUE;
            return;
        }
        task.attributes[which] = *value;
        if (which != CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return;
        auto call = std::make_shared<KernelCall>(*task.call);
        call->cooperative = value->cooperative != 0;
        task.call = std::move(call);
    }));
    return result;
}

CUresult copy_attributes(CUgraphNode to, CUgraphNode from) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphNode> target;
    std::shared_ptr<GraphNode> source;
    SIMGPU_TRY(find_node(to, target));
    SIMGPU_TRY(find_node(from, source));
    auto* written = std::get_if<KernelTask>(&target->task);
    const auto* read = std::get_if<KernelTask>(&source->task);
    if (written == nullptr || read == nullptr) return CUDA_ERROR_INVALID_VALUE;
    written->attributes = read->attributes;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGraphAddKernelNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_KERNEL_NODE_PARAMS_v1* given),
            {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::add_kernel({out, graph, dependencies, nullptr, count},
                                          driver::newer(*given));
            })
SIMGPU_CALL(cuGraphAddKernelNode_v2,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_KERNEL_NODE_PARAMS* given),
            {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::add_kernel({out, graph, dependencies, nullptr, count}, *given);
            })
SIMGPU_CALL(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out), {
    using namespace driver;
    return ask_node<KernelTask>(node, out, [&](GraphNode& found, KernelTask& task) {
        *out = older(kernel_params(found, task));
    });
})
SIMGPU_CALL(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out), {
    using namespace driver;
    return ask_node<KernelTask>(
        node, out, [&](GraphNode& found, KernelTask& task) { *out = kernel_params(found, task); });
})
SIMGPU_CALL(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given),
            {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::set_kernel(node, driver::newer(*given));
            })
SIMGPU_CALL(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* given),
            {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::set_kernel(node, *given);
            })
SIMGPU_CALL(cuGraphKernelNodeGetAttribute,
            (CUgraphNode node, CUkernelNodeAttrID which, CUkernelNodeAttrValue* out),
            { return driver::get_attribute(node, which, out); })
SIMGPU_CALL(cuGraphKernelNodeSetAttribute,
            (CUgraphNode node, CUkernelNodeAttrID which, const CUkernelNodeAttrValue* value),
            { return driver::set_attribute(node, which, value); })
SIMGPU_CALL(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from),
            { return driver::copy_attributes(to, from); })

SIMGPU_CALL(cuGraphAddMemcpyNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_MEMCPY3D* given, CUcontext context),
            {
                using namespace driver;
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return add_node(
                    {out, graph, dependencies, nullptr, count},
                    [&](Graph&, Task& task) { return copy_task(*given, context, task); });
            })
SIMGPU_CALL(cuGraphMemcpyNodeGetParams, (CUgraphNode node, CUDA_MEMCPY3D* out), {
    using namespace driver;
    return ask_node<CopyTask>(node, out,
                              [&](GraphNode&, CopyTask& task) { *out = task.parameters; });
})
SIMGPU_CALL(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* given), {
    using namespace driver;
    return change_node<CopyTask>(node, given,
                                 [&](Task& task) { return copy_task(*given, nullptr, task); });
})

SIMGPU_CALL(cuGraphAddMemsetNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context),
            {
                using namespace driver;
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return add_node(
                    {out, graph, dependencies, nullptr, count},
                    [&](Graph&, Task& task) { return memset_task(*given, context, task); });
            })
SIMGPU_CALL(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out), {
    using namespace driver;
    return ask_node<MemsetTask>(node, out,
                                [&](GraphNode&, MemsetTask& task) { *out = memset_params(task); });
})
SIMGPU_CALL(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given), {
    using namespace driver;
    return change_node<MemsetTask>(node, given,
                                   [&](Task& task) { return memset_task(*given, nullptr, task); });
})

SIMGPU_CALL(cuGraphAddHostNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_HOST_NODE_PARAMS* given),
            {
                using namespace driver;
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) { return host_task(*given, task); });
            })
SIMGPU_CALL(cuGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS* out), {
    using namespace driver;
    return ask_node<HostTask>(node, out, [&](GraphNode&, HostTask& task) {
        *out = {task.function, task.data};
    });
})
SIMGPU_CALL(cuGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given), {
    using namespace driver;
    return change_node<HostTask>(node, given, [&](Task& task) { return host_task(*given, task); });
})

SIMGPU_CALL(cuGraphAddChildGraphNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUgraph child),
            {
                return driver::add_child({out, graph, dependencies, nullptr, count}, child);
            })
SIMGPU_CALL(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph* out), {
    using namespace driver;
    return ask_node<ChildTask>(node, out,
                               [&](GraphNode&, ChildTask& task) { *out = task.graph->handle(); });
})

SIMGPU_CALL(cuGraphAddEmptyNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count), {
                using namespace driver;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) -> CUresult {
                                    task = EmptyTask{};
                                    return CUDA_SUCCESS;
                                });
            })

SIMGPU_CALL(cuGraphAddEventRecordNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUevent event),
            {
                using namespace driver;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) { return event_record_task(event, task); });
            })
SIMGPU_CALL(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent* out),
            { return driver::get_event<driver::EventRecordTask>(node, out); })
SIMGPU_CALL(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event), {
    using namespace driver;
    return change_node<EventRecordTask>(node, event,
                                        [&](Task& task) { return event_record_task(event, task); });
})
SIMGPU_CALL(cuGraphAddEventWaitNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUevent event),
            {
                using namespace driver;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) { return event_wait_task(event, task); });
            })
SIMGPU_CALL(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent* out),
            { return driver::get_event<driver::EventWaitTask>(node, out); })
SIMGPU_CALL(cuGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event), {
    using namespace driver;
    return change_node<EventWaitTask>(node, event,
                                      [&](Task& task) { return event_wait_task(event, task); });
})

SIMGPU_CALL(cuGraphAddBatchMemOpNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const CUDA_BATCH_MEM_OP_NODE_PARAMS* given),
            {
                using namespace driver;
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) { return mem_op_task(*given, task); });
            })
SIMGPU_CALL(cuGraphBatchMemOpNodeGetParams, (CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* out),
            {
                using namespace driver;
                return ask_node<MemOpTask>(
                    node, out, [&](GraphNode&, MemOpTask& task) { *out = mem_op_params(task); });
            })
SIMGPU_CALL(cuGraphBatchMemOpNodeSetParams,
            (CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* given), {
                using namespace driver;
                return change_node<MemOpTask>(
                    node, given, [&](Task& task) { return mem_op_task(*given, task); });
            })

SIMGPU_CALL(cuGraphAddMemAllocNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUDA_MEM_ALLOC_NODE_PARAMS* given),
            {
                using namespace driver;
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph&, Task& task) { return alloc_task(*given, task); });
            })
SIMGPU_CALL(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out), {
    using namespace driver;
    return ask_node<AllocTask>(node, out,
                               [&](GraphNode&, AllocTask& task) { *out = alloc_params(task); });
})
SIMGPU_CALL(cuGraphAddMemFreeNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUdeviceptr va),
            {
                using namespace driver;
                return add_node({out, graph, dependencies, nullptr, count},
                                [&](Graph& of, Task& task) { return free_task(va, of, task); });
            })
SIMGPU_CALL(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr* out), {
    using namespace driver;
    return ask_node<FreeTask>(node, out, [&](GraphNode&, FreeTask& task) { *out = task.va; });
})

SIMGPU_CALL(cuGraphAddNode,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUgraphNodeParams* given),
            {
                return driver::add_any({out, graph, dependencies, nullptr, count}, given);
            })
SIMGPU_CALL(cuGraphAddNode_v2,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies,
             const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* given),
            {
                return driver::add_any({out, graph, dependencies, data, count}, given);
            })
SIMGPU_CALL(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* given),
            { return driver::set_any(node, given); })
