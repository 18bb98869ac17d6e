// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <vector>

#include "gpu_fixture.hpp"

TEST_F(VmmGpu, GranularityIsAPage) {
    size_t bytes = 0;
    CUmemAllocationProp properties = on_device();
    EXPECT_CU(CUDA_SUCCESS,
              cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT_EQ(kPage, bytes);
    EXPECT_CU(
        CUDA_ERROR_INVALID_VALUE,
        cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

TEST_F(VmmGpu, MappedAndGrantedMemoryWorks) {
    CUdeviceptr va = reserve(2 * kPage);
    auto handle = create(2 * kPage);
    EXPECT_CU(CUDA_SUCCESS, cuMemMap(va, 2 * kPage, 0, handle, 0));
    EXPECT_CU(CUDA_SUCCESS, grant(va, 2 * kPage));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 6, 2 * kPage / 4));
    EXPECT_EQ(6u, word_at(va + 2 * kPage - 4));
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, 2 * kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
    EXPECT_CU(CUDA_SUCCESS, cuMemAddressFree(va, 2 * kPage));
}

TEST_F(VmmGpu, OneHandleUnderSeveralAddressesIsOneMemory) {
    CUdeviceptr first = reserve(kPage);
    CUdeviceptr second = reserve(kPage);
    auto handle = create(kPage);
    ASSERT_CU(cuMemMap(first, kPage, 0, handle, 0));
    ASSERT_CU(cuMemMap(second, kPage, 0, handle, 0));
    ASSERT_CU(grant(first, kPage));
    ASSERT_CU(grant(second, kPage));
    EXPECT_CU(CUDA_SUCCESS, fill(first, 11, 1024));
    EXPECT_EQ(11u, word_at(second + 4092));
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD32(second, 12, 1));
    EXPECT_EQ(12u, word_at(first));
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(first, kPage));
    EXPECT_EQ(12u, word_at(second));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
    EXPECT_EQ(12u, word_at(second)) << "a mapping keeps the memory";
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(second, kPage));
}

TEST_F(VmmGpu, AddressKeepsItsDataWhenItsMemoryIsSwapped) {
    CUdeviceptr va = reserve(kPage);
    CUdeviceptr alias = reserve(kPage);
    auto old_handle = create(kPage);
    auto new_handle = create(kPage);
    ASSERT_CU(cuMemMap(va, kPage, 0, old_handle, 0));
    ASSERT_CU(grant(va, kPage));
    ASSERT_CU(cuMemMap(alias, kPage, 0, new_handle, 0));
    ASSERT_CU(grant(alias, kPage));
    ASSERT_CU(fill(va, 21, kPage / 4));
    ASSERT_CU(cuMemcpyDtoD(alias, va, kPage));
    ASSERT_CU(cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemMap(va, kPage, 0, new_handle, 0));
    EXPECT_CU(CUDA_SUCCESS, grant(va, kPage));
    EXPECT_EQ(21u, word_at(va + kPage - 4));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(old_handle));
}

TEST_F(VmmGpu, HostMemoryIsReadByBothSides) {
    int node = -1;
    int supported = 0;
    ASSERT_CU(cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device));
    ASSERT_CU(cuDeviceGetAttribute(
        &supported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    if (supported == 0 || node < 0) GTEST_SKIP() << "no host memory behind device addresses";
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    ASSERT_CU(cuMemGetInfo(&before, &total));
    CUmemAllocationProp properties = on_device();
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = node;
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_CU(cuMemCreate(&handle, kPage, &properties, 0));
    ASSERT_CU(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after) << "host memory is not the device's";
    CUdeviceptr va = reserve(kPage);
    ASSERT_CU(cuMemMap(va, kPage, 0, handle, 0));
    CUmemAccessDesc access[2] = {};
    access[0].location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    access[1].location = properties.location;
    access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_CU(cuMemSetAccess(va, kPage, access, 2));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 31, 1024));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    auto* words = reinterpret_cast<volatile unsigned*>(va);
    EXPECT_EQ(31u, words[1023]);
    words[0] = 32;
    EXPECT_EQ(32u, word_at(va));
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
}

TEST_F(VmmGpu, HostAccessToDeviceMemoryIsRefused) {
    CUdeviceptr va = reserve(kPage);
    auto handle = create(kPage);
    ASSERT_CU(cuMemMap(va, kPage, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, {0}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_NE(CUDA_SUCCESS, cuMemSetAccess(va, kPage, &access, 1));
}

TEST_F(VmmGpu, EachStepAsksForTheOneBefore) {
    CUdeviceptr va = reserve(2 * kPage);
    auto handle = create(kPage);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, grant(va, kPage)) << "nothing is mapped yet";
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, kPage, kPage, handle, 0))
        << "offsets must be 0";
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(va + 4096, kPage, 0, handle, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, kPage / 2, 0, handle, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemMap(va, kPage, 0, handle, 0));
    EXPECT_NE(CUDA_SUCCESS, cuMemMap(va, kPage, 0, handle, 0)) << "mapped already";
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, grant(va, 2 * kPage)) << "half of it is not mapped";
    EXPECT_NE(CUDA_SUCCESS, cuMemAddressFree(va, 2 * kPage)) << "still in use";
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemAddressFree(va, 2 * kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(va, 2 * kPage));
}

TEST_F(VmmGpu, PartOfAMappingCannotBeUnmapped) {
    CUdeviceptr va = reserve(2 * kPage);
    auto handle = create(2 * kPage);
    ASSERT_CU(cuMemMap(va, 2 * kPage, 0, handle, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, 2 * kPage));
}

TEST_F(VmmGpu, CreateChecksItsArguments) {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties = on_device();
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kPage / 2, &properties, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &properties, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(nullptr, kPage, &properties, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kPage, nullptr, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kPage, &properties, 1));
    properties.location.id = 1000;
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, kPage, &properties, 0));
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kPage, &properties, 0));
}

TEST_F(VmmGpu, PhysicalMemoryCountsUntilTheLastMappingGoes) {
    size_t before = 0;
    size_t during = 0;
    size_t after = 0;
    size_t total = 0;
    ASSERT_CU(cuMemGetInfo(&before, &total));
    CUdeviceptr va = reserve(4 * kPage);
    auto handle = create(4 * kPage);
    ASSERT_CU(cuMemMap(va, 4 * kPage, 0, handle, 0));
    ASSERT_CU(cuMemRelease(handle));
    ASSERT_CU(cuMemGetInfo(&during, &total));
    EXPECT_EQ(before - 4 * kPage, during);
    ASSERT_CU(cuMemUnmap(va, 4 * kPage));
    ASSERT_CU(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
}

TEST_F(VmmGpu, HandlesAndAccessAreFoundAgain) {
    CUdeviceptr va = reserve(kPage);
    auto handle = create(kPage);
    ASSERT_CU(cuMemMap(va, kPage, 0, handle, 0));
    unsigned long long flags = 77;
    CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    EXPECT_CU(CUDA_SUCCESS, cuMemGetAccess(&flags, &location, va));
    EXPECT_EQ(0u, flags);
    ASSERT_CU(grant(va, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ));
    EXPECT_CU(CUDA_SUCCESS, cuMemGetAccess(&flags, &location, va));
    EXPECT_EQ(1u, flags);
    CUmemGenericAllocationHandle found = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemRetainAllocationHandle(&found, reinterpret_cast<void*>(va + 100)));
    CUmemAllocationProp properties{};
    EXPECT_CU(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&properties, found));
    EXPECT_EQ(CU_MEM_ALLOCATION_TYPE_PINNED, properties.type);
    EXPECT_EQ(device, properties.location.id);
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(found));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
}

TEST_F(VmmGpu, PointersTellReservationAndMapping) {
    CUdeviceptr va = reserve(4 * kPage);
    auto handle = create(kPage);
    ASSERT_CU(cuMemMap(va + kPage, kPage, 0, handle, 0));
    ASSERT_CU(grant(va + kPage, kPage));
    CUdeviceptr inside = va + kPage + 100;
    CUdeviceptr start = 0;
    CUdeviceptr mapping = 0;
    size_t bytes = 0;
    size_t mapping_bytes = 0;
    int mapped = -1;
    int capable = -1;
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&mapping, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, inside));
    EXPECT_CU(CUDA_SUCCESS,
              cuPointerGetAttribute(&mapping_bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inside));
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, inside));
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(
                                &capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inside));
    EXPECT_EQ(va, start);
    EXPECT_EQ(4 * kPage, bytes);
    EXPECT_EQ(va + kPage, mapping);
    EXPECT_EQ(kPage, mapping_bytes);
    EXPECT_EQ(1, mapped);
    EXPECT_EQ(0, capable);
    EXPECT_CU(CUDA_SUCCESS, cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, va));
    EXPECT_EQ(0, mapped);
    CUipcMemHandle ipc{};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&ipc, va + kPage));
    EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&start, &bytes, inside));
    int value = 1;
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED,
              cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(va + kPage));
}
