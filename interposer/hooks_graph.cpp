// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Capture and graphs. What a graph's nodes name stays resident for good, whichever call gave it to
// them.

namespace libswap {
namespace {

CUfunction node_function(const CUDA_KERNEL_NODE_PARAMS_v1& params) noexcept { return params.func; }

/// The newer structures name a CUfunction or, where that is null, a CUkernel.
template <class Params>
CUfunction node_function(const Params& params) noexcept {
    return params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
}

template <class Params>
CUresult kernel_node(Engine& engine, const Params* params, RealCall real) noexcept {
    if (!params) return real();
    LaunchRequest request;
    request.function = node_function(*params);
    request.params = params->kernelParams;
    request.extra = params->extra;
    return engine.node_for_good(request, real);
}

CUresult copy_node(Engine& engine, const CUDA_MEMCPY3D* params, RealCall real) noexcept {
    if (!params) return real();
    const std::uint64_t addresses[] = {params->dstDevice, params->srcDevice};
    return engine.use_for_good(addresses, 2, real);
}

CUresult fill_node(Engine& engine, CUdeviceptr dst, RealCall real) noexcept {
    const std::uint64_t address = dst;
    return engine.use_for_good(&address, 1, real);
}

CUresult fill_node(Engine& engine, const CUDA_MEMSET_NODE_PARAMS* params, RealCall real) noexcept {
    return params ? fill_node(engine, params->dst, real) : real();
}

CUresult any_node(Engine& engine, const CUgraphNodeParams* params, RealCall real) noexcept {
    if (!params) return real();
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return kernel_node(engine, &params->kernel, real);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return copy_node(engine, &params->memcpy.copyParams, real);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return fill_node(engine, params->memset.dst, real);
        default:
            return real();
    }
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

#define LIBSWAP_KERNEL_NODE_HOOKS(suffix, Params)                                              \
    LIBSWAP_HOOK(cuGraphAddKernelNode##suffix,                                                 \
                 (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies,          \
                  size_t count, const Params* params),                                         \
                 (node, graph, dependencies, count, params),                                   \
                 return kernel_node(engine, params, real);)                                    \
    LIBSWAP_HOOK(cuGraphKernelNodeSetParams##suffix, (CUgraphNode node, const Params* params), \
                 (node, params), return kernel_node(engine, params, real);)                    \
    LIBSWAP_HOOK(cuGraphExecKernelNodeSetParams##suffix,                                       \
                 (CUgraphExec graph, CUgraphNode node, const Params* params),                  \
                 (graph, node, params), return kernel_node(engine, params, real);)

LIBSWAP_KERNEL_NODE_HOOKS(, CUDA_KERNEL_NODE_PARAMS_v1)
LIBSWAP_KERNEL_NODE_HOOKS(_v2, CUDA_KERNEL_NODE_PARAMS)

LIBSWAP_HOOK(cuGraphAddMemcpyNode,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
              const CUDA_MEMCPY3D* params, CUcontext context),
             (node, graph, dependencies, count, params, context),
             return copy_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* params),
             (node, params), return copy_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphExecMemcpyNodeSetParams,
             (CUgraphExec graph, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context),
             (graph, node, params, context), return copy_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphAddMemsetNode,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context),
             (node, graph, dependencies, count, params, context),
             return fill_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params),
             (node, params), return fill_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphExecMemsetNodeSetParams,
             (CUgraphExec graph, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
              CUcontext context),
             (graph, node, params, context), return fill_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphAddNode,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
              CUgraphNodeParams* params),
             (node, graph, dependencies, count, params), return any_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphAddNode_v2,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies,
              const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params),
             (node, graph, dependencies, edges, count, params),
             return any_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* params), (node, params),
             return any_node(engine, params, real);)

LIBSWAP_HOOK(cuGraphExecNodeSetParams,
             (CUgraphExec graph, CUgraphNode node, CUgraphNodeParams* params),
             (graph, node, params), return any_node(engine, params, real);)
