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

TEST_F(Capture, AStreamThatMayNotBeDestroyedNowGoesOnAfterwards) {
    CUstream captured = nullptr;
    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamSynchronize(stream_));
    for (const CUdeviceptr buffer : buffers_) MUST(add(buffer, 4 * kMiB, 1, captured));
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(add(buffers_[0], 4 * kMiB, 1, captured));
    const CUresult destroyed = cuStreamDestroy(captured);
    if (destroyed == CUDA_SUCCESS) GTEST_SKIP() << "this driver destroys it";
    EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    for (const CUdeviceptr buffer : buffers_) MUST(add(buffer, 4 * kMiB, 1, captured));
    MUST(cuStreamSynchronize(captured));
    press(buffers_);
    for (unsigned i = 0; i < buffers_.size(); ++i)
        EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 1002)) << i;
    MUST(cuStreamDestroy(captured));
}

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

// The kind of 79 and 82: what a capture forbids is forbidden, with the driver's codes, whatever
// moves.
TEST_F(Capture, RefusesWhatTheDriverRefuses) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUevent event = nullptr;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(add(buffers_[0], 4 * kMiB, 1, stream_));
    MUST(cuEventRecord(event, stream_));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_NE(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    EXPECT_EQ(graph, nullptr);
    MUST(cuEventDestroy(event));
    press(buffers_);
}

// The kind of 80: by another thread only a relaxed capture may be ended.
TEST_F(Capture, IsEndedByTheThreadThatBeganIt) {
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        MUST(cuStreamBeginCapture(stream_, mode));
        MUST(add(buffers_[0], 4 * kMiB, 1, stream_));
        CUgraph graph = nullptr;
        CUresult result = CUDA_SUCCESS;
        std::thread([&] {
            cuCtxSetCurrent(context_);
            result = cuStreamEndCapture(stream_, &graph);
        }).join();
        if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
            MUST(result);
            EXPECT_EQ(nodes(graph), 1u);
            MUST(cuGraphDestroy(graph));
        } else {
            EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
            cuStreamEndCapture(stream_, &graph);
            if (graph) {
                MUST(cuGraphDestroy(graph));
            }
        }
    }
}

// The kind of 80: several threads capture at the same time, each its own stream, and launch.
TEST_F(Capture, OfSeveralThreadsAtOnceStaysValid) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t)
        threads.emplace_back([this, t] {
            ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
            CUstream stream = nullptr;
            ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
            for (int round = 0; round < 5; ++round) {
                CUgraph graph = nullptr;
                CUgraphExec exec = nullptr;
                ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                          CUDA_SUCCESS);
                for (std::size_t i = 0; i < 4; ++i)
                    ASSERT_EQ(add(buffers_[5 * t + i], 4 * kMiB, 1, stream), CUDA_SUCCESS);
                ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
                ASSERT_EQ(nodes(graph), 4u);
                ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
                ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
                // Both are in flight still.
                ASSERT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
                ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
            }
            ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
            ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
        });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t i = 5 * t; i < 5 * t + 4; ++i)
            EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 5));
}

// The kind of 83: memory that a graph allocates is the graph's, and its work on it is followed.
TEST_F(Capture, MemoryThatAGraphAllocatesIsThere) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr scratch = 0;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemAllocAsync(&scratch, 4 * kMiB, stream_));
    MUST(cuMemsetD32Async(scratch, 40, kMiB, stream_));
    MUST(add(scratch, 4 * kMiB, 2, stream_));
    MUST(cuMemcpyDtoDAsync(buffers_[3], scratch, 4 * kMiB, stream_));
    MUST(cuMemFreeAsync(scratch, stream_));
    MUST(cuStreamEndCapture(stream_, &graph));
    EXPECT_EQ(nodes(graph), 5u);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 3; ++launch) {
        press({buffers_.begin() + 4, buffers_.end()});
        MUST(cuGraphLaunch(exec, stream_));
        MUST(add(buffers_[3], 4 * kMiB, 1, stream_));
    }
    EXPECT_TRUE(holds(buffers_[3], 4 * kMiB, 43));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

// The kind of 79: a capture that was broken leaves the stream usable, and what moves moving.
TEST_F(Capture, ThatWasBrokenLeavesEverythingUsable) {
    for (int round = 0; round < 3; ++round) {
        CUgraph graph = nullptr;
        MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
        MUST(add(buffers_[0], 4 * kMiB, 1, stream_));
        EXPECT_NE(cuStreamSynchronize(stream_), CUDA_SUCCESS);
        EXPECT_NE(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
        press(buffers_);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
        EXPECT_TRUE(holds(buffers_[i], 4 * kMiB, first_value(i) + 3000));
}

}  // namespace
}  // namespace preload_tests
