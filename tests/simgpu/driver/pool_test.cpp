// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream-ordered memory: what a pool keeps, gives back, and hands from stream to stream.

#include "graph_fixture.hpp"

namespace {

class Pool : public GraphGpu {
  protected:
    static constexpr std::size_t kBytes = 4 * kMiB;

    void SetUp() override {
        GraphGpu::SetUp();
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
        ASSERT_CU(cuMemPoolCreate(&pool, &properties));
        void* word = nullptr;
        ASSERT_CU(cuMemHostAlloc(&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
        flag = static_cast<volatile unsigned*>(word);
        *flag = 0;
    }

    void TearDown() override {
        let_go();
        GraphGpu::TearDown();
    }

    CUdeviceptr allocate(CUstream in, std::size_t bytes = kBytes) {
        CUdeviceptr va = 0;
        EXPECT_CU(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&va, bytes, pool, in));
        return va;
    }

    cuuint64_t get(CUmemPool_attribute attribute) {
        cuuint64_t value = 0;
        EXPECT_CU(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, attribute, &value));
        return value;
    }

    cuuint64_t reserved() { return get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

    void set(CUmemPool_attribute attribute, int value) {
        EXPECT_CU(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, attribute, &value));
    }

    void keep_everything() {
        cuuint64_t all = UINT64_MAX;
        EXPECT_CU(CUDA_SUCCESS,
                  cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    }

    /// What the stream does from here on waits for let_go().
    void hold(CUstream which) {
        EXPECT_CU(CUDA_SUCCESS, cuStreamWaitValue32(which, reinterpret_cast<CUdeviceptr>(flag), 1,
                                                    CU_STREAM_WAIT_VALUE_EQ));
    }

    void let_go() {
        if (flag != nullptr) *flag = 1;
    }

    CUmemoryPool pool = nullptr;
    volatile unsigned* flag = nullptr;
};

}  // namespace

TEST_F(Pool, GivesBackWhenItsStreamIsWaitedFor) {
    CUdeviceptr va = allocate(stream);
    EXPECT_GE(reserved(), kBytes);
    EXPECT_GE(get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kBytes);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
    EXPECT_EQ(0u, get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(0u, reserved());
}

TEST_F(Pool, KeepsUpToItsThreshold) {
    keep_everything();
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(allocate(stream), stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    const cuuint64_t kept = reserved();
    EXPECT_GE(kept, kBytes);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(allocate(stream), stream));
    EXPECT_EQ(kept, reserved());
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
    EXPECT_EQ(0u, reserved());
}

TEST_F(Pool, TrimLeavesWhatIsUsed) {
    keep_everything();
    CUdeviceptr used = allocate(stream);
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
    EXPECT_GE(reserved(), kBytes);
    EXPECT_CU(CUDA_SUCCESS, fill(used, 3, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(3u, word_at(used));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(used, stream));
}

TEST_F(Pool, SameStreamReusesAtOnce) {
    hold(stream);
    CUdeviceptr first = allocate(stream);
    const cuuint64_t held = reserved();
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
    CUdeviceptr again = allocate(stream);
    EXPECT_EQ(held, reserved());
    let_go();
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(again, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
}

TEST_F(Pool, AnotherStreamReusesOnlyWhatItIsBehind) {
    set(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
    set(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    hold(stream);
    CUdeviceptr first = allocate(stream);
    const cuuint64_t held = reserved();
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(event, stream));
    CUdeviceptr apart = allocate(other);
    EXPECT_GT(reserved(), held);
    EXPECT_NE(first, apart);
    const cuuint64_t both = reserved();
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    CUdeviceptr behind = allocate(other);
    EXPECT_EQ(both, reserved());
    let_go();
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(apart, other));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(behind, other));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(other));
}

TEST_F(Pool, MayMakeAStreamWaitForTheOther) {
    hold(stream);
    CUdeviceptr first = allocate(stream);
    const cuuint64_t held = reserved();
    EXPECT_CU(CUDA_SUCCESS, fill(first, 1, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
    CUdeviceptr second_owner = allocate(other);
    EXPECT_EQ(held, reserved());
    EXPECT_CU(CUDA_SUCCESS, fill(second_owner, 2, 16, other));
    EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    let_go();
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(other));
    EXPECT_EQ(2u, word_at(second_owner));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(second_owner, other));
}

TEST_F(Pool, HighMarksAreOnlySetBack) {
    CUdeviceptr va = allocate(stream);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_GE(get(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kBytes);
    cuuint64_t value = 1;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    value = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    EXPECT_EQ(0u, get(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
}

TEST_F(Pool, OwnerKeepsItsAccess) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &access, 1));
    CUmemAccess_flags flags{};
    CUmemLocation where{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolGetAccess(&flags, pool, &where));
    EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags);
    access.location.id = 1000;
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &access, 1));
}

TEST_F(Pool, MemoryOutlivesItsHandle) {
    CUdeviceptr va = allocate(stream);
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolDestroy(pool));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 9, 16, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(9u, word_at(va));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
}

TEST_F(Pool, DefaultOneIsNotDestroyed) {
    CUmemoryPool standard = nullptr;
    CUmemoryPool current = nullptr;
    ASSERT_CU(cuDeviceGetDefaultMemPool(&standard, device));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
    EXPECT_CU(CUDA_SUCCESS, cuDeviceSetMemPool(device, pool));
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(pool, current);
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolDestroy(pool));
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(standard, current);
}

TEST_F(Pool, IsNotExportedWhenMadeWithoutAHandleType) {
    int handle = -1;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemPoolExportToShareableHandle(&handle, pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

TEST_F(Pool, PointersKnowTheirPoolAndRange) {
    CUdeviceptr va = allocate(stream, 5000);
    CUmemoryPool found = nullptr;
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, va + 100));
    EXPECT_EQ(pool, found);
    CUdeviceptr start = 0;
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, va + 100));
    EXPECT_EQ(va, start);
    CUmemorytype type{};
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va));
    EXPECT_EQ(CU_MEMORYTYPE_DEVICE, type);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(Pool, SmallOnesShareWhatIsReserved) {
    CUdeviceptr a = allocate(stream, 1);
    const cuuint64_t held = reserved();
    CUdeviceptr b = allocate(stream, 1);
    EXPECT_EQ(held, reserved());
    EXPECT_NE(a, b);
    EXPECT_EQ(0u, b % 256);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(a, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(b, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
}

TEST_F(Pool, WhatItHoldsIsGivenToOthersBeforeTheyFail) {
    keep_everything();
    std::size_t free = 0;
    ASSERT_CU(cuMemGetInfo(&free, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(allocate(stream, free / 2 + kMiB), stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_GE(reserved(), free / 2);
    CUdeviceptr va = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, free / 2 + kMiB));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}
