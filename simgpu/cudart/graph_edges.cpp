// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs' nodes and edges, without regard to what the nodes do.

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

namespace {

CUgraphEdgeData* to_driver(cudaGraphEdgeData* data) {
    return reinterpret_cast<CUgraphEdgeData*>(data);
}

const CUgraphEdgeData* to_driver(const cudaGraphEdgeData* data) {
    return reinterpret_cast<const CUgraphEdgeData*>(data);
}

}  // namespace

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* out, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphNodeFindInClone, 10000), out, original, clone); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphNodeGetType, 10000), node,
                    reinterpret_cast<CUgraphNodeType*>(type));
    });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphGetEdges, 12030), graph, from, to, to_driver(data), count);
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out,
                                         cudaGraphEdgeData* data, size_t* count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphNodeGetDependencies, 12030), node, out, to_driver(data),
                    count);
    });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* out,
                                           cudaGraphEdgeData* data, size_t* count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphNodeGetDependentNodes, 12030), node, out, to_driver(data),
                    count);
    });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                     size_t count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphAddDependencies, 12030), graph, from, to, to_driver(data),
                    count);
    });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                        size_t count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphRemoveDependencies, 12030), graph, from, to,
                    to_driver(data), count);
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    return on_context([&] { return call(CUDART_DRIVER(cuGraphDestroyNode, 10000), node); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned enabled) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphNodeSetEnabled, 11060), executable, node, enabled);
    });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned* enabled) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphNodeGetEnabled, 11060), executable, node, enabled);
    });
}
