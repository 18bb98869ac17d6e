// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <thread>
#include <vector>

#include "gpu_fixture.hpp"

/// Two streams that do not wait for the legacy one, some memory, and short ways to capture.
class GraphGpu : public Gpu {
  protected:
    static constexpr unsigned kWords = 1024;

    void SetUp() override {
        Gpu::SetUp();
        ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ASSERT_CU(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
        ASSERT_CU(cuMemAlloc(&memory, kWords * 4));
        ASSERT_CU(cuMemAlloc(&second, kWords * 4));
        ASSERT_CU(cuMemsetD32(memory, 0, kWords));
        ASSERT_CU(cuMemsetD32(second, 0, kWords));
        ASSERT_CU(cuCtxSynchronize());
    }

    static CUstreamCaptureStatus status_of(CUstream of) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        EXPECT_CU(CUDA_SUCCESS, cuStreamIsCapturing(of, &status));
        return status;
    }

    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
        ASSERT_CU(cuStreamBeginCapture(stream, mode));
    }

    /// Ends a capture that something has invalidated.
    void end_invalidated() {
        CUgraph graph = reinterpret_cast<CUgraph>(this);
        EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, status_of(stream));
        EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
        EXPECT_EQ(nullptr, graph);
        EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status_of(stream));
    }

    static void drop(CUgraph graph) { EXPECT_CU(CUDA_SUCCESS, cuGraphDestroy(graph)); }

    CUgraph end() {
        CUgraph graph = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
        return graph;
    }

    static std::vector<CUgraphNode> nodes_of(CUgraph graph) {
        std::size_t count = 0;
        EXPECT_CU(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
        std::vector<CUgraphNode> nodes(count);
        EXPECT_CU(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes.data(), &count));
        return nodes;
    }

    static std::vector<CUgraphNode> before(CUgraphNode node) {
        std::size_t count = 0;
        EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetDependencies(node, nullptr, nullptr, &count));
        std::vector<CUgraphNode> nodes(count);
        EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetDependencies(node, nodes.data(), nullptr, &count));
        return nodes;
    }

    static CUgraphNodeType kind_of(CUgraphNode node) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetType(node, &type));
        return type;
    }

    static std::vector<CUgraphNodeType> kinds_of(CUgraph graph) {
        std::vector<CUgraphNodeType> kinds;
        for (CUgraphNode node : nodes_of(graph)) kinds.push_back(kind_of(node));
        return kinds;
    }

    static CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
        CUgraphExec exec = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuGraphInstantiate(&exec, graph, flags));
        return exec;
    }

    /// Launches and waits.
    void run(CUgraphExec exec) {
        EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
        EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    }

    /// Launches once, waits, and gives everything back.
    void run_once(CUgraph graph) {
        CUgraphExec exec = instantiate(graph);
        run(exec);
        EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
        drop(graph);
    }

    /// For a kernel node that stores `value` to `count` words at `out`; the arguments are kept
    /// here.
    CUDA_KERNEL_NODE_PARAMS filling(CUdeviceptr out, unsigned value, unsigned count) {
        out_ = out;
        value_ = value;
        count_ = count;
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = function("fill");
        params.gridDimX = (count + 127) / 128;
        params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = 128;
        params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = arguments_;
        return params;
    }

    CUgraphNode add_fill(CUgraph graph, CUdeviceptr out, unsigned value, unsigned count,
                         const std::vector<CUgraphNode>& after = {}) {
        CUgraphNode node = nullptr;
        CUDA_KERNEL_NODE_PARAMS params = filling(out, value, count);
        EXPECT_CU(CUDA_SUCCESS,
                  cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
        return node;
    }

    CUstream stream = nullptr, other = nullptr;
    CUevent event = nullptr, joined = nullptr;
    CUdeviceptr memory = 0, second = 0;

  private:
    CUdeviceptr out_ = 0;
    unsigned value_ = 0, count_ = 0;
    void* arguments_[3] = {&out_, &value_, &count_};
};
