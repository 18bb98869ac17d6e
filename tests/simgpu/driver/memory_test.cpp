// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cstring>
#include <numeric>
#include <vector>

#include "gpu_fixture.hpp"

using DeviceMemory = Gpu;

TEST_F(DeviceMemory, InfoFollowsAllocations) {
    size_t before = 0;
    size_t during = 0;
    size_t after = 0;
    size_t total = 0;
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemGetInfo(&before, &total));
    EXPECT_LE(before, total);
    ASSERT_CU(cuMemAlloc(&va, 8 * kMiB));
    ASSERT_CU(cuMemGetInfo(&during, nullptr));
    EXPECT_LE(during, before - 8 * kMiB);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    ASSERT_CU(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
}

TEST_F(DeviceMemory, RefusesTooMuchAndNothing) {
    CUdeviceptr va = 0;
    size_t free = 0;
    size_t total = 0;
    ASSERT_CU(cuMemGetInfo(&free, &total));
    EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&va, total + kPage));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&va, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(nullptr, 16));
}

TEST_F(DeviceMemory, FreesOnlyWhatItGave) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, kMiB));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(va + 512));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(0));
}

TEST_F(DeviceMemory, AddressRangeIsTheAllocation) {
    CUdeviceptr va = 0;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    ASSERT_CU(cuMemAlloc(&va, 100000));
    EXPECT_CU(CUDA_SUCCESS, cuMemGetAddressRange(&base, &bytes, va + 99999));
    EXPECT_EQ(va, base);
    EXPECT_EQ(100000u, bytes);
    EXPECT_CU(CUDA_SUCCESS, cuMemGetAddressRange(nullptr, &bytes, va));
    EXPECT_EQ(0u, va % 256);
}

TEST_F(DeviceMemory, PitchIsAligned) {
    CUdeviceptr va = 0;
    size_t pitch = 0;
    ASSERT_CU(cuMemAllocPitch(&va, &pitch, 1000, 10, 4));
    EXPECT_GE(pitch, 1000u);
    EXPECT_EQ(0u, pitch % 32);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&va, &pitch, 1000, 10, 3));
}

TEST_F(DeviceMemory, CopiesRoundTripInEveryShape) {
    constexpr size_t kCount = 100003;
    std::vector<int> in(kCount);
    std::vector<int> out(kCount);
    std::iota(in.begin(), in.end(), 7);
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    size_t bytes = kCount * sizeof(int);
    ASSERT_CU(cuMemAlloc(&a, bytes));
    ASSERT_CU(cuMemAlloc(&b, bytes));
    CUstream stream = nullptr;
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyHtoD(a, in.data(), bytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(b, a, bytes, stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoHAsync(out.data(), b, bytes, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(in, out);
    std::fill(out.begin(), out.end(), 0);
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD8(b, 0, bytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy(b, a, bytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), b, bytes));
    EXPECT_EQ(in, out);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyHtoD(a, in.data(), 0));
}

TEST_F(DeviceMemory, CopiesAreChecked) {
    CUdeviceptr va = 0;
    std::vector<char> host(4096);
    ASSERT_CU(cuMemAlloc(&va, 4096));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(va, nullptr, 16));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(va + 4000, host.data(), 200));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemcpyDtoH(host.data(), reinterpret_cast<CUdeviceptr>(host.data()), 16));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(va, 0, 16));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(DeviceMemory, RectanglesAreCopied) {
    constexpr size_t kPitch = 64;
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, kPitch * 8));
    ASSERT_CU(cuMemsetD8(va, 0, kPitch * 8));
    std::vector<unsigned char> in(10 * 4);
    std::iota(in.begin(), in.end(), 1);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in.data();
    copy.srcPitch = 10;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = va;
    copy.dstPitch = kPitch;
    copy.dstXInBytes = 3;
    copy.dstY = 2;
    copy.WidthInBytes = 10;
    copy.Height = 4;
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy2D(&copy));
    std::vector<unsigned char> out(kPitch * 8);
    ASSERT_CU(cuMemcpyDtoH(out.data(), va, out.size()));
    EXPECT_EQ(1, out[2 * kPitch + 3]);
    EXPECT_EQ(40, out[5 * kPitch + 12]);
    EXPECT_EQ(0, out[5 * kPitch + 13]);
    copy.dstPitch = 12;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(nullptr));
}

TEST_F(DeviceMemory, BoxesAreCopied) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 4 * 4 * 4));
    ASSERT_CU(cuMemsetD8(va, 0, 64));
    std::vector<unsigned char> in(2 * 2 * 2);
    std::iota(in.begin(), in.end(), 1);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in.data();
    copy.srcPitch = 2;
    copy.srcHeight = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = va;
    copy.dstPitch = 4;
    copy.dstHeight = 4;
    copy.dstXInBytes = 1;
    copy.dstY = 1;
    copy.dstZ = 1;
    copy.WidthInBytes = 2;
    copy.Height = 2;
    copy.Depth = 2;
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy3D(&copy));
    std::vector<unsigned char> out(64);
    ASSERT_CU(cuMemcpyDtoH(out.data(), va, out.size()));
    EXPECT_EQ(1, out[1 + 4 * (1 + 4 * 1)]);
    EXPECT_EQ(8, out[2 + 4 * (2 + 4 * 2)]);
    EXPECT_EQ(36, std::accumulate(out.begin(), out.end(), 0));
}

TEST_F(DeviceMemory, SetsOfAllWidths) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 4096));
    ASSERT_CU(cuMemsetD32(va, 0x01020304, 1024));
    EXPECT_EQ(0x01020304u, word_at(va + 4092));
    ASSERT_CU(cuMemsetD16(va, 0xbeef, 2));
    EXPECT_EQ(0xbeefbeefu, word_at(va));
    ASSERT_CU(cuMemsetD8Async(va + 1, 0x11, 2, nullptr));
    EXPECT_EQ(0xbe1111efu, word_at(va));
    ASSERT_CU(cuMemsetD2D8(va, 64, 0x22, 4, 3));
    EXPECT_EQ(0x22222222u, word_at(va + 128));
    EXPECT_EQ(0x01020304u, word_at(va + 132));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(va + 2, 0, 1));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(va, 0, 2048));
}

using HostMemory = Gpu;

TEST_F(HostMemory, PinnedMemoryIsUsedByKernelsAtItsAddress) {
    void* host = nullptr;
    CUdeviceptr alias = 0;
    unsigned flags = 0;
    ASSERT_CU(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
    EXPECT_CU(CUDA_SUCCESS, cuMemHostGetDevicePointer(&alias, host, 0));
    EXPECT_EQ(reinterpret_cast<CUdeviceptr>(host), alias);
    EXPECT_CU(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
    EXPECT_NE(0u, flags & CU_MEMHOSTALLOC_PORTABLE);
    EXPECT_CU(CUDA_SUCCESS, fill(alias, 77, 1024));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(77u, static_cast<unsigned*>(host)[1023]);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeHost(host));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

TEST_F(HostMemory, RegisteredMemoryIsUsedByKernels) {
    std::vector<unsigned> host(4096);
    ASSERT_CU(cuMemHostRegister(host.data(), host.size() * 4, 0));
    EXPECT_CU(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              cuMemHostRegister(host.data(), host.size() * 4, 0));
    EXPECT_CU(CUDA_SUCCESS, fill(reinterpret_cast<CUdeviceptr>(host.data()), 5, 4096));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(5u, host[4095]);
    EXPECT_CU(CUDA_SUCCESS, cuMemHostUnregister(host.data()));
    EXPECT_CU(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host.data()));
}

TEST_F(HostMemory, ManagedMemoryIsSharedBothWays) {
    CUdeviceptr va = 0;
    int managed = 0;
    ASSERT_CU(cuMemAllocManaged(&va, 4096, CU_MEM_ATTACH_GLOBAL));
    auto* words = reinterpret_cast<unsigned*>(va);
    words[0] = 3;
    EXPECT_CU(CUDA_SUCCESS, read(va, va + 4));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(3u, words[1]);
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, va));
    EXPECT_EQ(1, managed);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&va, 4096, 0));
}

using PoolMemory = Gpu;

TEST_F(PoolMemory, FreedMemoryComesBackInStreamOrder) {
    CUmemoryPool pool = nullptr;
    ASSERT_CU(cuDeviceGetDefaultMemPool(&pool, device));
    CUstream stream = nullptr;
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAllocAsync(&va, kMiB, stream));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 9, 1024, stream));
    cuuint64_t used = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_GE(used, kMiB);
    CUmemoryPool of_pointer = nullptr;
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, va));
    EXPECT_EQ(pool, of_pointer);
    EXPECT_CU(CUDA_SUCCESS, cuMemFreeAsync(va, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(0u, used);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(va, stream));
}

TEST_F(PoolMemory, NeverRunsOutWhileFreesArePending) {
    size_t free = 0;
    size_t total = 0;
    ASSERT_CU(cuMemGetInfo(&free, &total));
    for (int i = 0; i < 8; ++i) {
        CUdeviceptr va = 0;
        ASSERT_CU(cuMemAllocAsync(&va, free / 3, nullptr));
        ASSERT_CU(fill(va, 1, 64));
        ASSERT_CU(cuMemFreeAsync(va, nullptr));
    }
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
}

using Pointers = Gpu;

TEST_F(Pointers, DeviceMemoryDescribesItself) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 4 * kMiB));
    unsigned type = 0;
    CUcontext owner = nullptr;
    int ordinal = -1;
    CUdeviceptr start = 0;
    size_t bytes = 0;
    int capable = -1;
    int mapped = 0;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        CU_POINTER_ATTRIBUTE_MAPPED};
    void* values[] = {&type, &owner, &ordinal, &start, &bytes, &capable, &mapped};
    ASSERT_CU(cuPointerGetAttributes(7, attributes, values, va + kMiB));
    EXPECT_EQ(unsigned{CU_MEMORYTYPE_DEVICE}, type);
    EXPECT_EQ(context, owner);
    EXPECT_EQ(device, ordinal);
    EXPECT_EQ(va, start);
    EXPECT_EQ(4 * kMiB, bytes);
    EXPECT_EQ(1, capable);
    EXPECT_EQ(1, mapped);
}

TEST_F(Pointers, UnknownOnesAreAnErrorAloneAndZeroTogether) {
    int on_stack = 0;
    auto va = reinterpret_cast<CUdeviceptr>(&on_stack);
    unsigned type = 77;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va));
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* value = &type;
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttributes(1, &attribute, &value, va));
    EXPECT_EQ(0u, type);
}

TEST_F(Pointers, BufferIdsAreNeverReused) {
    CUdeviceptr va = 0;
    unsigned long long first = 0;
    unsigned long long second = 0;
    ASSERT_CU(cuMemAlloc(&va, kMiB));
    ASSERT_CU(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, va));
    ASSERT_CU(cuMemFree(va));
    ASSERT_CU(cuMemAlloc(&va, kMiB));
    ASSERT_CU(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, va));
    EXPECT_NE(first, second);
}

TEST_F(Pointers, SyncMemopsIsKept) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, kMiB));
    int value = 1;
    EXPECT_CU(CUDA_SUCCESS, cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, va));
    value = 0;
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, va));
    EXPECT_EQ(1, value);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_MAPPED, va));
}
