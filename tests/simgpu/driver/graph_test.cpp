// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs made by hand, and what becomes of them when they are instantiated.

#include <chrono>
#include <cstring>
#include <thread>

#include "graph_fixture.hpp"

namespace {

class Graphs : public GraphGpu {
  protected:
    void SetUp() override {
        GraphGpu::SetUp();
        ASSERT_CU(cuGraphCreate(&graph, 0));
    }

    CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
        CUDA_MEMCPY3D params{};
        params.dstMemoryType = params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        params.dstDevice = to;
        params.srcDevice = from;
        params.WidthInBytes = bytes;
        params.Height = params.Depth = 1;
        return params;
    }

    CUgraph graph = nullptr;
};

void store_one(void* where) { *static_cast<int*>(where) = 1; }

}  // namespace

TEST_F(Graphs, RunInTheOrderOfTheirEdges) {
    CUgraphNode set = nullptr;
    CUgraphNode moved = nullptr;
    CUDA_MEMSET_NODE_PARAMS memset{memory, 0, 0x5A5A5A5A, 4, kWords, 1};
    ASSERT_CU(cuGraphAddMemsetNode(&set, graph, nullptr, 0, &memset, context));
    CUgraphNode kernel = add_fill(graph, memory, 8, 4, {set});
    CUDA_MEMCPY3D params = copy(second, memory, kWords * 4);
    ASSERT_CU(cuGraphAddMemcpyNode(&moved, graph, &kernel, 1, &params, context));
    run_once(graph);
    EXPECT_EQ(8u, word_at(second + 12));
    EXPECT_EQ(0x5A5A5A5Au, word_at(second + 16));
}

TEST_F(Graphs, TellWhatTheirNodesDo) {
    CUgraphNode kernel = add_fill(graph, memory, 8, 4);
    CUDA_KERNEL_NODE_PARAMS shown{};
    ASSERT_CU(cuGraphKernelNodeGetParams(kernel, &shown));
    EXPECT_EQ(function("fill"), shown.func);
    EXPECT_EQ(128u, shown.blockDimX);
    EXPECT_EQ(memory, *static_cast<CUdeviceptr*>(shown.kernelParams[0]));
    EXPECT_EQ(8u, *static_cast<unsigned*>(shown.kernelParams[1]));
    CUgraphNode set = nullptr;
    CUDA_MEMSET_NODE_PARAMS memset{memory, 4096, 3, 2, 16, 1};
    CUDA_MEMSET_NODE_PARAMS memset_shown{};
    ASSERT_CU(cuGraphAddMemsetNode(&set, graph, &kernel, 1, &memset, context));
    ASSERT_CU(cuGraphMemsetNodeGetParams(set, &memset_shown));
    EXPECT_EQ(memory, memset_shown.dst);
    EXPECT_EQ(16u, memset_shown.width);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(kernel, &memset_shown));
    CUgraphNode moved = nullptr;
    CUDA_MEMCPY3D params = copy(second, memory, 64);
    CUDA_MEMCPY3D params_shown{};
    ASSERT_CU(cuGraphAddMemcpyNode(&moved, graph, nullptr, 0, &params, context));
    ASSERT_CU(cuGraphMemcpyNodeGetParams(moved, &params_shown));
    EXPECT_EQ(second, params_shown.dstDevice);
    EXPECT_EQ(64u, params_shown.WidthInBytes);
}

TEST_F(Graphs, CapturedCopiesTellTheirSides) {
    std::vector<unsigned> host(16, 5);
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyHtoDAsync(memory, host.data(), 64, stream));
    CUgraph captured = end();
    CUDA_MEMCPY3D shown{};
    ASSERT_CU(cuGraphMemcpyNodeGetParams(nodes_of(captured)[0], &shown));
    EXPECT_EQ(CU_MEMORYTYPE_HOST, shown.srcMemoryType);
    EXPECT_EQ(host.data(), shown.srcHost);
    EXPECT_EQ(CU_MEMORYTYPE_DEVICE, shown.dstMemoryType);
    EXPECT_EQ(memory, shown.dstDevice);
    // The bytes are read when the graph runs.
    host.assign(16, 6);
    run_once(captured);
    EXPECT_EQ(6u, word_at(memory));
}

TEST_F(Graphs, RefuseWrongNodes) {
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params = filling(memory, 1, 4);
    params.blockDimX = 4096;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CUDA_MEMSET_NODE_PARAMS memset{memory, 0, 1, 3, 4, 1};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuGraphAddMemsetNode(&node, graph, nullptr, 0, &memset, context));
    CUDA_HOST_NODE_PARAMS host{nullptr, nullptr};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&node, graph, nullptr, 0, &host));
    CUgraph foreign = nullptr;
    ASSERT_CU(cuGraphCreate(&foreign, 0));
    CUgraphNode theirs = add_fill(foreign, memory, 1, 4);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, &theirs, 1));
    CUgraphNode own = add_fill(graph, memory, 1, 4);
    const CUgraphNode twice[] = {own, own};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, twice, 2));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&foreign, 1));
}

TEST_F(Graphs, EdgesComeAndGo) {
    CUgraphNode first = add_fill(graph, memory, 1, 4);
    CUgraphNode last = add_fill(graph, memory, 2, 4);
    EXPECT_CU(CUDA_SUCCESS, cuGraphAddDependencies(graph, &first, &last, nullptr, 1));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &first, &last, nullptr, 1));
    EXPECT_EQ(std::vector{first}, before(last));
    std::size_t count = 0;
    EXPECT_CU(CUDA_SUCCESS, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    EXPECT_EQ(1u, count);
    CUgraphNode from = nullptr;
    CUgraphNode to = nullptr;
    EXPECT_CU(CUDA_SUCCESS, cuGraphGetEdges(graph, &from, &to, nullptr, &count));
    EXPECT_EQ(first, from);
    EXPECT_EQ(last, to);
    EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetDependentNodes(first, &to, nullptr, &count));
    EXPECT_EQ(last, to);
    CUgraphNode roots[2] = {};
    count = 2;
    EXPECT_CU(CUDA_SUCCESS, cuGraphGetRootNodes(graph, roots, &count));
    EXPECT_EQ(1u, count);
    EXPECT_EQ(first, roots[0]);
    EXPECT_EQ(nullptr, roots[1]);
    EXPECT_CU(CUDA_SUCCESS, cuGraphRemoveDependencies(graph, &first, &last, nullptr, 1));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuGraphRemoveDependencies(graph, &first, &last, nullptr, 1));
    EXPECT_CU(CUDA_SUCCESS, cuGraphDestroyNode(first));
    EXPECT_EQ(std::vector{last}, nodes_of(graph));
    CUgraphNodeType type{};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(nullptr, &type));
}

TEST_F(Graphs, WithACycleAreNotInstantiated) {
    CUgraphNode first = add_fill(graph, memory, 1, 4);
    CUgraphNode last = add_fill(graph, memory, 2, 4, {first});
    ASSERT_CU(cuGraphAddDependencies(graph, &last, &first, nullptr, 1));
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, params.result_out);
    EXPECT_NE(nullptr, params.hErrNode_out);
}

TEST_F(Graphs, AreCopiedWhenInstantiated) {
    CUgraphNode node = add_fill(graph, memory, 1, 4);
    CUgraphExec exec = instantiate(graph);
    CUDA_KERNEL_NODE_PARAMS params = filling(memory, 99, 4);
    ASSERT_CU(cuGraphKernelNodeSetParams(node, &params));
    run(exec);
    EXPECT_EQ(1u, word_at(memory));
    drop(graph);
    run(exec);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
}

TEST_F(Graphs, CloneKnowsItsOriginal) {
    CUgraphNode node = add_fill(graph, memory, 31, 4);
    CUgraph clone = nullptr;
    CUgraphNode found = nullptr;
    ASSERT_CU(cuGraphClone(&clone, graph));
    ASSERT_CU(cuGraphNodeFindInClone(&found, node, clone));
    EXPECT_EQ(nodes_of(clone)[0], found);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found, node, graph));
    drop(graph);
    run_once(clone);
    EXPECT_EQ(31u, word_at(memory));
}

TEST_F(Graphs, ChildIsACopyOwnedByItsNode) {
    CUgraph child = nullptr;
    ASSERT_CU(cuGraphCreate(&child, 0));
    CUgraphNode inner = add_fill(child, memory, 12, 4);
    CUgraphNode node = nullptr;
    CUgraphNode after = nullptr;
    ASSERT_CU(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    CUDA_MEMCPY3D params = copy(second, memory, 16);
    ASSERT_CU(cuGraphAddMemcpyNode(&after, graph, &node, 1, &params, context));
    ASSERT_CU(cuGraphDestroyNode(inner));
    CUgraph embedded = nullptr;
    ASSERT_CU(cuGraphChildGraphNodeGetGraph(node, &embedded));
    EXPECT_NE(child, embedded);
    EXPECT_EQ(1u, nodes_of(embedded).size());
    drop(child);
    run_once(graph);
    EXPECT_EQ(12u, word_at(second));
}

TEST_F(Graphs, ExecutableNodesAreChangedOneByOne) {
    CUgraphNode kernel = add_fill(graph, memory, 1, 4);
    CUgraphNode set = nullptr;
    CUgraphNode moved = nullptr;
    CUDA_MEMSET_NODE_PARAMS memset{second, 0, 0, 4, 4, 1};
    ASSERT_CU(cuGraphAddMemsetNode(&set, graph, &kernel, 1, &memset, context));
    CUDA_MEMCPY3D params = copy(second, memory, 4);
    ASSERT_CU(cuGraphAddMemcpyNode(&moved, graph, &set, 1, &params, context));
    CUgraphExec exec = instantiate(graph);
    CUDA_KERNEL_NODE_PARAMS other_fill = filling(memory, 2, 8);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams(exec, kernel, &other_fill));
    memset.value = 6;
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(exec, set, &memset, context));
    params = copy(second + 4, memory, 4);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecMemcpyNodeSetParams(exec, moved, &params, context));
    run(exec);
    EXPECT_EQ(2u, word_at(memory + 28));
    EXPECT_EQ(6u, word_at(second));
    EXPECT_EQ(2u, word_at(second + 4));
    memset.height = 2;
    memset.pitch = 64;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuGraphExecMemsetNodeSetParams(exec, set, &memset, context));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, moved, &other_fill));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, NodesCanBeSwitchedOff) {
    CUgraphNode kernel = add_fill(graph, memory, 41, 4);
    CUgraphNode empty = nullptr;
    ASSERT_CU(cuGraphAddEmptyNode(&empty, graph, &kernel, 1));
    CUgraphExec exec = instantiate(graph);
    EXPECT_CU(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, kernel, 0));
    run(exec);
    EXPECT_EQ(0u, word_at(memory));
    unsigned enabled = 1;
    EXPECT_CU(CUDA_SUCCESS, cuGraphNodeGetEnabled(exec, kernel, &enabled));
    EXPECT_EQ(0u, enabled);
    EXPECT_CU(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, kernel, 1));
    run(exec);
    EXPECT_EQ(41u, word_at(memory));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, empty, 0));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, UpdateTakesNewParameters) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 1, 8, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory, 32, stream));
    CUgraph first = end();
    CUgraphExec exec = instantiate(first);
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 2, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, memory, 64, stream));
    CUgraph changed = end();
    CUgraphExecUpdateResultInfo info{};
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecUpdate(exec, changed, &info));
    EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
    run(exec);
    EXPECT_EQ(2u, word_at(second + 60));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    drop(first);
    drop(changed);
}

TEST_F(Graphs, UpdateRefusesAnotherShape) {
    CUgraphNode root = add_fill(graph, memory, 1, 4);
    add_fill(graph, memory, 2, 4, {root});
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info{};
    CUgraph more = nullptr;
    ASSERT_CU(cuGraphClone(&more, graph));
    add_fill(more, memory, 3, 4);
    EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, more, &info));
    EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, info.result);
    EXPECT_EQ(nullptr, info.errorNode);
    CUgraph kinds = nullptr;
    CUgraphNode first = nullptr;
    ASSERT_CU(cuGraphCreate(&kinds, 0));
    ASSERT_CU(cuGraphAddEmptyNode(&first, kinds, nullptr, 0));
    add_fill(kinds, memory, 2, 4, {first});
    EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, kinds, &info));
    EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, info.result);
    EXPECT_EQ(first, info.errorNode);
    run(exec);
    EXPECT_EQ(2u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, AreAddedToByTheGenericCallsToo) {
    CUgraphNode kernel = nullptr;
    CUgraphNode set = nullptr;
    CUgraphNodeParams params{};
    CUDA_KERNEL_NODE_PARAMS fill_params = filling(memory, 17, 4);
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset = {memory, 0, 1, 4, 8, 1, context};
    ASSERT_CU(cuGraphAddNode(&set, graph, nullptr, nullptr, 0, &params));
    params = {};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    static_assert(sizeof params.kernel == sizeof fill_params);
    std::memcpy(&params.kernel, &fill_params, sizeof fill_params);
    ASSERT_CU(cuGraphAddNode(&kernel, graph, &set, nullptr, 1, &params));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    EXPECT_EQ(17u, word_at(memory));
    EXPECT_EQ(1u, word_at(memory + 16));
    fill_params = filling(memory, 18, 4);
    std::memcpy(&params.kernel, &fill_params, sizeof fill_params);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecNodeSetParams(exec, kernel, &params));
    run(exec);
    EXPECT_EQ(18u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, LaunchesOfOneFollowEachOther) {
    CUgraphNode kernel = nullptr;
    CUDA_KERNEL_NODE_PARAMS params{};
    void* arguments[] = {&memory};
    params.func = function("bump");
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    ASSERT_CU(cuGraphAddKernelNode(&kernel, graph, nullptr, 0, &params));
    CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 10; ++i)
        EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, i % 2 ? stream : other));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(41u + 10 + 30, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, KeepUserObjectsAlive) {
    int destroyed = 0;
    CUuserObject object = nullptr;
    ASSERT_CU(
        cuUserObjectCreate(&object, &destroyed, store_one, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &destroyed, store_one, 1, 0));
    EXPECT_CU(CUDA_SUCCESS, cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = instantiate(graph);
    drop(graph);
    EXPECT_EQ(0, destroyed);
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    EXPECT_EQ(1, destroyed);
}

TEST_F(Graphs, KeepUserObjectsWhileTheyRun) {
    int destroyed = 0;
    void* word = nullptr;
    CUuserObject object = nullptr;
    ASSERT_CU(cuMemHostAlloc(&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    auto* flag = static_cast<volatile unsigned*>(word);
    *flag = 0;
    ASSERT_CU(
        cuUserObjectCreate(&object, &destroyed, store_one, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT_CU(CUDA_SUCCESS, cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    add_fill(graph, memory, 4, 8);
    CUgraphExec exec = instantiate(graph);
    drop(graph);
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word), 1,
                                                CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    EXPECT_EQ(0, destroyed);
    *flag = 1;
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(4u, word_at(memory));
    // The destructor may run a little later, on a thread of the driver's.
    for (int i = 0; i < 1000 && *static_cast<volatile int*>(&destroyed) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(1, destroyed);
}

TEST_F(Graphs, FaultOfANodeIsTheContexts) {
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params{};
    CUdeviceptr nowhere = 0x100;
    void* arguments[] = {&nowhere, &memory};
    params.func = function("read");
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    ASSERT_CU(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CUgraphExec exec = instantiate(graph);
    EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}
