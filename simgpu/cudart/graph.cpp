// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream capture, and graphs as wholes. Types are the driver's under other names.

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamBeginCapture, 10010, 10010), stream,
                    static_cast<CUstreamCaptureMode>(mode));
    });
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamEndCapture, 10000, 10000), stream, graph);
    });
}

cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamIsCapturing, 10000, 10000), stream,
                    reinterpret_cast<CUstreamCaptureStatus*>(status));
    });
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id, cudaGraph_t* graph,
                         const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                         size_t* count, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamGetCaptureInfo, 12030, 12030), stream,
                    reinterpret_cast<CUstreamCaptureStatus*>(status),
                    reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                    reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    });
}

cudaError_t begin_in_graph(cudaStream_t stream, cudaGraph_t graph,
                           const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* data,
                           size_t count, cudaStreamCaptureMode mode, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamBeginCaptureToGraph, 12030, 12030), stream,
                    graph, dependencies, reinterpret_cast<const CUgraphEdgeData*>(data), count,
                    static_cast<CUstreamCaptureMode>(mode));
    });
}

cudaError_t update_dependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                const cudaGraphEdgeData* data, size_t count, unsigned flags,
                                bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuStreamUpdateCaptureDependencies, 12030, 12030),
                    stream, dependencies, reinterpret_cast<const CUgraphEdgeData*>(data), count,
                    flags);
    });
}

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                        cudaGraphInstantiateParams* parameters, bool per_thread) {
    static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuGraphInstantiateWithParams, 12000, 12000),
                    executable, graph,
                    reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(parameters));
    });
}

cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuGraphLaunch, 10000, 10000), graph, stream);
    });
}

cudaError_t upload_graph(cudaGraphExec_t graph, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        return call(CUDART_DRIVER_ON(per_thread, cuGraphUpload, 11010, 11010), graph, stream);
    });
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return begin_capture(stream, mode, false);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return begin_capture(stream, mode, true);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* data, size_t count,
                                          cudaStreamCaptureMode mode) {
    return begin_in_graph(stream, graph, dependencies, data, count, mode, false);
}

cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t* dependencies,
                                               const cudaGraphEdgeData* data, size_t count,
                                               cudaStreamCaptureMode mode) {
    return begin_in_graph(stream, graph, dependencies, data, count, mode, true);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* data, size_t count,
                                                unsigned flags) {
    return update_dependencies(stream, dependencies, data, count, flags, false);
}

cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
                                                     cudaGraphNode_t* dependencies,
                                                     const cudaGraphEdgeData* data, size_t count,
                                                     unsigned flags) {
    return update_dependencies(stream, dependencies, data, count, flags, true);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    return end_capture(stream, graph, false);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
    return end_capture(stream, graph, true);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return is_capturing(stream, status, false);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return is_capturing(stream, status, true);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
    return capture_info(stream, status, id, graph, dependencies, edges, count, false);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t* graph,
                                          const cudaGraphNode_t** dependencies,
                                          const cudaGraphEdgeData** edges, size_t* count) {
    return capture_info(stream, status, id, graph, dependencies, edges, count, true);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    return on_driver([&] {
        return call(CUDART_DRIVER(cuThreadExchangeStreamCaptureMode, 10010),
                    reinterpret_cast<CUstreamCaptureMode*>(mode));
    });
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
    return on_context([&] { return call(CUDART_DRIVER(cuGraphCreate, 10000), graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return on_context([&] { return call(CUDART_DRIVER(cuGraphDestroy, 10000), graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
    return on_context([&] { return call(CUDART_DRIVER(cuGraphClone, 10000), clone, graph); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphGetNodes, 10000), graph, nodes, count); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphGetRootNodes, 10000), graph, nodes, count); });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphDebugDotPrint, 11030), graph, path, flags); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphInstantiateWithFlags, 11040), executable, graph, flags);
    });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
    return instantiate(executable, graph, parameters, false);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* parameters) {
    return instantiate(executable, graph, parameters, true);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecGetFlags, 12000), executable,
                    reinterpret_cast<cuuint64_t*>(flags));
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
    static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphExecUpdate, 12000), executable, graph,
                    reinterpret_cast<CUgraphExecUpdateResultInfo*>(result));
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return on_context([&] { return call(CUDART_DRIVER(cuGraphExecDestroy, 10000), executable); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    return launch_graph(graph, stream, false);
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t graph, cudaStream_t stream) {
    return launch_graph(graph, stream, true);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
    return upload_graph(graph, stream, false);
}

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t graph, cudaStream_t stream) {
    return upload_graph(graph, stream, true);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
    return on_context([&] { return call(CUDART_DRIVER(cuDeviceGraphMemTrim, 11040), device); });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuDeviceGetGraphMemAttribute, 11040), device,
                    static_cast<CUgraphMem_attribute>(attribute), value);
    });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuDeviceSetGraphMemAttribute, 11040), device,
                    static_cast<CUgraphMem_attribute>(attribute), value);
    });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuUserObjectCreate, 11030), object, pointer, destroy, references,
                    flags);
    });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuUserObjectRetain, 11030), object, count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuUserObjectRelease, 11030), object, count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuGraphRetainUserObject, 11030), graph, object, count, flags);
    });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuGraphReleaseUserObject, 11030), graph, object, count); });
}
