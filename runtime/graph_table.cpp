// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/graph_table.hpp"

#include <algorithm>

#include "runtime/host_memory.hpp"
#include "runtime/pointer_edges.hpp"

namespace libswap {
namespace {

struct Side {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::size_t x, y, z, pitch, height;

    bool may_be_ours() const noexcept {
        return type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_ARRAY;
    }
    Rows rows(const CUDA_MEMCPY3D& shape) const noexcept {
        const std::size_t row = pitch ? pitch : shape.WidthInBytes;
        const std::size_t slice = row * (height ? height : shape.Height);
        const std::uint64_t base =
            type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(host) : device;
        return {base + x + y * row + z * slice,
                shape.WidthInBytes,
                shape.Height,
                row,
                shape.Depth,
                slice};
    }
};

}  // namespace

bool GraphReader::possible(const Driver& driver) noexcept {
    return driver.cuGraphGetNodes && driver.cuGraphNodeGetType &&
           driver.cuGraphKernelNodeGetParams && driver.cuGraphMemcpyNodeGetParams &&
           driver.cuGraphMemsetNodeGetParams && driver.cuGraphChildGraphNodeGetGraph;
}

bool GraphReader::is_ours(std::uint64_t address) const noexcept {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
        return address - range.first < range.second - range.first;
    });
}

void GraphReader::add(NodeReach& reach, std::uint64_t address, std::uint64_t bytes) {
    if (!is_ours(address)) return;
    const bool there =
        std::any_of(reach.reaches.begin(), reach.reaches.end(),
                    [&](const GraphReach& r) { return r.address == address && r.bytes == bytes; });
    if (!there) reach.reaches.push_back({address, bytes});
}

NodeReach GraphReader::kernel(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    NodeReach reach;
    const CUfunction function =
        params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
    reach.function = functions_.find(function);
    reach.known = reach.function && reach.function->layout_known;
    if (!reach.known) return reach;
    for_each_parameter_word(*reach.function, params.kernelParams, params.extra,
                            [&](std::uint64_t word) { add(reach, word, 0); });
    return reach;
}

NodeReach GraphReader::copy(const CUDA_MEMCPY3D& params) {
    NodeReach reach;
    const Side dst{params.dstMemoryType, params.dstHost, params.dstDevice, params.dstXInBytes,
                   params.dstY,          params.dstZ,    params.dstPitch,  params.dstHeight};
    const Side src{params.srcMemoryType, params.srcHost, params.srcDevice, params.srcXInBytes,
                   params.srcY,          params.srcZ,    params.srcPitch,  params.srcHeight};
    const Rows to = dst.rows(params);
    const Rows from = src.rows(params);
    if (dst.may_be_ours()) add(reach, to.base, to.span_bytes());
    if (src.may_be_ours()) add(reach, from.base, from.span_bytes());
    if (!dst.may_be_ours() || src.type == CU_MEMORYTYPE_ARRAY || to.bytes() == 0) return reach;
    const bool from_host = src.type == CU_MEMORYTYPE_HOST ||
                           (src.type == CU_MEMORYTYPE_UNIFIED && !is_ours(from.base) &&
                            is_host_pointer(driver_, from.base));
    if (!from_host || to.bytes() <= PointerEdges::kMaxPayloadBytes)
        reach.copies.push_back({to, from, from_host});
    return reach;
}

NodeReach GraphReader::fill(const CUDA_MEMSET_NODE_PARAMS& params) {
    NodeReach reach;
    const std::size_t width = params.width * params.elementSize;
    if (params.height == 0 || width == 0) return reach;
    add(reach, params.dst, params.height > 1 ? (params.height - 1) * params.pitch + width : width);
    return reach;
}

NodeReach GraphReader::operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params) {
    NodeReach reach;
    for (unsigned i = 0; i < params.count; ++i) {
        const CUstreamBatchMemOpParams& operation = params.paramArray[i];
        if (operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
            operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
            add(reach, operation.waitValue.address, 8);
        if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
            operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            add(reach, operation.writeValue.address, 8);
        if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            reach.words.push_back({operation.writeValue.address, operation.writeValue.value64});
    }
    return reach;
}

NodeReach GraphReader::any(const CUgraphNodeParams& params) {
    NodeReach reach;
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS_v2 plain{};
            plain.func = params.kernel.func;
            plain.kern = params.kernel.kern;
            plain.kernelParams = params.kernel.kernelParams;
            plain.extra = params.kernel.extra;
            return kernel(plain);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return copy(params.memcpy.copyParams);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS plain{};
            plain.dst = params.memset.dst;
            plain.pitch = params.memset.pitch;
            plain.elementSize = params.memset.elementSize;
            plain.width = params.memset.width;
            plain.height = params.memset.height;
            return fill(plain);
        }
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
            CUDA_BATCH_MEM_OP_NODE_PARAMS plain{};
            plain.count = params.memOp.count;
            plain.paramArray = params.memOp.paramArray;
            return operations(plain);
        }
        case CU_GRAPH_NODE_TYPE_GRAPH:
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            reach.known = false;
            return reach;
        default:
            return reach;
    }
}

NodeReach GraphTable::read_node(CUgraphNode node, GraphReader& reader, GraphExec* exec, int depth) {
    NodeReach unknown;
    unknown.known = false;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver_.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return unknown;
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS_v2 params{};
            return driver_.cuGraphKernelNodeGetParams(node, &params) == CUDA_SUCCESS
                       ? reader.kernel(params)
                       : unknown;
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            CUDA_MEMCPY3D params{};
            return driver_.cuGraphMemcpyNodeGetParams(node, &params) == CUDA_SUCCESS
                       ? reader.copy(params)
                       : unknown;
        }
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS params{};
            return driver_.cuGraphMemsetNodeGetParams(node, &params) == CUDA_SUCCESS
                       ? reader.fill(params)
                       : unknown;
        }
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
            CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
            return driver_.cuGraphBatchMemOpNodeGetParams &&
                           driver_.cuGraphBatchMemOpNodeGetParams(node, &params) == CUDA_SUCCESS
                       ? reader.operations(params)
                       : unknown;
        }
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            CUgraph child = nullptr;
            if (driver_.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) return unknown;
            read(child, reader, exec, depth + 1);
            return {};
        }
        case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
            std::vector<CUgraph> bodies;
            {
                std::lock_guard lock(mutex_);
                if (const auto found = conditionals_.find(node); found != conditionals_.end())
                    bodies = found->second;
            }
            if (bodies.empty()) return unknown;  // of a clone
            for (const CUgraph body : bodies) read(body, reader, exec, depth + 1);
            return {};
        }
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            NodeReach reach;
            reach.allocates = true;
            return reach;
        }
        default:
            return {};
    }
}

void GraphTable::read(CUgraph graph, GraphReader& reader, GraphExec* exec, int depth) {
    std::size_t count = 0;
    std::vector<CUgraphNode> nodes;
    bool good =
        depth < kMaxDepth && driver_.cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS;
    if (good && count != 0) {
        nodes.resize(count);
        good = driver_.cuGraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS;
        nodes.resize(std::min(count, nodes.size()));
    }
    if (!good) exec->nodes[nullptr].known = false;
    for (const CUgraphNode node : nodes) {
        NodeReach reach = read_node(node, reader, exec, depth);
        exec->nodes[node] = std::move(reach);
    }
}

void GraphTable::instantiated(CUgraphExec exec, CUgraph graph, GraphReader& reader) {
    auto made = std::make_unique<GraphExec>();
    read(graph, reader, made.get(), 0);
    std::lock_guard lock(mutex_);
    made->serial = next_serial_++;
    execs_[exec] = std::move(made);
}

void GraphTable::node_changed(CUgraphExec exec, CUgraphNode node, NodeReach reach) {
    std::lock_guard lock(mutex_);
    const auto found = execs_.find(exec);
    if (found != execs_.end()) found.value()->nodes[node] = std::move(reach);
}

void GraphTable::child_changed(CUgraphExec exec, CUgraph graph, GraphReader& reader) {
    GraphExec part;
    read(graph, reader, &part, 1);
    std::lock_guard lock(mutex_);
    const auto found = execs_.find(exec);
    if (found == execs_.end()) return;
    // The nodes of the old child stay too: believing too much costs speed only.
    for (auto& [node, reach] : part.nodes) found.value()->nodes[node] = reach;
}

void GraphTable::destroyed(CUgraphExec exec) {
    std::lock_guard lock(mutex_);
    execs_.erase(exec);
}

void GraphTable::conditional(CUgraphNode node, const CUgraph* bodies, std::size_t count) {
    std::lock_guard lock(mutex_);
    conditionals_[node].assign(bodies, bodies + count);
}

}  // namespace libswap
