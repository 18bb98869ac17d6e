// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/capture.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "simgpu/driver/graph/capture_table.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {

namespace {

/// Streams that capture; what keeps all checks off the way of a program without captures.
std::atomic<int> g_capturing{0};

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool nothing_captures() { return g_capturing.load(std::memory_order_acquire) == 0; }

bool is_legacy(const StreamRef& stream) {
    return stream.stream == &stream.context->device().legacy_stream();
}

/// Whether the legacy stream would wait for one that captures; with `invalidate`, those are.
bool legacy_conflict(const StreamRef& stream, bool invalidate) {
    if (!is_legacy(stream)) return false;
    bool any = false;
    for (const auto& [key, part] : capture_parts()) {
        if (part->stream.context != stream.context || !part->blocking) continue;
        any = true;
        if (invalidate) part->sequence->invalidated = true;
    }
    return any;
}

void merge(std::vector<GraphEdge>& into, const std::vector<GraphEdge>& edges) {
    for (const GraphEdge& edge : edges) {
        const bool known = std::any_of(into.begin(), into.end(), [&](const GraphEdge& other) {
            return other.from == edge.from;
        });
        if (!known) into.push_back(edge);
    }
}

/// The scheduling that a captured kernel takes over from its stream.
void take_priority(const StreamRef& stream, Task& task) {
    auto* kernel = std::get_if<KernelTask>(&task);
    if (kernel == nullptr || kernel->attributes.count(CU_LAUNCH_ATTRIBUTE_PRIORITY) != 0) return;
    CUlaunchAttributeValue value{};
    value.priority = stream.stream->priority();
    kernel->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY] = value;
}

/// A kernel that may begin before the one in front of it has ended is behind it by an edge that
/// says so.
std::vector<GraphEdge> edges_for(const Task& task, std::vector<GraphEdge> edges) {
    const auto* kernel = std::get_if<KernelTask>(&task);
    if (kernel == nullptr) return edges;
    const auto found =
        kernel->attributes.find(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    const bool overlaps = found != kernel->attributes.end() &&
                          found->second.programmaticStreamSerializationAllowed != 0;
    if (!overlaps) return edges;
    for (GraphEdge& edge : edges) {
        if (!std::holds_alternative<KernelTask>(edge.from->task)) continue;
        edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    return edges;
}

CUresult find_for_work(StreamRef& out) {
    if (nothing_captures()) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    if (legacy_conflict(out, true)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    out.capture = capture_part(*out.stream);
    if (out.capture == nullptr) return CUDA_SUCCESS;
    return out.capture->sequence->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                              : CUDA_SUCCESS;
}

CUresult check_unsafe_locked() {
    if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    bool prohibited = false;
    for (const auto& [key, part] : capture_parts()) {
        CaptureSequence& sequence = *part->sequence;
        if (sequence.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        const bool own = sequence.thread == gettid();
        const bool everywhere = sequence.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!own && !everywhere) continue;
        prohibited = true;
        sequence.invalidated = true;
    }
    return prohibited ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace

std::unordered_map<const simgpu::Stream*, std::shared_ptr<StreamCapture>>& capture_parts() {
    static auto* parts =  // leaked: calls may come after static destructors
        new std::unordered_map<const simgpu::Stream*, std::shared_ptr<StreamCapture>>;
    return *parts;
}

std::shared_ptr<StreamCapture> capture_part(const simgpu::Stream& stream) {
    const auto found = capture_parts().find(&stream);
    return found != capture_parts().end() ? found->second : nullptr;
}

StreamCapture& join_capture(const StreamRef& stream, std::shared_ptr<CaptureSequence> sequence,
                            std::vector<GraphEdge> dependencies) {
    auto part = std::make_shared<StreamCapture>();
    part->sequence = std::move(sequence);
    part->stream = stream;
    part->stream.capture = nullptr;
    part->blocking = (stream.stream->flags() & CU_STREAM_NON_BLOCKING) == 0;
    part->dependencies = std::move(dependencies);
    StreamCapture& joined = *part;
    capture_parts()[stream.stream] = std::move(part);
    g_capturing = static_cast<int>(capture_parts().size());
    return joined;
}

std::shared_ptr<Graph> end_sequence(CaptureSequence& sequence) {
    sequence.over = true;
    --sequence.graph->captures;
    std::shared_ptr<Graph> graph = std::move(sequence.graph);
    std::erase_if(capture_parts(),
                  [&](const auto& entry) { return entry.second->sequence.get() == &sequence; });
    g_capturing = static_cast<int>(capture_parts().size());
    return graph;
}

bool conflicts_with_legacy(const StreamRef& stream) {
    return !nothing_captures() && legacy_conflict(stream, false);
}

CUresult find_stream_for_work(CUstream handle, DefaultStream default_stream, StreamRef& out) {
    SIMGPU_TRY(find_stream(handle, default_stream, out));
    return find_for_work(out);
}

CUresult find_stream_for_wait(CUstream handle, DefaultStream default_stream, StreamRef& out) {
    SIMGPU_TRY(find_stream(handle, default_stream, out));
    if (nothing_captures()) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    if (legacy_conflict(out, true)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (const auto part = capture_part(*out.stream)) {
        part->sequence->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return check_unsafe_locked();
}

CUresult capture_tasks(const StreamRef& stream, std::vector<Task> tasks) {
    std::lock_guard lock(graphs_lock());
    StreamCapture& part = *stream.capture;
    if (part.sequence->over || part.sequence->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<GraphEdge> added;
    for (Task& task : tasks) {
        take_priority(stream, task);
        const std::vector<GraphEdge> edges = edges_for(task, part.dependencies);
        added.push_back({&part.sequence->graph->add(std::move(task), edges), {}});
    }
    part.dependencies = std::move(added);
    part.set_by_hand = false;
    return CUDA_SUCCESS;
}

CUresult capture_task(const StreamRef& stream, Task task) {
    std::vector<Task> tasks;
    tasks.push_back(std::move(task));
    return capture_tasks(stream, std::move(tasks));
}

CUresult refuse_capture(const StreamRef& stream, CUresult code) {
    std::lock_guard lock(graphs_lock());
    stream.capture->sequence->invalidated = true;
    return code;
}

CUresult refuse_where_captured(const StreamRef& stream) {
    if (nothing_captures()) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    const auto part = capture_part(*stream.stream);
    if (part == nullptr) return CUDA_SUCCESS;
    part->sequence->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult check_unsafe_call() {
    if (nothing_captures()) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    return check_unsafe_locked();
}

CUresult check_context_wait(const Context& context) {
    if (nothing_captures()) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    bool any = false;
    for (const auto& [key, part] : capture_parts()) {
        if (part->stream.context != &context) continue;
        any = true;
        part->sequence->invalidated = true;
    }
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : check_unsafe_locked();
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) {
    return std::exchange(t_mode, mode);
}

void capture_record(const StreamRef& stream, EventObject& event) {
    std::lock_guard lock(graphs_lock());
    auto record = std::make_shared<CapturedRecord>();
    record->sequence = stream.capture->sequence;
    record->dependencies = stream.capture->dependencies;
    event.captured = std::move(record);
    event.is_captured = true;
}

void forget_captured_record(EventObject& event) {
    if (!event.is_captured.load(std::memory_order_acquire)) return;
    std::lock_guard lock(graphs_lock());
    event.captured = nullptr;
    event.is_captured = false;
}

CUresult check_event_not_captured(EventObject& event) {
    if (!event.is_captured.load(std::memory_order_acquire)) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    if (event.captured == nullptr) return CUDA_SUCCESS;
    event.captured->sequence->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult capture_wait(const StreamRef& stream, EventObject& event, bool& done) {
    const bool event_captured = event.is_captured.load(std::memory_order_acquire);
    done = stream.capture != nullptr || event_captured;
    if (!done) return CUDA_SUCCESS;
    std::lock_guard lock(graphs_lock());
    const auto record = event.captured;
    if (record == nullptr) {
        stream.capture->sequence->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    CaptureSequence& recorded = *record->sequence;
    if (stream.capture == nullptr) {
        if (recorded.over) return CUDA_ERROR_CAPTURED_EVENT;
        if (recorded.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (is_legacy(stream)) {
            recorded.invalidated = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        join_capture(stream, record->sequence, record->dependencies);
        return CUDA_SUCCESS;
    }
    CaptureSequence& own = *stream.capture->sequence;
    if (&own != &recorded) {
        own.invalidated = true;
        if (recorded.over) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        recorded.invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    merge(stream.capture->dependencies, record->dependencies);
    return CUDA_SUCCESS;
}

void drop_captures_of(const Context& context) {
    if (nothing_captures()) return;
    std::lock_guard lock(graphs_lock());
    std::vector<std::shared_ptr<CaptureSequence>> lost;
    for (const auto& [key, part] : capture_parts()) {
        const bool listed = std::find(lost.begin(), lost.end(), part->sequence) != lost.end();
        if (part->stream.context == &context && !listed) lost.push_back(part->sequence);
    }
    for (const auto& sequence : lost) {
        const auto graph = end_sequence(*sequence);
        if (!sequence->into_existing) graph->forget_handles();
    }
}

}  // namespace simgpu::driver
