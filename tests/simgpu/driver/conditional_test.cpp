// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Conditional nodes. What sets conditions is device code; where the device runtime must be linked
// into it, those tests are skipped.

#include "graph_fixture.hpp"

namespace {

/// count_down(word, handle): one less in the word, whose value becomes the condition's;
/// set(handle, value).
constexpr const char* kSetters = R"(
.version 8.4
.target sm_70
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry count_down(.param .u64 word, .param .u64 handle)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [word];
    ld.param.u64 %rd2, [handle];
    ld.global.u32 %r1, [%rd1];
    sub.u32 %r2, %r1, 1;
    st.global.u32 [%rd1], %r2;
    {
    .param .b64 p0;
    st.param.b64 [p0], %rd2;
    .param .b32 p1;
    st.param.b32 [p1], %r2;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}

.visible .entry set(.param .u64 handle, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [handle];
    ld.param.u32 %r1, [value];
    {
    .param .b64 p0;
    st.param.b64 [p0], %rd1;
    .param .b32 p1;
    st.param.b32 [p1], %r1;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}
)";

class Conditional : public GraphGpu {
  protected:
    void SetUp() override {
        GraphGpu::SetUp();
        ASSERT_CU(cuGraphCreate(&graph, 0));
    }

    CUgraphConditionalHandle condition(unsigned value, bool assign = true) {
        CUgraphConditionalHandle handle = 0;
        EXPECT_CU(CUDA_SUCCESS,
                  cuGraphConditionalHandleCreate(&handle, graph, context, value,
                                                 assign ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0));
        return handle;
    }

    std::vector<CUgraph> add(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                             unsigned size, const std::vector<CUgraphNode>& after = {}) {
        CUgraphNodeParams params{};
        params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.conditional.handle = handle;
        params.conditional.type = type;
        params.conditional.size = size;
        params.conditional.ctx = context;
        CUgraphNode node = nullptr;
        EXPECT_CU(CUDA_SUCCESS,
                  cuGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &params));
        if (params.conditional.phGraph_out == nullptr) return {};
        return {params.conditional.phGraph_out, params.conditional.phGraph_out + size};
    }

    bool load_setters() { return cuModuleLoadData(&setters, kSetters) == CUDA_SUCCESS; }

    CUgraphNode add_kernel(CUgraph to, const char* name, void** arguments) {
        CUfunction kernel = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuModuleGetFunction(&kernel, setters, name));
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = kernel;
        params.gridDimX = params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = arguments;
        CUgraphNode node = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuGraphAddKernelNode(&node, to, nullptr, 0, &params));
        return node;
    }

    CUgraph graph = nullptr;
    CUmodule setters = nullptr;
};

}  // namespace

TEST_F(Conditional, IfRunsItsBodyWhereTheConditionHolds) {
    add_fill(add(condition(1), CU_GRAPH_COND_TYPE_IF, 1)[0], memory, 5, 4);
    add_fill(add(condition(0), CU_GRAPH_COND_TYPE_IF, 1)[0], second, 6, 4);
    run_once(graph);
    EXPECT_EQ(5u, word_at(memory));
    EXPECT_EQ(0u, word_at(second));
}

TEST_F(Conditional, ElseRunsWhereItDoesNot) {
    const auto bodies = add(condition(0), CU_GRAPH_COND_TYPE_IF, 2);
    add_fill(bodies[0], memory, 5, 4);
    add_fill(bodies[1], second, 6, 4);
    run_once(graph);
    EXPECT_EQ(0u, word_at(memory));
    EXPECT_EQ(6u, word_at(second));
}

TEST_F(Conditional, SwitchChoosesOneBodyOrNone) {
    const auto bodies = add(condition(1), CU_GRAPH_COND_TYPE_SWITCH, 2);
    add_fill(bodies[0], memory, 5, 4);
    add_fill(bodies[1], second, 6, 4);
    add_fill(add(condition(7), CU_GRAPH_COND_TYPE_SWITCH, 1)[0], memory, 7, 4);
    run_once(graph);
    EXPECT_EQ(0u, word_at(memory));
    EXPECT_EQ(6u, word_at(second));
}

TEST_F(Conditional, WhileRunsUntilDeviceCodeEndsIt) {
    if (!load_setters()) GTEST_SKIP() << "the device runtime is not linked";
    ASSERT_CU(cuMemsetD32(memory, 10, 1));
    CUgraphConditionalHandle handle = condition(1);
    void* arguments[] = {&memory, &handle};
    const CUgraph body = add(handle, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
    CUgraphNode kernel = add_kernel(body, "count_down", arguments);
    CUDA_MEMCPY3D copy{};
    copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = second;
    copy.srcDevice = memory;
    copy.WidthInBytes = 4;
    copy.Height = copy.Depth = 1;
    CUgraphNode copied = nullptr;
    ASSERT_CU(cuGraphAddMemcpyNode(&copied, body, &kernel, 1, &copy, context));
    ASSERT_CU(cuMemsetD32(second, 99, 1));
    run_once(graph);
    EXPECT_EQ(0u, word_at(memory));
    EXPECT_EQ(0u, word_at(second));
}

TEST_F(Conditional, KernelBeforeItDecides) {
    if (!load_setters()) GTEST_SKIP() << "the device runtime is not linked";
    CUgraphConditionalHandle handle = condition(0, false);
    unsigned value = 1;
    void* arguments[] = {&handle, &value};
    CUgraphNode decides = add_kernel(graph, "set", arguments);
    add_fill(add(handle, CU_GRAPH_COND_TYPE_IF, 1, {decides})[0], memory, 8, 4);
    run_once(graph);
    EXPECT_EQ(8u, word_at(memory));
}

TEST_F(Conditional, RefusesWrongOnes) {
    CUgraphNode node = nullptr;
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = condition(1);
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 2;
    params.conditional.ctx = context;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS told{};
    EXPECT_NE(CUDA_SUCCESS, cuGraphInstantiateWithParams(&exec, graph, &told));
    EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, told.result_out);
    params.conditional.size = 1;
    ASSERT_CU(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    CUgraph copied = nullptr;
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&copied, graph));
    // A host function may not be in a body.
    CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
    EXPECT_EQ(CUDA_SUCCESS,
              cuGraphAddHostNode(&node, params.conditional.phGraph_out[0], nullptr, 0, &host));
    EXPECT_NE(CUDA_SUCCESS, cuGraphInstantiate(&exec, graph, 0));
}
