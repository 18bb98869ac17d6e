// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "simgpu/driver/graph/capture.hpp"

// Who captures what. All of it under graphs_lock(), held by the caller.

namespace simgpu::driver {

std::unordered_map<const simgpu::Stream*, std::shared_ptr<StreamCapture>>& capture_parts();

/// Null where the stream does not capture.
std::shared_ptr<StreamCapture> capture_part(const simgpu::Stream& stream);

/// From now on the stream captures.
StreamCapture& join_capture(const StreamRef& stream, std::shared_ptr<CaptureSequence> sequence,
                            std::vector<GraphEdge> dependencies);

/// All its streams are free again. Returns the graph, which events recorded meanwhile must not
/// keep.
std::shared_ptr<Graph> end_sequence(CaptureSequence& sequence);

/// Whether the stream is the legacy one, and one that it would wait for captures. Takes no lock.
bool conflicts_with_legacy(const StreamRef& stream);

}  // namespace simgpu::driver
