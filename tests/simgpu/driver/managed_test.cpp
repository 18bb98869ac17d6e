// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Managed memory and what is advised about it; what is refused to memory that cannot be shared.

#include "graph_fixture.hpp"

namespace {

class Managed : public GraphGpu {
  protected:
    static constexpr std::size_t kBytes = 4 * kMiB;

    void SetUp() override {
        GraphGpu::SetUp();
        int supported = 0;
        ASSERT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                       device));
        if (supported == 0) GTEST_SKIP() << "no concurrent access to managed memory";
        ASSERT_CU(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    }

    int number(CUmem_range_attribute attribute, CUdeviceptr va, std::size_t bytes) {
        int value = -99;
        EXPECT_CU(CUDA_SUCCESS, cuMemRangeGetAttribute(&value, sizeof value, attribute, va, bytes));
        return value;
    }

    CUmemLocation on_device() const { return {CU_MEM_LOCATION_TYPE_DEVICE, {device}}; }

    CUdeviceptr managed = 0;
};

}  // namespace

TEST_F(Managed, IsUsedByBothSides) {
    auto* words = reinterpret_cast<unsigned*>(managed);
    words[3] = 17;
    EXPECT_CU(CUDA_SUCCESS, fill(managed, 4, 3, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(4u, words[2]);
    EXPECT_EQ(17u, words[3]);
}

TEST_F(Managed, RemembersAdvice) {
    EXPECT_EQ(0, number(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, kBytes));
    EXPECT_CU(CUDA_SUCCESS,
              cuMemAdvise(managed, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device()));
    EXPECT_EQ(1, number(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, kBytes));
    EXPECT_CU(CUDA_SUCCESS,
              cuMemAdvise(managed, kBytes / 2, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device()));
    EXPECT_EQ(device, number(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, kBytes / 2));
    EXPECT_EQ(CU_DEVICE_INVALID,
              number(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, kBytes));
    EXPECT_CU(CUDA_SUCCESS,
              cuMemAdvise(managed, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, on_device()));
    int devices[2] = {-99, -99};
    EXPECT_CU(CUDA_SUCCESS,
              cuMemRangeGetAttribute(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                     managed, kBytes));
    EXPECT_EQ(device, devices[0]);
    EXPECT_EQ(CU_DEVICE_INVALID, devices[1]);
}

TEST_F(Managed, RemembersWhereItWasPrefetched) {
    EXPECT_EQ(CU_DEVICE_INVALID,
              number(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, kBytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemPrefetchAsync(managed, kBytes, on_device(), 0, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(device, number(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, kBytes));
    CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, {0}};
    EXPECT_CU(CUDA_SUCCESS, cuMemPrefetchAsync(managed, kBytes, host, 0, stream));
    EXPECT_EQ(CU_DEVICE_CPU,
              number(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, kBytes));
}

TEST_F(Managed, RefusesWrongAdvice) {
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemAdvise(memory, kWords * 4, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device()));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemAdvise(managed, kBytes + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, on_device()));
    CUmemLocation nowhere{CU_MEM_LOCATION_TYPE_DEVICE, {1000}};
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE,
              cuMemAdvise(managed, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere));
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(managed, kBytes, nowhere, 0, stream));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(memory, 64, on_device(), 0, stream));
}

TEST_F(Managed, BatchesAreCheckedAsAWhole) {
    CUdeviceptr ranges[] = {managed, managed + kMiB};
    std::size_t sizes[] = {kMiB, kMiB};
    CUmemLocation where = on_device();
    std::size_t first = 0;
    EXPECT_CU(CUDA_SUCCESS,
              cuMemPrefetchBatchAsync(ranges, sizes, 2, &where, &first, 1, 0, stream));
    EXPECT_EQ(device, number(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, 2 * kMiB));
    ranges[1] = memory;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemPrefetchBatchAsync(ranges, sizes, 2, &where, &first, 1, 0, stream));
}

using SharedOut = VmmGpu;

TEST_F(SharedOut, HandlesWithoutATypeAreNotExported) {
    CUmemGenericAllocationHandle handle = create(kPage);
    int file = -1;
    EXPECT_CU(
        CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
}

TEST_F(SharedOut, DmaBuffersNeedTheAttribute) {
    int supported = 0;
    ASSERT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device));
    if (supported != 0) GTEST_SKIP() << "the device has DMA buffers";
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, kPage));
    int file = -1;
    EXPECT_CU(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemGetHandleForAddressRange(&file, va, kPage, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuMemGetHandleForAddressRange(&file, va, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

TEST_F(SharedOut, MulticastNeedsTheAttribute) {
    int supported = 0;
    ASSERT_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device));
    if (supported != 0) GTEST_SKIP() << "the device has multicast";
    CUmulticastObjectProp properties{};
    properties.numDevices = 2;
    properties.size = kPage;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_NE(CUDA_SUCCESS, cuMulticastCreate(&handle, &properties));
}

// As a driver that can share out no part of a device: a program goes on with all of it.
TEST_F(SharedOut, GreenContextsAreRefusedAtTheFirstCall) {
    CUdevResource resource{};
    const CUresult asked = cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM);
    if (asked == CUDA_SUCCESS) GTEST_SKIP() << "the device has green contexts";
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, asked);
    CUgreenCtx green = nullptr;
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED,
              cuGreenCtxCreate(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM));
}
