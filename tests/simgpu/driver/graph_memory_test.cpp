// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory that graphs allocate and free.

#include "graph_fixture.hpp"

namespace {

class MemoryOfGraphs : public GraphGpu {
  protected:
    void SetUp() override {
        GraphGpu::SetUp();
        ASSERT_CU(cuGraphCreate(&graph, 0));
        EXPECT_CU(CUDA_SUCCESS, cuDeviceGraphMemTrim(device));
    }

    CUgraphNode add_alloc(std::size_t bytes, CUdeviceptr* va) {
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
        params.bytesize = bytes;
        CUgraphNode node = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
        EXPECT_NE(0u, params.dptr);
        *va = params.dptr;
        return node;
    }

    cuuint64_t get(CUgraphMem_attribute attribute) {
        cuuint64_t value = 0;
        EXPECT_CU(CUDA_SUCCESS, cuDeviceGetGraphMemAttribute(device, attribute, &value));
        return value;
    }

    CUgraph graph = nullptr;
};

}  // namespace

TEST_F(MemoryOfGraphs, LivesFromNodeToNode) {
    CUdeviceptr va = 0;
    CUgraphNode alloc = add_alloc(kMiB, &va);
    CUgraphNode kernel = add_fill(graph, va, 55, 16, {alloc});
    CUDA_MEMCPY3D copy{};
    copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.srcDevice = va;
    copy.WidthInBytes = 64;
    copy.Height = copy.Depth = 1;
    CUgraphNode copied = nullptr;
    CUgraphNode freed = nullptr;
    ASSERT_CU(cuGraphAddMemcpyNode(&copied, graph, &kernel, 1, &copy, context));
    ASSERT_CU(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, va));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    run(exec);
    EXPECT_EQ(55u, word_at(memory + 60));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    CUdeviceptr shown = 0;
    EXPECT_CU(CUDA_SUCCESS, cuGraphMemFreeNodeGetParams(freed, &shown));
    EXPECT_EQ(va, shown);
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    EXPECT_CU(CUDA_SUCCESS, cuGraphMemAllocNodeGetParams(alloc, &params));
    EXPECT_EQ(va, params.dptr);
    EXPECT_EQ(kMiB, params.bytesize);
}

TEST_F(MemoryOfGraphs, OutlivesTheLaunchUntilItIsFreed) {
    CUdeviceptr va = 0;
    CUgraphNode alloc = add_alloc(kMiB, &va);
    add_fill(graph, va, 66, 16, {alloc});
    CUgraphExec exec = instantiate(graph);
    run(exec);
    EXPECT_EQ(66u, word_at(va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
    run(exec);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(MemoryOfGraphs, IsFreedByTheNextLaunchIfAsked) {
    CUdeviceptr va = 0;
    add_alloc(kMiB, &va);
    CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    run(exec);
    run(exec);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(MemoryOfGraphs, IsCaptured) {
    CUdeviceptr va = 0;
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuMemAllocAsync(&va, kMiB, stream));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 77, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(memory, va, 64, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
    CUgraph captured = end();
    EXPECT_EQ((std::vector{CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_KERNEL,
                           CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEM_FREE}),
              kinds_of(captured));
    run_once(captured);
    EXPECT_EQ(77u, word_at(memory));
}

TEST_F(MemoryOfGraphs, OfAPoolIsNotFreedInACapture) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAllocAsync(&va, kMiB, stream));
    begin();
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(va, stream));
    CUgraph captured = nullptr;
    static_cast<void>(cuStreamEndCapture(stream, &captured));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
}

TEST_F(MemoryOfGraphs, RestrictsWhatIsDoneToTheGraph) {
    CUdeviceptr va = 0;
    CUgraphNode alloc = add_alloc(kMiB, &va);
    CUgraphNode freed = nullptr;
    ASSERT_CU(cuGraphAddMemFreeNode(&freed, graph, &alloc, 1, va));
    CUgraphNode twice = nullptr;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&twice, graph, &alloc, 1, va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&twice, graph, &alloc, 1, memory));
    CUgraph copied = nullptr;
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&copied, graph));
    EXPECT_NE(CUDA_SUCCESS, cuGraphDestroyNode(alloc));
    CUgraph parent = nullptr;
    CUgraphNode child = nullptr;
    ASSERT_CU(cuGraphCreate(&parent, 0));
    EXPECT_NE(CUDA_SUCCESS, cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph));
    CUgraphExec exec = instantiate(graph);
    CUgraphExec second_one = nullptr;
    EXPECT_NE(CUDA_SUCCESS, cuGraphInstantiate(&second_one, graph, 0));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    exec = instantiate(graph);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(MemoryOfGraphs, IsCountedAndTrimmed) {
    CUdeviceptr va = 0;
    CUgraphNode alloc = add_alloc(4 * kMiB, &va);
    CUgraphNode freed = nullptr;
    ASSERT_CU(cuGraphAddMemFreeNode(&freed, graph, &alloc, 1, va));
    const cuuint64_t before = get(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    std::size_t free_before = 0;
    std::size_t free_now = 0;
    ASSERT_CU(cuMemGetInfo(&free_before, nullptr));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    EXPECT_GE(get(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before + 4 * kMiB);
    EXPECT_GE(get(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 4 * kMiB);
    ASSERT_CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_LE(free_now + 4 * kMiB, free_before);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    drop(graph);
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGraphMemTrim(device));
    ASSERT_CU(cuMemGetInfo(&free_now, nullptr));
    EXPECT_EQ(free_before, free_now);
    cuuint64_t value = 0;
    EXPECT_CU(CUDA_SUCCESS,
              cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
}
