// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <unordered_set>
#include <vector>

#include "simgpu/device/graph.hpp"
#include "simgpu/driver/graph/graph.hpp"

namespace simgpu::driver {

/// A graph as the device runs it, the graphs inside spread out; nodes in `disabled` only keep their
/// place. The graph must have no cycle.
std::vector<GraphStep> steps_of(const Graph& graph,
                                const std::unordered_set<const GraphNode*>& disabled);

}  // namespace simgpu::driver
