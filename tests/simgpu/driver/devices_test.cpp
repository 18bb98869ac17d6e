// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Several devices in one process; skipped where there is one.

#include "graph_fixture.hpp"

namespace {

class TwoDevices : public GraphGpu {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_CU(cuInit(0));
        ASSERT_CU(cuDeviceGetCount(&count));
        if (count < 2) GTEST_SKIP() << "one device";
        GraphGpu::SetUp();
        ASSERT_CU(cuDeviceGet(&peer_device, 1));
        int possible = 0;
        ASSERT_CU(cuDeviceCanAccessPeer(&possible, device, peer_device));
        if (possible == 0) GTEST_SKIP() << "the devices are no peers";
        ASSERT_CU(cuCtxCreate(&peer, nullptr, 0, peer_device));
        ASSERT_CU(cuMemAlloc(&there, kWords * 4));
        ASSERT_CU(cuMemsetD32(there, 33, kWords));
        ASSERT_CU(cuStreamCreate(&peer_stream, CU_STREAM_NON_BLOCKING));
        ASSERT_CU(cuCtxSynchronize());
        ASSERT_CU(cuCtxSetCurrent(context));
    }

    void TearDown() override {
        if (peer != nullptr) cuCtxDestroy(peer);
        if (context != nullptr) cuCtxSetCurrent(context);
        GraphGpu::TearDown();
    }

    std::size_t free_on(CUcontext of) {
        std::size_t free = 0;
        EXPECT_CU(CUDA_SUCCESS, cuCtxPushCurrent(of));
        EXPECT_CU(CUDA_SUCCESS, cuMemGetInfo(&free, nullptr));
        EXPECT_CU(CUDA_SUCCESS, cuCtxPopCurrent(nullptr));
        return free;
    }

    CUdevice peer_device = 0;
    CUcontext peer = nullptr;
    CUstream peer_stream = nullptr;
    CUdeviceptr there = 0;
};

}  // namespace

TEST_F(TwoDevices, KernelsReachAPeerOnceItIsEnabled) {
    EXPECT_CU(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(peer));
    EXPECT_CU(CUDA_SUCCESS, cuCtxEnablePeerAccess(peer, 0));
    EXPECT_CU(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(peer, 0));
    EXPECT_CU(CUDA_SUCCESS, read(there, memory));
    EXPECT_EQ(33u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuCtxDisablePeerAccess(peer));
}

TEST_F(TwoDevices, KernelsFaultWhereItIsNot) {
    EXPECT_CU(CUDA_SUCCESS, read(there, memory));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(TwoDevices, CopiesNeedNothingEnabled) {
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyPeer(memory, context, there, peer, 64));
    EXPECT_EQ(33u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, there, 64, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(33u, word_at(second));
}

TEST_F(TwoDevices, MemoryIsEachOnesOwn) {
    const std::size_t own = free_on(context);
    const std::size_t theirs = free_on(peer);
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 8 * kMiB));
    EXPECT_LE(free_on(context) + 8 * kMiB, own);
    EXPECT_EQ(theirs, free_on(peer));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(TwoDevices, PoolsGrantAccessThemselves) {
    CUmemoryPool pool = nullptr;
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {peer_device}};
    ASSERT_CU(cuMemPoolCreate(&pool, &properties));
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    CUdeviceptr va = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&va, kMiB, pool, peer_stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(peer_stream));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 44, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(44u, word_at(va));
    CUmemAccess_flags flags{};
    CUmemLocation where{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolGetAccess(&flags, pool, &where));
    EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, peer_stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolDestroy(pool));
}

TEST_F(TwoDevices, OneCaptureSpansBoth) {
    begin();
    EXPECT_CU(CUDA_SUCCESS, fill(memory, 55, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(peer_stream, event, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(there, memory, 64, peer_stream));
    CUevent back = nullptr;
    ASSERT_CU(cuCtxPushCurrent(peer));
    ASSERT_CU(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(back, peer_stream));
    ASSERT_CU(cuCtxPopCurrent(nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(stream, back, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(second, there, 64, stream));
    run_once(end());
    EXPECT_EQ(55u, word_at(second));
}

TEST_F(TwoDevices, ResetGivesEverythingBack) {
    CUcontext primary = nullptr;
    ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, peer_device));
    const std::size_t before = free_on(primary);
    ASSERT_CU(cuCtxPushCurrent(primary));
    CUdeviceptr va = 0;
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR descriptor{1024, 1024, CU_AD_FORMAT_FLOAT, 1};
    ASSERT_CU(cuMemAlloc(&va, 4 * kMiB));
    ASSERT_CU(cuArrayCreate(&array, &descriptor));
    ASSERT_CU(cuCtxPopCurrent(nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxReset(peer_device));
    ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, peer_device));
    EXPECT_EQ(before, free_on(primary));
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(peer_device));
}
