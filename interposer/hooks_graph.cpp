// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Capture and graphs. Graphs are read when they are instantiated; from then on, what changes the
// executable graph is followed.

namespace libswap {
namespace {

/// The older structures, as the newest one.
CUgraphNodeParams node_params(const CUDA_KERNEL_NODE_PARAMS_v1& params) noexcept {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.kernel.func = params.func;
    node.kernel.kernelParams = params.kernelParams;
    node.kernel.extra = params.extra;
    return node;
}

CUgraphNodeParams node_params(const CUDA_KERNEL_NODE_PARAMS_v2& params) noexcept {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.kernel.func = params.func;
    node.kernel.kern = params.kern;
    node.kernel.kernelParams = params.kernelParams;
    node.kernel.extra = params.extra;
    return node;
}

CUgraphNodeParams node_params(const CUDA_MEMCPY3D& params) noexcept {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    node.memcpy.copyParams = params;
    return node;
}

CUgraphNodeParams node_params(const CUDA_MEMSET_NODE_PARAMS& params) noexcept {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_MEMSET;
    node.memset.dst = params.dst;
    node.memset.pitch = params.pitch;
    node.memset.elementSize = params.elementSize;
    node.memset.width = params.width;
    node.memset.height = params.height;
    return node;
}

CUgraphNodeParams node_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params) noexcept {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    node.memOp.count = params.count;
    node.memOp.paramArray = params.paramArray;
    return node;
}

template <class Params>
CUresult set_node(Engine& engine, CUgraphExec exec, CUgraphNode node, const Params* params,
                  RealCall real) noexcept {
    return params ? engine.graph_node_set(exec, node, node_params(*params), real) : real();
}

CUresult note_conditional(Engine& engine, CUresult result, const CUgraphNode* node,
                          const CUgraphNodeParams* params) noexcept {
    if (result == CUDA_SUCCESS && node && params && params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        engine.graph_conditional(*node, params->conditional.phGraph_out, params->conditional.size);
    return result;
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK_TWINS(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream),
                   return engine.begin_capture(on(stream), real);)

LIBSWAP_HOOK_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
                   (stream, mode), return engine.begin_capture(on(stream), real);)

LIBSWAP_HOOK_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
                   (CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                    const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode),
                   (stream, graph, dependencies, edges, count, mode),
                   return engine.begin_capture(on(stream), real);)

LIBSWAP_HOOK_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* graph), (stream, graph),
                   return engine.end_capture(on(stream), real);)

LIBSWAP_HOOK_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec graph, CUstream stream), (graph, stream),
                   return engine.graph_launch(graph, on(stream), real);)

LIBSWAP_HOOK(cuGraphInstantiate,
             (CUgraphExec * exec, CUgraph graph, CUgraphNode* error, char* log, size_t log_bytes),
             (exec, graph, error, log, log_bytes),
             return engine.graph_instantiate(exec, graph, real);)

LIBSWAP_HOOK(cuGraphInstantiate_v2,
             (CUgraphExec * exec, CUgraph graph, CUgraphNode* error, char* log, size_t log_bytes),
             (exec, graph, error, log, log_bytes),
             return engine.graph_instantiate(exec, graph, real);)

LIBSWAP_HOOK(cuGraphInstantiateWithFlags,
             (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags),
             return engine.graph_instantiate(exec, graph, real);)

LIBSWAP_HOOK_TWINS(cuGraphInstantiateWithParams, _ptsz,
                   (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                   (exec, graph, params), return engine.graph_instantiate(exec, graph, real);)

LIBSWAP_HOOK(cuGraphExecUpdate,
             (CUgraphExec exec, CUgraph graph, CUgraphNode* error, CUgraphExecUpdateResult* what),
             (exec, graph, error, what), return engine.graph_update(exec, graph, real);)

LIBSWAP_HOOK(cuGraphExecUpdate_v2,
             (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* what),
             (exec, graph, what), return engine.graph_update(exec, graph, real);)

LIBSWAP_HOOK(cuGraphExecDestroy, (CUgraphExec exec), (exec),
             return engine.graph_destroy(exec, real);)

LIBSWAP_HOOK(cuGraphExecKernelNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params),
             (exec, node, params), return set_node(engine, exec, node, params, real);)

LIBSWAP_HOOK(cuGraphExecKernelNodeSetParams_v2,
             (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params),
             (exec, node, params), return set_node(engine, exec, node, params, real);)

LIBSWAP_HOOK(cuGraphExecMemcpyNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context),
             (exec, node, params, context), return set_node(engine, exec, node, params, real);)

LIBSWAP_HOOK(cuGraphExecMemsetNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
              CUcontext context),
             (exec, node, params, context), return set_node(engine, exec, node, params, real);)

LIBSWAP_HOOK(cuGraphExecBatchMemOpNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params),
             (exec, node, params), return set_node(engine, exec, node, params, real);)

LIBSWAP_HOOK(cuGraphExecChildGraphNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, CUgraph child), (exec, node, child),
             return engine.graph_child_set(exec, child, real);)

LIBSWAP_HOOK(cuGraphExecNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params), (exec, node, params),
             if (!params) return real();
             if (params->type ==
                 CU_GRAPH_NODE_TYPE_GRAPH) return engine.graph_child_set(exec, params->graph.graph,
                                                                         real);
             return engine.graph_node_set(exec, node, *params, real);)

LIBSWAP_HOOK(cuGraphAddNode,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
              CUgraphNodeParams* params),
             (node, graph, dependencies, count, params),
             return note_conditional(engine, real(), node, params);)

LIBSWAP_HOOK(cuGraphAddNode_v2,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies,
              const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params),
             (node, graph, dependencies, edges, count, params),
             return note_conditional(engine, real(), node, params);)
