// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Nodes of graphs by kind. Handles are the driver's; most structures are, under other names.

#include "simgpu/cudart/copy_shapes.hpp"
#include "simgpu/cudart/graph_params.hpp"
#include "simgpu/cudart/runtime.hpp"
#include "simgpu/cudart/symbol.hpp"

using namespace libswap::simgpu::cudart;

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));

namespace {

/// Where a new node goes.
struct Place {
    cudaGraphNode_t* out;
    cudaGraph_t graph;
    const cudaGraphNode_t* dependencies;
    size_t count;
};

/// A copy as one of the ways to name its sides gives it.
template <typename Describe>
cudaError_t add_copy(const Place& place, Describe describe) {
    return on_context([&] {
        CUDA_MEMCPY3D copy{};
        const cudaError_t error = describe(&copy);
        if (error != cudaSuccess) {
            return error;
        }
        return call(CUDART_DRIVER(cuGraphAddMemcpyNode, 10000), place.out, place.graph,
                    place.dependencies, place.count, &copy, entered_context());
    });
}

template <typename Describe>
cudaError_t set_copy(cudaGraphNode_t node, Describe describe) {
    return on_context([&] {
        CUDA_MEMCPY3D copy{};
        const cudaError_t error = describe(&copy);
        return error == cudaSuccess
                   ? call(CUDART_DRIVER(cuGraphMemcpyNodeSetParams, 10000), node, &copy)
                   : error;
    });
}

template <typename Describe>
cudaError_t set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, Describe describe) {
    return on_context([&] {
        CUDA_MEMCPY3D copy{};
        const cudaError_t error = describe(&copy);
        return error == cudaSuccess ? call(CUDART_DRIVER(cuGraphExecMemcpyNodeSetParams, 10020),
                                           executable, node, &copy, entered_context())
                                    : error;
    });
}

auto shaped(const cudaMemcpy3DParms* parameters) {
    return [parameters](CUDA_MEMCPY3D* copy) {
        return parameters != nullptr ? driver_copy(*parameters, copy) : cudaErrorInvalidValue;
    };
}

auto plain(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return [=](CUDA_MEMCPY3D* copy) { return driver_copy_1d(to, from, bytes, kind, copy); };
}

auto to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset,
               cudaMemcpyKind kind) {
    return [=](CUDA_MEMCPY3D* copy) {
        void* to = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &to);
        return error == cudaSuccess ? driver_copy_1d(to, from, bytes, kind, copy) : error;
    };
}

auto from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return [=](CUDA_MEMCPY3D* copy) {
        void* from = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &from);
        return error == cudaSuccess ? driver_copy_1d(to, from, bytes, kind, copy) : error;
    };
}

template <typename Use>
cudaError_t with_kernel(const cudaKernelNodeParams* given, Use use) {
    return on_context([&] {
        CUDA_KERNEL_NODE_PARAMS parameters{};
        const cudaError_t error = driver_kernel(given, &parameters);
        return error == cudaSuccess ? use(&parameters) : error;
    });
}

template <typename Use>
cudaError_t with_node(cudaGraphNodeParams* given, Use use) {
    return on_context([&] {
        if (given == nullptr) {
            return cudaErrorInvalidValue;
        }
        CUgraphNodeParams parameters;
        cudaError_t error = driver_node(*given, &parameters);
        if (error == cudaSuccess) {
            error = use(&parameters);
        }
        if (error == cudaSuccess) {
            copy_answers(parameters, given);
        }
        return error;
    });
}

const CUDA_MEMSET_NODE_PARAMS* to_driver(const cudaMemsetParams* parameters) {
    return reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(parameters);
}

const CUDA_HOST_NODE_PARAMS* to_driver(const cudaHostNodeParams* parameters) {
    return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(parameters);
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* given) {
    return with_kernel(given, [&](const CUDA_KERNEL_NODE_PARAMS* parameters) {
        return call(CUDART_DRIVER(cuGraphAddKernelNode, 12000), out, graph, dependencies, count,
                    parameters);
    });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* out) {
    return on_context([&] {
        CUDA_KERNEL_NODE_PARAMS parameters{};
        const cudaError_t error =
            out == nullptr
                ? cudaErrorInvalidValue
                : call(CUDART_DRIVER(cuGraphKernelNodeGetParams, 12000), node, &parameters);
        if (error == cudaSuccess) {
            runtime_kernel(parameters, out);
        }
        return error;
    });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* given) {
    return with_kernel(given, [&](const CUDA_KERNEL_NODE_PARAMS* parameters) {
        return call(CUDART_DRIVER(cuGraphKernelNodeSetParams, 12000), node, parameters);
    });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* given) {
    return with_kernel(given, [&](const CUDA_KERNEL_NODE_PARAMS* parameters) {
        return call(CUDART_DRIVER(cuGraphExecKernelNodeSetParams, 12000), executable, node,
                    parameters);
    });
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphKernelNodeCopyAttributes, 11000), to, from); });
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphKernelNodeGetAttribute, 11000), node,
                    static_cast<CUlaunchAttributeID>(attribute),
                    reinterpret_cast<CUlaunchAttributeValue*>(value));
    });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphKernelNodeSetAttribute, 11000), node,
                    static_cast<CUlaunchAttributeID>(attribute),
                    reinterpret_cast<const CUlaunchAttributeValue*>(value));
    });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* given) {
    return add_copy({out, graph, dependencies, count}, shaped(given));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
    return add_copy({out, graph, dependencies, count}, plain(to, from, bytes, kind));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* out, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const void* symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
    return add_copy({out, graph, dependencies, count},
                    to_symbol(symbol, from, bytes, offset, kind));
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* out, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             void* to, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
    return add_copy({out, graph, dependencies, count},
                    from_symbol(to, symbol, bytes, offset, kind));
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* out) {
    return on_context([&] {
        CUDA_MEMCPY3D copy{};
        const cudaError_t error =
            out == nullptr ? cudaErrorInvalidValue
                           : call(CUDART_DRIVER(cuGraphMemcpyNodeGetParams, 10000), node, &copy);
        return error == cudaSuccess ? runtime_copy(copy, out) : error;
    });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* given) {
    return set_copy(node, shaped(given));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t bytes, cudaMemcpyKind kind) {
    return set_copy(node, plain(to, from, bytes, kind));
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* from, size_t bytes, size_t offset,
                                                 cudaMemcpyKind kind) {
    return set_copy(node, to_symbol(symbol, from, bytes, offset, kind));
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   cudaMemcpyKind kind) {
    return set_copy(node, from_symbol(to, symbol, bytes, offset, kind));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* given) {
    return set_copy(executable, node, shaped(given));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void* to, const void* from, size_t bytes,
                                               cudaMemcpyKind kind) {
    return set_copy(executable, node, plain(to, from, bytes, kind));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable,
                                                     cudaGraphNode_t node, const void* symbol,
                                                     const void* from, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
    return set_copy(executable, node, to_symbol(symbol, from, bytes, offset, kind));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable,
                                                       cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t bytes,
                                                       size_t offset, cudaMemcpyKind kind) {
    return set_copy(executable, node, from_symbol(to, symbol, bytes, offset, kind));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddMemsetNode, 10000), out, graph, dependencies, count,
                    to_driver(given), entered_context());
    });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* out) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphMemsetNodeGetParams, 10000), node,
                    reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(out));
    });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphMemsetNodeSetParams, 10000), node, to_driver(given));
    });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecMemsetNodeSetParams, 10020), executable, node,
                    to_driver(given), entered_context());
    });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddHostNode, 10000), out, graph, dependencies, count,
                    to_driver(given));
    });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* out) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphHostNodeGetParams, 10000), node,
                    reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(out));
    });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphHostNodeSetParams, 10000), node, to_driver(given));
    });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecHostNodeSetParams, 10020), executable, node,
                    to_driver(given));
    });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count,
                                       cudaGraph_t child) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddChildGraphNode, 10000), out, graph, dependencies, count,
                    child);
    });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* out) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphChildGraphNodeGetGraph, 10000), node, out); });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecChildGraphNodeSetParams, 11010), executable, node,
                    child);
    });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddEmptyNode, 10000), out, graph, dependencies, count);
    });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddEventRecordNode, 11010), out, graph, dependencies,
                    count, event);
    });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* out) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphEventRecordNodeGetEvent, 11010), node, out); });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphEventRecordNodeSetEvent, 11010), node, event); });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecEventRecordNodeSetEvent, 11010), executable, node,
                    event);
    });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count,
                                      cudaEvent_t event) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddEventWaitNode, 11010), out, graph, dependencies, count,
                    event);
    });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* out) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphEventWaitNodeGetEvent, 11010), node, out); });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphEventWaitNodeSetEvent, 11010), node, event); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecEventWaitNodeSetEvent, 11010), executable, node,
                    event);
    });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     cudaMemAllocNodeParams* given) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddMemAllocNode, 11040), out, graph, dependencies, count,
                    reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(given));
    });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* out) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphMemAllocNodeGetParams, 11040), node,
                    reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(out));
    });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count,
                                    void* pointer) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddMemFreeNode, 11040), out, graph, dependencies, count,
                    device_pointer(pointer));
    });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* out) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphMemFreeNodeGetParams, 11040), node,
                    static_cast<CUdeviceptr*>(out));
    });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* out, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* data,
                             size_t count, cudaGraphNodeParams* given) {
    return with_node(given, [&](CUgraphNodeParams* parameters) {
        return call(CUDART_DRIVER(cuGraphAddNode, 12030), out, graph, dependencies,
                    reinterpret_cast<const CUgraphEdgeData*>(data), count, parameters);
    });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* given) {
    return with_node(given, [&](CUgraphNodeParams* parameters) {
        return call(CUDART_DRIVER(cuGraphNodeSetParams, 12020), node, parameters);
    });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       cudaGraphNodeParams* given) {
    return with_node(given, [&](CUgraphNodeParams* parameters) {
        return call(CUDART_DRIVER(cuGraphExecNodeSetParams, 12020), executable, node, parameters);
    });
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* out, cudaGraph_t graph,
                                             unsigned default_value, unsigned flags) {
    return on_context([&] {
        static_assert(sizeof(cudaGraphConditionalHandle) == sizeof(CUgraphConditionalHandle));
        return call(CUDART_DRIVER(cuGraphConditionalHandleCreate, 12030),
                    reinterpret_cast<CUgraphConditionalHandle*>(out), graph, entered_context(),
                    default_value, flags);
    });
}
