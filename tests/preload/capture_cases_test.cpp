// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <atomic>
#include <thread>

#include "program.hpp"

// Captures and graphs under pressure. Numbers in comments are rows of the issue log,
// docs/issue-log.md.

namespace preload_tests {
namespace {

class Capture : public Program {
  protected:
    void SetUp() override {
        Program::SetUp();
        buffers_ = fill_device();
        press(buffers_);
    }
    void TearDown() override {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        free_all(buffers_);
        Program::TearDown();
    }

    /// Captures an addition to each of the first `count` buffers.
    CUgraph capture(std::size_t count, CUstreamCaptureMode mode, unsigned value = 1) {
        CUgraph graph = nullptr;
        EXPECT_EQ(cuStreamBeginCapture(stream_, mode), CUDA_SUCCESS);
        for (std::size_t i = 0; i < count; ++i)
            EXPECT_EQ(add(buffers_[i], 4 * kMiB, value, stream_), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
        return graph;
    }
    static std::size_t nodes(CUgraph graph) {
        std::size_t count = 0;
        EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
        return count;
    }
    unsigned first_value(std::size_t i) { return 1000 + static_cast<unsigned>(i); }

    std::vector<CUdeviceptr> buffers_;
};

// 79, 82: no query, wait or event of ours gets into a capture, in any mode.
TEST_F(Capture, HasTheSameNodesInEveryMode) {
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                            CU_STREAM_CAPTURE_MODE_RELAXED}) {
        CUgraph graph = capture(buffers_.size(), mode);
        ASSERT_NE(graph, nullptr);
        EXPECT_EQ(nodes(graph), buffers_.size());
        MUST(cuGraphDestroy(graph));
    }
}

// 80: our worker is at work, and another thread's launches go on, while the capture is open.
TEST_F(Capture, StaysValidWhileMemoryMoves) {
    std::atomic<bool> stop{false};
    std::atomic<int> failed{0};
    std::thread other([&] {
        cuCtxSetCurrent(context_);
        CUstream stream = nullptr;
        if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) ++failed;
        for (unsigned i = 0; !stop; ++i)
            if (add(buffers_[8 + i % 6], 4 * kMiB, 1, stream) != CUDA_SUCCESS) ++failed;
        if (cuStreamSynchronize(stream) != CUDA_SUCCESS) ++failed;
        cuStreamDestroy(stream);
    });
    for (int i = 0; i < 10; ++i) {
        press({buffers_[0], buffers_[1], buffers_[2], buffers_[3], buffers_[4]});
        CUgraph graph = capture(4, CU_STREAM_CAPTURE_MODE_GLOBAL);
        EXPECT_NE(graph, nullptr);
        if (graph) {
            EXPECT_EQ(nodes(graph), 4u);
            MUST(cuGraphDestroy(graph));
        }
    }
    stop = true;
    other.join();
    EXPECT_EQ(failed.load(), 0);
}

TEST_F(Capture, WhatAGraphReachesIsThereAtEachLaunchAndMayLeaveInBetween) {
    CUgraph graph = capture(3, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 3; ++launch) {
        MUST(cuGraphLaunch(exec, stream_));
        press({buffers_.begin() + 3, buffers_.end()});
    }
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 3));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

TEST_F(Capture, AGraphLargerThanTheBudgetRunsAllTheSame) {
    CUgraph graph = capture(buffers_.size(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 2; ++launch) MUST(cuGraphLaunch(exec, stream_));
    for (std::size_t i = 0; i < buffers_.size(); ++i)
        EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 2));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

TEST_F(Capture, UpdatesOfAGraphAreFollowed) {
    CUgraph graph = capture(2, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream_));
    // The same shape, with the buffers behind.
    MUST(cuStreamSynchronize(stream_));
    std::rotate(buffers_.begin(), buffers_.begin() + 5, buffers_.end());
    CUgraph changed = capture(2, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraphExecUpdateResultInfo info{};
    MUST(cuGraphExecUpdate(exec, changed, &info));
    press({buffers_.begin() + 2, buffers_.end()});
    MUST(cuGraphLaunch(exec, stream_));
    EXPECT_TRUE(holds(buffers_[0], 4 * kMiB, first_value(5) + 1));
    EXPECT_TRUE(holds(buffers_[1], 4 * kMiB, first_value(6) + 1));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuGraphDestroy(changed));
}

TEST_F(Capture, ParametersOfANodeThatAreSetAreFollowed) {
    CUgraph graph = capture(1, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiate(&exec, graph, 0));
    CUgraphNode node = nullptr;
    std::size_t count = 1;
    MUST(cuGraphGetNodes(graph, &node, &count));
    CUDA_KERNEL_NODE_PARAMS params{};
    MUST(cuGraphKernelNodeGetParams(node, &params));
    CUdeviceptr buffer = buffers_[7];
    unsigned words = static_cast<unsigned>(4 * kMiB / 4 / kStride);
    unsigned stride = kStride;
    unsigned value = 5;
    void* arguments[] = {&buffer, &words, &stride, &value};
    params.kernelParams = arguments;
    params.extra = nullptr;
    MUST(cuGraphExecKernelNodeSetParams(exec, node, &params));
    press({buffers_.begin(), buffers_.begin() + 6});
    MUST(cuGraphLaunch(exec, stream_));
    EXPECT_TRUE(holds(buffers_[7], 4 * kMiB, first_value(7) + 5));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

TEST_F(Capture, ClonesAndChildGraphsAreFollowed) {
    CUgraph graph = capture(2, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraph clone = nullptr;
    CUgraph parent = nullptr;
    CUgraphNode first = nullptr;
    CUgraphNode second = nullptr;
    MUST(cuGraphClone(&clone, graph));
    MUST(cuGraphCreate(&parent, 0));
    MUST(cuGraphAddChildGraphNode(&first, parent, nullptr, 0, graph));
    MUST(cuGraphAddChildGraphNode(&second, parent, &first, 1, clone));
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiate(&exec, parent, 0));
    press({buffers_.begin() + 2, buffers_.end()});
    MUST(cuGraphLaunch(exec, stream_));
    for (std::size_t i = 0; i < 2; ++i)
        EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 2));
    MUST(cuGraphExecDestroy(exec));
    for (CUgraph made : {graph, clone, parent}) MUST(cuGraphDestroy(made));
}

// 83, 84: allocating while a stream is captured is allowed where the driver allows it.
TEST_F(Capture, AllocatesInACaptureAsTheDriverWould) {
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                            CU_STREAM_CAPTURE_MODE_RELAXED}) {
        const bool allowed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        CUgraph graph = nullptr;
        CUdeviceptr buffer = 0;
        CUstreamCaptureMode thread_mode = mode;
        MUST(cuThreadExchangeStreamCaptureMode(&thread_mode));
        MUST(cuStreamBeginCapture(stream_, mode));
        EXPECT_EQ(cuMemAlloc(&buffer, 3 * kMiB),
                  allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        EXPECT_EQ(cuStreamEndCapture(stream_, &graph),
                  allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        MUST(cuThreadExchangeStreamCaptureMode(&thread_mode));
        if (graph) {
            MUST(cuGraphDestroy(graph));
        }
        if (buffer) {
            MUST(cuMemFree(buffer));
        }
    }
}

TEST_F(Capture, FreesInACaptureAsTheDriverWould) {
    const CUdeviceptr buffer = alloc(3 * kMiB);
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(cuMemFree(buffer), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
}

}  // namespace
}  // namespace preload_tests
