// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>
#include <string>
#include <vector>

#include "program.hpp"

// Tables of pointers in device memory, and the ways by which their contents move. Host memory
// cannot be mapped here: a kernel that follows a pointer which nobody followed before it faults.

namespace preload_tests {
namespace {

constexpr std::size_t kTableBytes = 4096;

/// As kPtx, but `p_words` is where the pointer lies.
std::string ptx_of_add_behind() {
    std::string ptx = kPtx;
    const std::string load = "ld.param.u64 %at, [p_words];";
    ptx.replace(ptx.find(load), load.size(), load + "\n    ld.global.u64 %at, [%at];");
    return ptx;
}

class Tables : public Program {
  protected:
    void SetUp() override {
        Program::SetUp();
        MUST(cuModuleLoadData(&behind_, ptx_of_add_behind().c_str()));
        MUST(cuModuleGetFunction(&add_behind_, behind_, "add"));
        buffers_ = fill_device();
        first_ = table();
        second_ = table();
        third_ = table();
        put(first_, buffers_[0]);
    }
    void TearDown() override {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        free_all({first_, second_, third_});
        free_all(buffers_);
        EXPECT_EQ(cuModuleUnload(behind_), CUDA_SUCCESS);
        Program::TearDown();
    }

    CUdeviceptr table() {
        CUdeviceptr table = 0;
        EXPECT_EQ(cuMemAlloc(&table, kTableBytes), CUDA_SUCCESS);
        EXPECT_EQ(cuMemsetD8(table, 0, kTableBytes), CUDA_SUCCESS);
        return table;
    }
    void put(CUdeviceptr slot, CUdeviceptr target) {
        EXPECT_EQ(cuMemcpyHtoD(slot, &target, sizeof target), CUDA_SUCCESS);
    }
    CUresult add_behind(CUdeviceptr slot, unsigned value) {
        unsigned count = static_cast<unsigned>(4 * kMiB / 4 / kStride);
        unsigned stride = kStride;
        void* params[] = {&slot, &count, &stride, &value};
        return cuLaunchKernel(add_behind_, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream_, params,
                              nullptr);
    }
    /// What buffer 0 points to leaves.
    void push_out() { press({buffers_.begin() + 1, buffers_.end()}); }
    /// A kernel that is passed `slot` finds the buffer.
    void expect_followed(CUdeviceptr slot, CUdeviceptr buffer = 0) {
        if (!buffer) buffer = buffers_[0];
        for (unsigned round = 0; round < 2; ++round) {
            std::vector<unsigned> before(1);
            MUST(cuMemcpyDtoH(before.data(), buffer, 4));
            push_out();
            MUST(add_behind(slot, 7));
            MUST(cuStreamSynchronize(stream_));
            EXPECT_TRUE(holds(buffer, 4 * kMiB, before[0] + 7));
        }
    }
    CUgraphExec instantiate(CUgraph graph) {
        CUgraphExec exec = nullptr;
        EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
        return exec;
    }

    CUmodule behind_ = nullptr;
    CUfunction add_behind_ = nullptr;
    std::vector<CUdeviceptr> buffers_;
    CUdeviceptr first_ = 0;
    CUdeviceptr second_ = 0;
    CUdeviceptr third_ = 0;
};

TEST_F(Tables, AreFollowedWhereTheHostWritesThem) { expect_followed(first_); }

TEST_F(Tables, AreFollowedWhereTheyAreCopied) {
    MUST(cuMemcpyDtoD(second_, first_, 64));
    expect_followed(second_);
    MUST(cuMemcpy(third_ + 8, second_, 64));
    expect_followed(third_ + 8);
}

TEST_F(Tables, AreFollowedInRowsOfTwoDimensions) {
    CUdeviceptr host[16] = {};
    host[6] = buffers_[0];
    CUDA_MEMCPY2D shape{};
    shape.srcMemoryType = CU_MEMORYTYPE_HOST;
    shape.srcHost = host;
    shape.srcPitch = 32;
    shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = second_;
    shape.dstPitch = 512;
    shape.WidthInBytes = 24;
    shape.Height = 4;
    MUST(cuMemcpy2D(&shape));
    expect_followed(second_ + 512 + 16);
    shape.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.srcDevice = second_;
    shape.srcPitch = 512;
    shape.dstDevice = third_;
    shape.dstPitch = 64;
    MUST(cuMemcpy2D(&shape));
    expect_followed(third_ + 64 + 16);
}

TEST_F(Tables, AreFollowedInRowsOfThreeDimensions) {
    put(first_ + 1024 + 256 + 8, buffers_[0]);
    CUDA_MEMCPY3D shape{};
    shape.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.srcDevice = first_;
    shape.srcPitch = 256;
    shape.srcHeight = 4;
    shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = second_;
    shape.dstPitch = 64;
    shape.dstHeight = 3;
    shape.WidthInBytes = 16;
    shape.Height = 2;
    shape.Depth = 2;
    MUST(cuMemcpy3D(&shape));
    expect_followed(second_ + 3 * 64 + 64 + 8);
}

TEST_F(Tables, StayBetweenTheRowsOfAFill) {
    put(first_ + 128, buffers_[0]);
    MUST(cuMemsetD2D8(first_, 256, 0, 64, 4));
    expect_followed(first_ + 128);
}

TEST_F(Tables, AreFollowedInBatches) {
    CUdeviceptr dst = second_ + 8;
    CUdeviceptr src = first_;
    std::size_t size = 8;
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    std::size_t index = 0;
    const CUresult result =
        cuMemcpyBatchAsync(&dst, &src, &size, 1, &attributes, &index, 1, stream_);
    if (result == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP();
    MUST(result);
    expect_followed(second_ + 8);
}

TEST_F(Tables, AreFollowedWhereAStreamWritesThem) {
    const CUresult result = cuStreamWriteValue64(stream_, second_ + 16, buffers_[0], 0);
    if (result == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP();
    MUST(result);
    expect_followed(second_ + 16);
}

/// A second device, which may use the first one's memory and the other way round.
class TablesOfTwoDevices : public Tables {
  protected:
    void SetUp() override {
        Tables::SetUp();
        int count = 0;
        MUST(cuDeviceGetCount(&count));
        if (count < 2) GTEST_SKIP() << "one device";
        MUST(cuDevicePrimaryCtxRetain(&other_, 1));
        MUST(cuCtxEnablePeerAccess(other_, 0));
        MUST(cuCtxSetCurrent(other_));
        MUST(cuCtxEnablePeerAccess(context_, 0));
        there_ = table();
        MUST(cuCtxSetCurrent(context_));
    }
    void TearDown() override {
        if (there_) {
            EXPECT_EQ(cuMemFree(there_), CUDA_SUCCESS);
            EXPECT_EQ(cuCtxDisablePeerAccess(other_), CUDA_SUCCESS);
            EXPECT_EQ(cuCtxSetCurrent(other_), CUDA_SUCCESS);
            EXPECT_EQ(cuCtxDisablePeerAccess(context_), CUDA_SUCCESS);
            EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
            EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
        }
        Tables::TearDown();
    }

    CUcontext other_ = nullptr;
    CUdeviceptr there_ = 0;
};

TEST_F(TablesOfTwoDevices, AreFollowedThereAndBack) {
    MUST(cuMemcpyPeer(there_, other_, first_, context_, 64));
    expect_followed(there_);
    MUST(cuMemcpyPeerAsync(second_, context_, there_, other_, 64, stream_));
    MUST(cuMemsetD8(there_, 0, 64));
    expect_followed(second_);
}

TEST_F(TablesOfTwoDevices, AreFollowedInRows) {
    put(first_ + 256, buffers_[0]);
    CUDA_MEMCPY3D_PEER shape{};
    shape.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.srcDevice = first_;
    shape.srcContext = context_;
    shape.srcPitch = 256;
    shape.srcHeight = 2;
    shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = there_;
    shape.dstContext = other_;
    shape.dstPitch = 64;
    shape.dstHeight = 2;
    shape.WidthInBytes = 8;
    shape.Height = 2;
    shape.Depth = 1;
    MUST(cuMemcpy3DPeer(&shape));
    expect_followed(there_ + 64);
}

// A graph's copies bring tables too, for its own kernels and for what comes after it.
TEST_F(Tables, OfTheHostThatAGraphCopiesAreFollowed) {
    std::vector<CUdeviceptr> host(8, buffers_[0]);
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemcpyHtoDAsync(second_, host.data(), 64, stream_));
    MUST(add_behind(second_, 1));
    MUST(cuStreamEndCapture(stream_, &graph));
    CUgraphExec exec = instantiate(graph);
    push_out();
    MUST(cuGraphLaunch(exec, stream_));
    EXPECT_TRUE(holds(buffers_[0], 4 * kMiB, 1));
    expect_followed(second_ + 8);
    MUST(cuGraphExecDestroy(exec));
}

TEST_F(Tables, ThatAGraphCopiesInTurnAreFollowed) {
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemcpyDtoDAsync(second_, first_, 64, stream_));
    MUST(cuMemcpyDtoDAsync(third_ + 8, second_, 64, stream_));
    MUST(add_behind(third_ + 8, 1));
    MUST(cuStreamEndCapture(stream_, &graph));
    CUgraphExec exec = instantiate(graph);
    push_out();
    MUST(cuGraphLaunch(exec, stream_));
    EXPECT_TRUE(holds(buffers_[0], 4 * kMiB, 1));
    expect_followed(second_);
    expect_followed(third_ + 8);
    MUST(cuGraphExecDestroy(exec));
}

TEST_F(Tables, ThatAGraphWritesTwiceAreFollowedBothTimes) {
    std::vector<CUdeviceptr> hosts = {buffers_[0], buffers_[1]};
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (CUdeviceptr& host : hosts) {
        MUST(cuMemcpyHtoDAsync(second_, &host, 8, stream_));
        MUST(add_behind(second_, 1));
    }
    MUST(cuStreamEndCapture(stream_, &graph));
    CUgraphExec exec = instantiate(graph);
    press({buffers_.begin() + 2, buffers_.end()});
    MUST(cuGraphLaunch(exec, stream_));
    EXPECT_TRUE(holds(buffers_[0], 4 * kMiB, 1));
    EXPECT_TRUE(holds(buffers_[1], 4 * kMiB, 2));
    MUST(cuGraphExecDestroy(exec));
}

}  // namespace
}  // namespace preload_tests
