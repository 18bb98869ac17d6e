// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/task_params.hpp"

#include "simgpu/driver/copies.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/condition.hpp"
#include "simgpu/driver/graph/graph_memory.hpp"
#include "simgpu/driver/launch.hpp"
#include "simgpu/driver/value_calls.hpp"

namespace simgpu::driver {

namespace {

CUresult context_or_own(CUcontext handle, Context*& out) {
    return handle != nullptr ? find_context(handle, out) : current_context(out);
}

template <typename EventTask>
CUresult event_task(CUevent handle, Task& out) {
    std::shared_ptr<EventObject> event;
    SIMGPU_TRY(find_event(handle, event));
    out = EventTask{std::move(event)};
    return CUDA_SUCCESS;
}

CUresult conditional_task(CUDA_CONDITIONAL_NODE_PARAMS& given, Graph& graph, Task& out);

}  // namespace

CUresult kernel_task(const CUDA_KERNEL_NODE_PARAMS_v2& given, Task& out) {
    LaunchRequest request;
    request.function =
        given.func != nullptr ? given.func : reinterpret_cast<CUfunction>(given.kern);
    request.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
    request.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
    request.shared_bytes = given.sharedMemBytes;
    request.parameters = given.kernelParams;
    request.extra = given.extra;
    if (request.function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    std::shared_ptr<Function> function;
    SIMGPU_TRY(context_or_own(given.func != nullptr ? nullptr : given.ctx, context));
    SIMGPU_TRY(find_function(request.function, context, function));
    auto call = std::make_shared<KernelCall>();
    // A function runs in its own context, whatever is current.
    SIMGPU_TRY(prepare(request, function->context, *call));
    out = KernelTask{std::move(call), {}};
    return CUDA_SUCCESS;
}

CUresult copy_task(const CUDA_MEMCPY3D& given, CUcontext handle, Task& out) {
    CopyTask task;
    SIMGPU_TRY(context_or_own(handle, task.context));
    auto request = request_of(given);
    if (!request) return request.error();
    if (request->bytes() == 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_copy(*request, side_of(given.dstMemoryType), side_of(given.srcMemoryType),
                          task.context->gpu.ordinal));
    task.parameters = given;
    task.request = *request;
    out = std::move(task);
    return CUDA_SUCCESS;
}

CUresult memset_task(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext handle, Task& out) {
    MemsetTask task;
    SIMGPU_TRY(context_or_own(handle, task.context));
    const bool element_ok =
        given.elementSize == 1 || given.elementSize == 2 || given.elementSize == 4;
    if (!element_ok || given.width == 0 || given.height == 0) return CUDA_ERROR_INVALID_VALUE;
    task.request.dst = given.dst;
    task.request.value = given.value;
    task.request.element_bytes = given.elementSize;
    task.request.width = given.width;
    task.request.height = given.height;
    task.request.pitch = given.pitch;
    SIMGPU_TRY(check_memset(task.request, task.context->gpu.ordinal));
    out = task;
    return CUDA_SUCCESS;
}

CUresult host_task(const CUDA_HOST_NODE_PARAMS& given, Task& out) {
    if (given.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    out = HostTask{given.fn, given.userData};
    return CUDA_SUCCESS;
}

CUresult mem_op_task(const CUDA_BATCH_MEM_OP_NODE_PARAMS& given, Task& out) {
    MemOpTask task;
    SIMGPU_TRY(context_or_own(given.ctx, task.context));
    SIMGPU_TRY(check_value_operations(given.count, given.paramArray, given.flags));
    task.operations.assign(given.paramArray, given.paramArray + given.count);
    task.flags = given.flags;
    out = std::move(task);
    return CUDA_SUCCESS;
}

CUresult child_task(CUgraph handle, CUgraphChildGraphNodeOwnership ownership, Task& out) {
    std::shared_ptr<Graph> child;
    SIMGPU_TRY(find_graph(handle, child));
    if (child->captures != 0 || has_conditional_nodes(*child)) return CUDA_ERROR_INVALID_VALUE;
    if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        if (child->owned() || child->instances != 0) return CUDA_ERROR_INVALID_VALUE;
        child->set_owned();
        out = ChildTask{std::move(child), ownership};
        return CUDA_SUCCESS;
    }
    if (ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_INVALID_VALUE;
    if (has_memory_nodes(*child)) return CUDA_ERROR_NOT_SUPPORTED;
    out = ChildTask{child->copy(true, true), ownership};
    return CUDA_SUCCESS;
}

CUresult event_record_task(CUevent event, Task& out) {
    return event_task<EventRecordTask>(event, out);
}

CUresult event_wait_task(CUevent event, Task& out) { return event_task<EventWaitTask>(event, out); }

CUresult alloc_task(CUDA_MEM_ALLOC_NODE_PARAMS& given, Task& out) {
    const CUmemPoolProps& pool = given.poolProps;
    if (given.bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (given.accessDescCount != 0 && given.accessDescs == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Context* context = nullptr;
    Gpu* gpu = nullptr;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(find_gpu(pool.location.id, gpu));
    std::vector<CUmemAccessDesc> access(given.accessDescs,
                                        given.accessDescs + given.accessDescCount);
    for (const CUmemAccessDesc& description : access) {
        if (description.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (gpu_at(description.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    }
    std::shared_ptr<GraphMemory> memory;
    SIMGPU_TRY(GraphMemory::create(*context, *gpu, given.bytesize, std::move(access), memory));
    given.dptr = memory->va();
    out = AllocTask{std::move(memory)};
    return CUDA_SUCCESS;
}

CUresult free_task(CUdeviceptr va, Graph& graph, Task& out) {
    SIMGPU_TRY(note_free(graph, va));
    out = FreeTask{va};
    return CUDA_SUCCESS;
}

CUresult task_of(CUgraphNodeParams& given, Graph& graph, Task& out) {
    switch (given.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            // The third version of the structure has the fields of the second.
            return kernel_task(reinterpret_cast<const CUDA_KERNEL_NODE_PARAMS_v2&>(given.kernel),
                               out);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (given.memcpy.flags != 0) return CUDA_ERROR_INVALID_VALUE;
            return copy_task(given.memcpy.copyParams, given.memcpy.copyCtx, out);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return memset_task({given.memset.dst, given.memset.pitch, given.memset.value,
                                given.memset.elementSize, given.memset.width, given.memset.height},
                               given.memset.ctx, out);
        case CU_GRAPH_NODE_TYPE_HOST:
            return host_task({given.host.fn, given.host.userData}, out);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return child_task(given.graph.graph, given.graph.ownership, out);
        case CU_GRAPH_NODE_TYPE_EMPTY:
            out = EmptyTask{};
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return event_wait_task(given.eventWait.event, out);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return event_record_task(given.eventRecord.event, out);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return mem_op_task(
                {given.memOp.ctx, given.memOp.count, given.memOp.paramArray, given.memOp.flags},
                out);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            static_assert(sizeof given.alloc == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
            return alloc_task(reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS&>(given.alloc), out);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return free_task(given.free.dptr, graph, out);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return conditional_task(given.conditional, graph, out);
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(GraphNode& node, const KernelTask& task) {
    const KernelCall& call = *task.call;
    node.parameter_pointers.clear();
    for (const auto& parameter : call.function->info->parameters) {
        // The program may read through it; the type has no room to say so.
        node.parameter_pointers.push_back(
            const_cast<std::byte*>(call.parameters.data() + parameter.offset));
    }
    CUDA_KERNEL_NODE_PARAMS_v2 shown{};
    shown.func = reinterpret_cast<CUfunction>(call.function.get());
    shown.gridDimX = call.geometry.grid[0];
    shown.gridDimY = call.geometry.grid[1];
    shown.gridDimZ = call.geometry.grid[2];
    shown.blockDimX = call.geometry.block[0];
    shown.blockDimY = call.geometry.block[1];
    shown.blockDimZ = call.geometry.block[2];
    shown.sharedMemBytes = call.geometry.dynamic_shared_bytes;
    if (!node.parameter_pointers.empty()) shown.kernelParams = node.parameter_pointers.data();
    return shown;
}

CUDA_MEMSET_NODE_PARAMS memset_params(const MemsetTask& task) {
    const MemsetRequest& request = task.request;
    return {request.dst,           request.pitch, request.value,
            request.element_bytes, request.width, request.height};
}

CUDA_BATCH_MEM_OP_NODE_PARAMS mem_op_params(MemOpTask& task) {
    return {task.context->handle(), static_cast<unsigned>(task.operations.size()),
            task.operations.data(), task.flags};
}

CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(const AllocTask& task) {
    const GraphMemory& memory = *task.memory;
    CUDA_MEM_ALLOC_NODE_PARAMS shown{};
    shown.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    shown.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    shown.poolProps.location.id = memory.gpu().ordinal;
    shown.accessDescs = memory.access().empty() ? nullptr : memory.access().data();
    shown.accessDescCount = memory.access().size();
    shown.bytesize = memory.bytes();
    shown.dptr = memory.va();
    return shown;
}

namespace {

CUresult conditional_task(CUDA_CONDITIONAL_NODE_PARAMS& given, Graph& graph, Task& out) {
    ConditionalTask task;
    for (const auto& condition : graph.conditions) {
        if (condition->handle() == given.handle) task.condition = condition;
    }
    if (task.condition == nullptr || task.condition->used) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(context_or_own(given.ctx, task.context));
    if (task.context != &task.condition->context()) return CUDA_ERROR_INVALID_VALUE;
    task.type = given.type;
    const bool size_ok = given.type == CU_GRAPH_COND_TYPE_IF ? given.size == 1 || given.size == 2
                         : given.type == CU_GRAPH_COND_TYPE_WHILE  ? given.size == 1
                         : given.type == CU_GRAPH_COND_TYPE_SWITCH ? given.size > 0
                                                                   : false;
    if (!size_ok) return CUDA_ERROR_INVALID_VALUE;
    task.condition->used = true;
    for (unsigned i = 0; i < given.size; ++i) {
        task.bodies.push_back(Graph::create(true));
        task.handles.push_back(task.bodies.back()->handle());
    }
    given.phGraph_out = task.handles.data();  // stays where it is when the vector is moved
    out = std::move(task);
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace simgpu::driver
