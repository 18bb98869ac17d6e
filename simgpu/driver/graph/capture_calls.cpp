// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The calls that begin, end, query and steer a capture.

#include <unistd.h>

#include <algorithm>
#include <unordered_set>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture_table.hpp"

namespace simgpu::driver {
namespace {

bool known_mode(unsigned mode) {
    static_assert(CU_STREAM_CAPTURE_MODE_GLOBAL == 0);
    return mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult begin(CUstream handle, DefaultStream default_stream, CUstreamCaptureMode mode,
               std::shared_ptr<Graph> existing, std::vector<GraphEdge> dependencies) {
    static cuuint64_t last_id = 0;  // under the lock
    StreamRef stream;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    if (!known_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
    if (stream.stream == &stream.context->device().legacy_stream())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (capture_part(*stream.stream) != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    auto sequence = std::make_shared<CaptureSequence>();
    sequence->id = ++last_id;
    sequence->mode = mode;
    sequence->thread = gettid();
    sequence->origin = stream.stream;
    sequence->into_existing = existing != nullptr;
    sequence->graph = existing != nullptr ? std::move(existing) : Graph::create();
    ++sequence->graph->captures;
    join_capture(stream, std::move(sequence), std::move(dependencies));
    return CUDA_SUCCESS;
}

CUresult begin_new(CUstream handle, DefaultStream default_stream, CUstreamCaptureMode mode) {
    std::lock_guard lock(graphs_lock());
    return begin(handle, default_stream, mode, nullptr, {});
}

CUresult begin_in_graph(CUstream handle, CUgraph graph_handle, const CUgraphNode* nodes,
                        const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode,
                        DefaultStream default_stream) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    std::vector<GraphEdge> dependencies;
    SIMGPU_TRY(find_graph(graph_handle, graph));
    SIMGPU_TRY(read_edges(*graph, nodes, data, count, dependencies));
    return begin(handle, default_stream, mode, std::move(graph), std::move(dependencies));
}

/// Every node that one of `edges` is, or comes after.
std::unordered_set<const GraphNode*> ancestors(const std::vector<GraphEdge>& edges) {
    std::unordered_set<const GraphNode*> seen;
    std::vector<const GraphNode*> open;
    for (const GraphEdge& edge : edges) open.push_back(edge.from);
    while (!open.empty()) {
        const GraphNode* node = open.back();
        open.pop_back();
        if (!seen.insert(node).second) continue;
        for (const GraphEdge& edge : node->dependencies) open.push_back(edge.from);
    }
    return seen;
}

/// Whether some stream's work has not come back to the stream where the capture began.
bool unjoined(const StreamCapture& origin) {
    const auto joined = ancestors(origin.dependencies);
    for (const auto& [key, part] : capture_parts()) {
        if (part->sequence != origin.sequence || part->set_by_hand) continue;
        for (const GraphEdge& edge : part->dependencies) {
            if (joined.count(edge.from) == 0) return true;
        }
    }
    return false;
}

CUresult end(CUstream handle, DefaultStream default_stream, CUgraph* out) {
    StreamRef stream;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    std::lock_guard lock(graphs_lock());
    const auto part = capture_part(*stream.stream);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    if (part == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    const auto sequence = part->sequence;
    if (sequence->origin != stream.stream) {
        sequence->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (sequence->mode != CU_STREAM_CAPTURE_MODE_RELAXED && sequence->thread != gettid())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = CUDA_SUCCESS;
    if (sequence->invalidated) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (unjoined(*part)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    const auto graph = end_sequence(*sequence);
    if (result == CUDA_SUCCESS) {
        *out = graph->handle();
    } else if (!sequence->into_existing) {
        graph->forget_handles();
    }
    return result;
}

CUstreamCaptureStatus status_of(const std::shared_ptr<StreamCapture>& part) {
    if (part == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
    return part->sequence->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct Question {
    CUstreamCaptureStatus* status;
    cuuint64_t* id;
    CUgraph* graph;
    const CUgraphNode** dependencies;
    const CUgraphEdgeData** edges;
    std::size_t* count;
};

CUresult answer(CUstream handle, DefaultStream default_stream, const Question& ask) {
    StreamRef stream;
    if (ask.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (ask.edges != nullptr && ask.dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    std::lock_guard lock(graphs_lock());
    if (conflicts_with_legacy(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const auto part = capture_part(*stream.stream);
    *ask.status = status_of(part);
    if (*ask.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    part->shown_nodes.clear();
    part->shown_edges.clear();
    bool plain = true;
    for (const GraphEdge& edge : part->dependencies) {
        part->shown_nodes.push_back(edge.from->handle());
        part->shown_edges.push_back(edge.data);
        plain &= edge.data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
    }
    if (ask.dependencies != nullptr && ask.edges == nullptr && !plain)
        return CUDA_ERROR_LOSSY_QUERY;
    if (ask.id != nullptr) *ask.id = part->sequence->id;
    if (ask.graph != nullptr) *ask.graph = part->sequence->graph->handle();
    if (ask.dependencies != nullptr) *ask.dependencies = part->shown_nodes.data();
    if (ask.edges != nullptr) *ask.edges = part->shown_edges.data();
    if (ask.count != nullptr) *ask.count = part->shown_nodes.size();
    return CUDA_SUCCESS;
}

CUresult update(CUstream handle, DefaultStream default_stream, const CUgraphNode* nodes,
                const CUgraphEdgeData* data, std::size_t count, unsigned flags) {
    StreamRef stream;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    std::lock_guard lock(graphs_lock());
    const auto part = capture_part(*stream.stream);
    if (part == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (part->sequence->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphEdge> given;
    SIMGPU_TRY(read_edges(*part->sequence->graph, nodes, data, count, given));
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        part->dependencies = std::move(given);
        part->set_by_hand = true;
        return CUDA_SUCCESS;
    }
    for (const GraphEdge& edge : given) {
        const bool known =
            std::any_of(part->dependencies.begin(), part->dependencies.end(),
                        [&](const GraphEdge& other) { return other.from == edge.from; });
        if (!known) part->dependencies.push_back(edge);
    }
    return CUDA_SUCCESS;
}

CUresult exchange(CUstreamCaptureMode* mode) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!known_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    *mode = exchange_capture_mode(*mode);
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTSZ(cuStreamBeginCapture, (CUstream stream), {
    return driver::begin_new(stream, default_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
})
SIMGPU_CALL_PTSZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
                 { return driver::begin_new(stream, default_stream, mode); })
SIMGPU_CALL_PTSZ(cuStreamBeginCaptureToGraph,
                 (CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                  const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode),
                 {
                     return driver::begin_in_graph(stream, graph, dependencies, data, count, mode,
                                                   default_stream);
                 })
SIMGPU_CALL_PTSZ(cuStreamEndCapture, (CUstream stream, CUgraph* out),
                 { return driver::end(stream, default_stream, out); })
SIMGPU_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
            { return driver::exchange(mode); })
SIMGPU_CALL_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), {
    return driver::answer(stream, default_stream,
                          {status, nullptr, nullptr, nullptr, nullptr, nullptr});
})
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id), {
                     return driver::answer(stream, default_stream,
                                           {status, id, nullptr, nullptr, nullptr, nullptr});
                 })
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo_v2,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                  const CUgraphNode** dependencies, size_t* count),
                 {
                     return driver::answer(stream, default_stream,
                                           {status, id, graph, dependencies, nullptr, count});
                 })
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo_v3,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                  const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count),
                 {
                     return driver::answer(stream, default_stream,
                                           {status, id, graph, dependencies, edges, count});
                 })
SIMGPU_CALL_PTSZ(cuStreamUpdateCaptureDependencies,
                 (CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags),
                 { return driver::update(stream, default_stream, nodes, nullptr, count, flags); })
SIMGPU_CALL_PTSZ(cuStreamUpdateCaptureDependencies_v2,
                 (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                  unsigned flags),
                 { return driver::update(stream, default_stream, nodes, data, count, flags); })
