// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Executable graphs: made, changed and launched.

#include <cstring>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/graph/graph_exec.hpp"
#include "simgpu/driver/graph/task_params.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {
namespace {

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags,
                     GraphExec::Failure& failure) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    std::shared_ptr<GraphExec> exec;
    failure.result = CUDA_GRAPH_INSTANTIATE_ERROR;
    SIMGPU_TRY(find_graph(handle, graph));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    failure.result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    SIMGPU_TRY(GraphExec::instantiate(graph, flags, exec, failure));
    *out = exec->handle();
    add_graph_exec(exec);
    return CUDA_SUCCESS;
}

CUresult instantiate_with_flags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    GraphExec::Failure failure;
    // Which stream to upload to only the other form can say.
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(out, graph, flags, failure);
}

/// The forms before CUDA 12, which tell what is wrong in words.
CUresult instantiate_with_log(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* text,
                              std::size_t bytes) {
    GraphExec::Failure failure;
    const CUresult result = instantiate(out, graph, 0, failure);
    if (node != nullptr) *node = failure.node;
    if (text != nullptr && bytes != 0) {
        const char* words = result == CUDA_SUCCESS ? "" : "the graph cannot be instantiated";
        std::strncpy(text, words, bytes - 1);
        text[bytes - 1] = '\0';
    }
    return result;
}

CUresult upload(CUgraphExec handle, CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    std::shared_ptr<GraphExec> exec;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    SIMGPU_TRY(find_graph_exec(handle, exec));
    return refuse_where_captured(ref);
}

CUresult instantiate_with_params(CUgraphExec* out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS* parameters,
                                 DefaultStream default_stream) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphExec::Failure failure;
    const CUresult result = instantiate(out, graph, parameters->flags, failure);
    parameters->result_out = failure.result;
    parameters->hErrNode_out = failure.node;
    if (result != CUDA_SUCCESS) return result;
    if ((parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return CUDA_SUCCESS;
    return upload(*out, parameters->hUploadStream, default_stream);
}

CUresult launch_graph(CUgraphExec handle, CUstream stream, DefaultStream default_stream) {
    StreamRef ref;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    std::shared_ptr<GraphExec> exec;
    std::shared_ptr<Graph> child;
    {
        std::lock_guard lock(graphs_lock());
        SIMGPU_TRY(find_graph_exec(handle, exec));
        if (ref.capture == nullptr) return exec->launch(ref);
        if (has_memory_nodes(exec->graph()) || has_conditional_nodes(exec->graph()))
            return CUDA_ERROR_NOT_SUPPORTED;
        child = exec->graph().copy(true, true);
    }
    return capture_task(ref, ChildTask{std::move(child), CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE});
}

CUresult destroy_exec(CUgraphExec handle) {
    std::shared_ptr<GraphExec> exec;  // goes after what it was found in
    std::lock_guard lock(graphs_lock());
    exec = remove_graph_exec(handle);
    return exec != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult update_exec(CUgraphExec exec_handle, CUgraph graph_handle,
                     CUgraphExecUpdateResultInfo& info) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<GraphExec> exec;
    std::shared_ptr<Graph> graph;
    info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    SIMGPU_TRY(find_graph_exec(exec_handle, exec));
    SIMGPU_TRY(find_graph(graph_handle, graph));
    if (graph->owned() || graph->captures != 0) return CUDA_ERROR_INVALID_VALUE;
    return update_graph_exec(*exec, *graph, info);
}

/// A node of an executable graph by the node of the graph that it was made from.
struct ExecNode {
    std::shared_ptr<GraphExec> exec;
    std::shared_ptr<GraphNode> original;
    GraphNode* own = nullptr;
};

CUresult find_exec_node(CUgraphExec exec, CUgraphNode node, ExecNode& out) {
    SIMGPU_TRY(find_graph_exec(exec, out.exec));
    SIMGPU_TRY(find_node(node, out.original));
    out.own = out.exec->find(*out.original);
    return out.own != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool one_dimensional(const Task& task) {
    const auto* copy = std::get_if<CopyTask>(&task);
    return copy == nullptr || (copy->request.height <= 1 && copy->request.depth <= 1);
}

/// Replaces what a node does by what `make(graph, task)` makes, as far as the driver allows it.
template <typename Make>
CUresult change(CUgraphExec exec, CUgraphNode node, const void* given, Make&& make) {
    std::lock_guard lock(graphs_lock());
    ExecNode found;
    SIMGPU_TRY(find_exec_node(exec, node, found));
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Task task;
    SIMGPU_TRY(make(found.original->graph, task));
    if (auto* kernel = std::get_if<KernelTask>(&task)) {
        if (const auto* old = std::get_if<KernelTask>(&found.own->task))
            kernel->attributes = old->attributes;
    }
    const bool fits = check_update(found.own->task, task) == CU_GRAPH_EXEC_UPDATE_SUCCESS &&
                      one_dimensional(found.own->task) && one_dimensional(task);
    if (!fits) return CUDA_ERROR_INVALID_VALUE;
    found.exec->replace(*found.own, std::move(task));
    return CUDA_SUCCESS;
}

CUresult change_kernel(CUgraphExec exec, CUgraphNode node,
                       const CUDA_KERNEL_NODE_PARAMS_v2& given) {
    return change(exec, node, &given, [&](Graph&, Task& task) { return kernel_task(given, task); });
}

CUresult change_child(CUgraphExec exec_handle, CUgraphNode node, CUgraph child) {
    std::lock_guard lock(graphs_lock());
    ExecNode found;
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_exec_node(exec_handle, node, found));
    SIMGPU_TRY(find_graph(child, graph));
    if (!std::holds_alternative<ChildTask>(found.own->task)) return CUDA_ERROR_INVALID_VALUE;
    return update_child_of(*found.exec, *found.own, *graph);
}

/// The kinds that the generic call cannot change.
bool fixed(CUgraphNodeType type) {
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
           type == CU_GRAPH_NODE_TYPE_CONDITIONAL || type == CU_GRAPH_NODE_TYPE_EMPTY;
}

CUresult change_any(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* given) {
    if (given == nullptr || fixed(given->type)) return CUDA_ERROR_INVALID_VALUE;
    if (given->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return change_child(exec, node, given->graph.graph);
    return change(exec, node, given,
                  [&](Graph& graph, Task& task) { return task_of(*given, graph, task); });
}

/// Only these can be switched off.
bool can_be_disabled(const Task& task) {
    return std::holds_alternative<KernelTask>(task) || std::holds_alternative<CopyTask>(task) ||
           std::holds_alternative<MemsetTask>(task);
}

CUresult set_enabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
    std::lock_guard lock(graphs_lock());
    ExecNode found;
    SIMGPU_TRY(find_exec_node(exec, node, found));
    if (!can_be_disabled(found.own->task)) return CUDA_ERROR_INVALID_VALUE;
    found.exec->set_enabled(*found.own, enabled != 0);
    return CUDA_SUCCESS;
}

CUresult get_enabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
    std::lock_guard lock(graphs_lock());
    ExecNode found;
    SIMGPU_TRY(find_exec_node(exec, node, found));
    if (enabled == nullptr || !can_be_disabled(found.own->task)) return CUDA_ERROR_INVALID_VALUE;
    *enabled = found.exec->enabled(*found.own) ? 1 : 0;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGraphInstantiate,
            (CUgraphExec * out, CUgraph graph, CUgraphNode* node, char* text, size_t bytes),
            { return driver::instantiate_with_log(out, graph, node, text, bytes); })
SIMGPU_CALL(cuGraphInstantiate_v2,
            (CUgraphExec * out, CUgraph graph, CUgraphNode* node, char* text, size_t bytes),
            { return driver::instantiate_with_log(out, graph, node, text, bytes); })
SIMGPU_CALL(cuGraphInstantiateWithFlags,
            (CUgraphExec * out, CUgraph graph, unsigned long long flags),
            { return driver::instantiate_with_flags(out, graph, flags); })
SIMGPU_CALL_PTSZ(cuGraphInstantiateWithParams,
                 (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters), {
                     return driver::instantiate_with_params(out, graph, parameters, default_stream);
                 })
SIMGPU_CALL(cuGraphExecGetFlags, (CUgraphExec handle, cuuint64_t* flags), {
    std::lock_guard lock(driver::graphs_lock());
    std::shared_ptr<driver::GraphExec> exec;
    SIMGPU_TRY(driver::find_graph_exec(handle, exec));
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags();
    return CUDA_SUCCESS;
})
SIMGPU_CALL_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream),
                 { return driver::launch_graph(exec, stream, default_stream); })
SIMGPU_CALL_PTSZ(cuGraphUpload, (CUgraphExec exec, CUstream stream),
                 { return driver::upload(exec, stream, default_stream); })
SIMGPU_CALL(cuGraphExecDestroy, (CUgraphExec exec), { return driver::destroy_exec(exec); })
SIMGPU_CALL(cuGraphExecUpdate,
            (CUgraphExec exec, CUgraph graph, CUgraphNode* node, CUgraphExecUpdateResult* result), {
                CUgraphExecUpdateResultInfo info{};
                const CUresult status = driver::update_exec(exec, graph, info);
                if (node != nullptr) *node = info.errorNode;
                if (result != nullptr) *result = info.result;
                return status;
            })
SIMGPU_CALL(cuGraphExecUpdate_v2,
            (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info), {
                if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::update_exec(exec, graph, *info);
            })

SIMGPU_CALL(cuGraphExecKernelNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given), {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::change_kernel(
                    exec, node,
                    {given->func, given->gridDimX, given->gridDimY, given->gridDimZ,
                     given->blockDimX, given->blockDimY, given->blockDimZ, given->sharedMemBytes,
                     given->kernelParams, given->extra, nullptr, nullptr});
            })
SIMGPU_CALL(cuGraphExecKernelNodeSetParams_v2,
            (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* given), {
                if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
                return driver::change_kernel(exec, node, *given);
            })
SIMGPU_CALL(cuGraphExecMemcpyNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* given, CUcontext context), {
                using namespace driver;
                return change(exec, node, given,
                              [&](Graph&, Task& task) { return copy_task(*given, context, task); });
            })
SIMGPU_CALL(cuGraphExecMemsetNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given,
             CUcontext context),
            {
                using namespace driver;
                return change(exec, node, given, [&](Graph&, Task& task) {
                    return memset_task(*given, context, task);
                });
            })
SIMGPU_CALL(cuGraphExecHostNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given), {
                using namespace driver;
                return change(exec, node, given,
                              [&](Graph&, Task& task) { return host_task(*given, task); });
            })
SIMGPU_CALL(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
            { return driver::change_child(exec, node, child); })
SIMGPU_CALL(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event),
            {
                using namespace driver;
                return change(exec, node, event,
                              [&](Graph&, Task& task) { return event_record_task(event, task); });
            })
SIMGPU_CALL(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event), {
    using namespace driver;
    return change(exec, node, event,
                  [&](Graph&, Task& task) { return event_wait_task(event, task); });
})
SIMGPU_CALL(cuGraphExecBatchMemOpNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* given), {
                using namespace driver;
                return change(exec, node, given,
                              [&](Graph&, Task& task) { return mem_op_task(*given, task); });
            })
SIMGPU_CALL(cuGraphExecNodeSetParams,
            (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* given),
            { return driver::change_any(exec, node, given); })
SIMGPU_CALL(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled),
            { return driver::set_enabled(exec, node, enabled); })
SIMGPU_CALL(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned* enabled),
            { return driver::get_enabled(exec, node, enabled); })
