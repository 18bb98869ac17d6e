// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "simgpu/device/operation.hpp"

namespace simgpu::driver {

struct Context;
struct EventObject;
struct KernelCall;
class Graph;
class GraphMemory;
class Condition;

// What a node of a graph does, by the kinds of CUgraphNodeType.

struct KernelTask {
    std::shared_ptr<const KernelCall> call;
    std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
};

struct CopyTask {
    CUDA_MEMCPY3D parameters{};
    CopyRequest request;
    Context* context = nullptr;
};

struct MemsetTask {
    MemsetRequest request;
    Context* context = nullptr;
};

struct HostTask {
    CUhostFn function = nullptr;
    void* data = nullptr;
};

struct ChildTask {
    std::shared_ptr<Graph> graph;
    CUgraphChildGraphNodeOwnership ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
};

struct EmptyTask {};

struct EventRecordTask {
    std::shared_ptr<EventObject> event;
};

struct EventWaitTask {
    std::shared_ptr<EventObject> event;
};

struct AllocTask {
    std::shared_ptr<GraphMemory> memory;
};

struct FreeTask {
    CUdeviceptr va = 0;
};

struct MemOpTask {
    Context* context = nullptr;
    std::vector<CUstreamBatchMemOpParams> operations;
    unsigned flags = 0;
};

struct ConditionalTask {
    std::shared_ptr<Condition> condition;
    CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
    std::vector<std::shared_ptr<Graph>> bodies;
    std::vector<CUgraph> handles;  ///< Of the bodies, for who asks.
    Context* context = nullptr;
};

using Task =
    std::variant<KernelTask, CopyTask, MemsetTask, HostTask, ChildTask, EmptyTask, EventWaitTask,
                 EventRecordTask, AllocTask, FreeTask, MemOpTask, ConditionalTask>;

CUgraphNodeType type_of(const Task& task);

}  // namespace simgpu::driver
