// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a stream captures, and what breaks a capture.

#include <cstring>
#include <functional>

#include "graph_fixture.hpp"

using Capture = GraphGpu;

namespace {

void in_thread(CUcontext context, const std::function<void()>& body) {
    std::thread([&] {
        EXPECT_CU(CUDA_SUCCESS, cuCtxSetCurrent(context));
        body();
    }).join();
}

void bump(void* counter) { ++*static_cast<int*>(counter); }

}  // namespace

TEST_F(Capture, RunsNothingUntilTheGraphIsLaunched) {
    begin();
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status_of(stream));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 7, kWords, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory, kWords * 4, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD32Async(memory, 9, 1, stream));
    CUgraph graph = end();
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status_of(stream));
    EXPECT_EQ(0u, word_at(memory));
    EXPECT_EQ((std::vector{CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                           CU_GRAPH_NODE_TYPE_MEMSET}),
              kinds_of(graph));
    run_once(graph);
    EXPECT_EQ(9u, word_at(memory));
    EXPECT_EQ(7u, word_at(memory + 4));
    EXPECT_EQ(7u, word_at(second + (kWords - 1) * 4));
}

TEST_F(Capture, NodesOfAStreamFollowEachOther) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 1, 8, stream));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 2, 8, stream));
    CUgraph graph = end();
    const auto nodes = nodes_of(graph);
    ASSERT_EQ(2u, nodes.size());
    EXPECT_TRUE(before(nodes[0]).empty());
    EXPECT_EQ(std::vector{nodes[0]}, before(nodes[1]));
    drop(graph);
}

TEST_F(Capture, ForksAndJoinsByEvents) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 3, 8, stream));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status_of(other));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 4, 4, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory + 16, 16, other));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(joined, other));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(stream, joined, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second + 16, memory, 16, stream));
    CUgraph graph = end();
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status_of(other));
    const auto nodes = nodes_of(graph);
    ASSERT_EQ(4u, nodes.size());
    EXPECT_EQ(std::vector{nodes[0]}, before(nodes[1]));
    EXPECT_EQ(std::vector{nodes[0]}, before(nodes[2]));
    EXPECT_EQ(2u, before(nodes[3]).size());
    run_once(graph);
    EXPECT_EQ(3u, word_at(second));
    EXPECT_EQ(4u, word_at(second + 16));
}

TEST_F(Capture, RefusesWhatWasNotJoined) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 4, 4, other));
    CUgraph graph = nullptr;
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(nullptr, graph);
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status_of(stream));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status_of(other));
}

TEST_F(Capture, EndsOnlyWhereItBegan) {
    CUgraph graph = nullptr;
    EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    begin();
    EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE,
              cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph));
    end_invalidated();
}

TEST_F(Capture, EndsInTheThreadThatBeganItUnlessRelaxed) {
    begin();
    in_thread(context, [&] {
        CUgraph graph = nullptr;
        EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(stream, &graph));
    });
    drop(end());
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    in_thread(context, [&] {
        CUgraph graph = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
        drop(graph);
    });
}

TEST_F(Capture, RefusesTheLegacyStream) {
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

TEST_F(Capture, PerThreadStreamCanBeCaptured) {
    ASSERT_CU(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 5, 8, CU_STREAM_PER_THREAD));
    CUgraph graph = nullptr;
    EXPECT_CU(CUDA_SUCCESS, cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    run_once(graph);
    EXPECT_EQ(5u, word_at(memory));
}

TEST_F(Capture, LegacyStreamMayNotWaitForIt) {
    CUstream blocking = nullptr;
    ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    ASSERT_CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(nullptr, &status));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status_of(blocking));
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, fill(memory, 1, 8, nullptr));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, status_of(blocking));
    CUgraph graph = nullptr;
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 1, 8, nullptr));
}

TEST_F(Capture, LegacyStreamIsFreeBesideOneThatDoesNotBlock) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 6, 8, nullptr));
    drop(end());
    EXPECT_EQ(6u, word_at(memory));
}

TEST_F(Capture, DependsOnNothingOutside) {
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, other));
    begin();
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, event, 0));
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, fill(memory, 1, 8, stream));
    end_invalidated();
}

TEST_F(Capture, RefusesToMergeTwo) {
    begin();
    ASSERT_CU(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, other));
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(stream, event, 0));
    CUgraph graph = nullptr;
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(other, &graph));
    end_invalidated();
}

TEST_F(Capture, StreamAndEventCannotBeWaitedFor) {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    end_invalidated();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    end_invalidated();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    end_invalidated();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    end_invalidated();
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_SUCCESS, cuEventSynchronize(event));
}

TEST_F(Capture, CallbacksCannotBeCaptured) {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              cuStreamAddCallback(
                  stream, [](CUstream, CUresult, void*) {}, nullptr, 0));
    end_invalidated();
}

TEST_F(Capture, HostFunctionsRunAtEachLaunch) {
    int calls = 0;
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuLaunchHostFunc(stream, bump, &calls));
    CUgraph graph = end();
    EXPECT_EQ(0, calls);
    CUgraphExec exec = instantiate(graph);
    run(exec);
    run(exec);
    EXPECT_EQ(2, calls);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    drop(graph);
}

TEST_F(Capture, AllocationIsAllowedOnlyWhenRelaxed) {
    CUdeviceptr va = 0;
    void* host = nullptr;
    for (CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
        begin(mode);
        EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&va, 4096));
        end_invalidated();
        begin(mode);
        EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemHostAlloc(&host, 4096, 0));
        end_invalidated();
    }
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, 4096));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    drop(end());
}

TEST_F(Capture, OtherThreadsAreHeldOnlyByGlobalOnes) {
    CUdeviceptr va = 0;
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    in_thread(context, [&] {
        EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, 4096));
        EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    });
    drop(end());
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    in_thread(context,
              [&] { EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&va, 4096)); });
    end_invalidated();
}

TEST_F(Capture, ThreadsModeAllowsWhatItSays) {
    CUdeviceptr va = 0;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    in_thread(context, [&] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, mode);
        EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, 4096));
    });
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, mode);
    drop(end());
    mode = static_cast<CUstreamCaptureMode>(7);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
}

TEST_F(Capture, EventQueryElsewhereNeedsTheRightMode) {
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, other));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(other));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    in_thread(context, [&] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_CU(CUDA_SUCCESS, cuEventQuery(event));
        EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
    });
    end_invalidated();
}

TEST_F(Capture, InfoTellsGraphAndDependencies) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    std::size_t count = 99;
    EXPECT_CU(CUDA_SUCCESS,
              cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 1, 8, stream));
    EXPECT_CU(CUDA_SUCCESS,
              cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    EXPECT_NE(0u, id);
    ASSERT_EQ(1u, count);
    EXPECT_EQ(nodes_of(graph)[0], nodes[0]);
    CUgraphNode extra = nullptr;
    EXPECT_CU(CUDA_SUCCESS, cuGraphAddEmptyNode(&extra, graph, nodes, count));
    EXPECT_CU(CUDA_SUCCESS, cuStreamUpdateCaptureDependencies(stream, &extra, nullptr, 1,
                                                              CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 2, 8, stream));
    EXPECT_EQ(graph, end());
    EXPECT_EQ(std::vector{extra}, before(nodes_of(graph)[2]));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE,
              cuStreamUpdateCaptureDependencies(stream, &extra, nullptr, 1, 0));
    drop(graph);
}

TEST_F(Capture, IntoAGraphThatExists) {
    CUgraph graph = nullptr;
    ASSERT_CU(cuGraphCreate(&graph, 0));
    CUgraphNode first = add_fill(graph, memory, 11, 8);
    ASSERT_CU(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory, 32, stream));
    CUgraphExec exec = nullptr;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(graph, end());
    EXPECT_EQ(std::vector{first}, before(nodes_of(graph)[1]));
    run_once(graph);
    EXPECT_EQ(11u, word_at(second));
}

TEST_F(Capture, ExternalEventsBecomeNodes) {
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(stream, joined, CU_EVENT_WAIT_EXTERNAL));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    CUgraph graph = end();
    EXPECT_EQ((std::vector{CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD}),
              kinds_of(graph));
    run_once(graph);
    EXPECT_CU(CUDA_SUCCESS, cuEventQuery(event));
}

TEST_F(Capture, LaunchedGraphsBecomeChildren) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 21, 8, stream));
    CUgraph inner = end();
    CUgraphExec exec = instantiate(inner);
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory, 32, stream));
    CUgraph outer = end();
    EXPECT_EQ((std::vector{CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_MEMCPY}), kinds_of(outer));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    drop(inner);
    run_once(outer);
    EXPECT_EQ(21u, word_at(second));
}

TEST_F(Capture, StreamMemoryOperationsBecomeNodes) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuStreamWriteValue32(stream, memory, 77, 0));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitValue32(stream, memory, 77, CU_STREAM_WAIT_VALUE_EQ));
    CUgraph graph = end();
    EXPECT_EQ((std::vector{CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}),
              kinds_of(graph));
    run_once(graph);
    EXPECT_EQ(77u, word_at(memory));
}

TEST_F(Capture, StreamThatCapturesIsNotDestroyed) {
    begin();
    EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamDestroy(stream));
    end_invalidated();
}

TEST_F(Capture, ContextMayGoAwayWithOneOpen) {
    CUcontext gone = nullptr;
    CUstream in_gone = nullptr;
    ASSERT_CU(cuCtxCreate(&gone, nullptr, 0, device));
    ASSERT_CU(cuStreamCreate(&in_gone, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuStreamBeginCapture(in_gone, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASSERT_CU(cuCtxDestroy(gone));
    CUdeviceptr va = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, 4096));
}

TEST_F(Capture, LaunchAttributesStayWithTheNode) {
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    attributes[0].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attributes;
    unsigned value = 3;
    unsigned count = 8;
    void* arguments[] = {&memory, &value, &count};
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 1, 8, stream));
    config.numAttrs = 2;
    EXPECT_CU(CUDA_SUCCESS, cuLaunchKernelEx(&config, function("fill"), arguments, nullptr));
    CUgraph graph = end();
    const auto nodes = nodes_of(graph);
    ASSERT_EQ(2u, nodes.size());
    CUlaunchAttributeValue shown{};
    EXPECT_CU(CUDA_SUCCESS,
              cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &shown));
    EXPECT_EQ(CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE, shown.memSyncDomain);
    CUgraphNode from = nullptr;
    CUgraphEdgeData data{};
    std::size_t edges = 1;
    EXPECT_CU(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependencies(nodes[1], &from, nullptr, &edges));
    EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetDependencies(nodes[1], &from, &data, &edges));
    EXPECT_EQ(nodes[0], from);
    EXPECT_EQ(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, data.type);
    run_once(graph);
    EXPECT_EQ(3u, word_at(memory));
}
