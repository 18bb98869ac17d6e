// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/driver/graph/graph.hpp"
#include "simgpu/driver/stream.hpp"

// Stream capture. A *sequence* is what one cuStreamBeginCapture started; streams take *part* in it,
// the first because it was begun there, others because they waited for an event recorded in it.
// Functions take graphs_lock() themselves unless they say otherwise, and cost one load while
// nothing is being captured. @thread any

namespace simgpu::driver {

/// What one cuStreamBeginCapture started, up to its cuStreamEndCapture.
struct CaptureSequence {
    cuuint64_t id = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    pid_t thread = 0;
    const simgpu::Stream* origin = nullptr;
    std::shared_ptr<Graph> graph;
    bool into_existing = false;  ///< The graph was the program's before.
    bool invalidated = false;
    bool over = false;
};

/// A stream's part in a sequence.
struct StreamCapture {
    std::shared_ptr<CaptureSequence> sequence;
    StreamRef stream;
    bool blocking = false;
    std::vector<GraphEdge> dependencies;  ///< Of what is captured next in the stream.
    bool set_by_hand =
        false;  ///< By cuStreamUpdateCaptureDependencies, and nothing captured since.
    std::vector<CUgraphNode> shown_nodes;  ///< As cuStreamGetCaptureInfo last told.
    std::vector<CUgraphEdgeData> shown_edges;
};

/// What an event recorded in a capturing stream stands for.
struct CapturedRecord {
    std::shared_ptr<CaptureSequence> sequence;
    std::vector<GraphEdge> dependencies;
};

/// Adds a node behind what the stream has captured so far; `stream.capture` must not be null.
CUresult capture_task(const StreamRef& stream, Task task);
/// The same for several at once, which do not wait for each other.
CUresult capture_tasks(const StreamRef& stream, std::vector<Task> tasks);

/// Invalidates the stream's capture and returns `code`, for what cannot be captured.
CUresult refuse_capture(const StreamRef& stream, CUresult code);
/// refuse_capture with STREAM_CAPTURE_UNSUPPORTED where the stream captures, else SUCCESS.
CUresult refuse_where_captured(const StreamRef& stream);

/// For calls that a capture cannot see: STREAM_CAPTURE_UNSUPPORTED, and the captures in the way are
/// invalidated, unless the calling thread's mode allows them (cuThreadExchangeStreamCaptureMode).
CUresult check_unsafe_call();
/// For calls that wait for all of a context: also where one of its streams captures.
CUresult check_context_wait(const Context& context);

/// The calling thread's mode.
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

/// For cuEventRecord in a stream that captures.
void capture_record(const StreamRef& stream, EventObject& event);
/// For cuStreamWaitEvent: `done` when the event or the stream is part of a capture and nothing is
/// left to do.
CUresult capture_wait(const StreamRef& stream, EventObject& event, bool& done);
/// For cuEventRecord elsewhere.
void forget_captured_record(EventObject& event);
/// CAPTURED_EVENT, and the capture is invalidated, where the event was last recorded in one.
CUresult check_event_not_captured(EventObject& event);

/// A context or a stream goes away: its captures end, and what they were building with them.
void drop_captures_of(const Context& context);

}  // namespace simgpu::driver
