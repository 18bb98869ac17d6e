// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cstring>
#include <thread>

#include "gpu_fixture.hpp"

TEST(Error, NamesAndTextsExistForEveryCodeAndNoOther) {
    const char* text = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ("CUDA_ERROR_ILLEGAL_ADDRESS", text);
    EXPECT_EQ(CUDA_SUCCESS, cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ("an illegal memory access was encountered", text);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(CUresult(12345), &text));
    EXPECT_EQ(nullptr, text);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(CUDA_SUCCESS, nullptr));
}

using Device = Gpu;

TEST_F(Device, IdentifiesItself) {
    int count = 0;
    char name[64];
    CUuuid uuid{};
    size_t bytes = 0;
    int version = 0;
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetCount(&count));
    EXPECT_GE(count, 1);
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetName(name, sizeof name, device));
    EXPECT_GT(std::strlen(name), 0u);
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetUuid(&uuid, device));
    EXPECT_CU(CUDA_SUCCESS, cuDeviceTotalMem(&bytes, device));
    EXPECT_GT(bytes, 16 * kMiB);
    EXPECT_CU(CUDA_SUCCESS, cuDriverGetVersion(&version));
    EXPECT_GE(version, 13000);
}

TEST_F(Device, RefusesWhatDoesNotExist) {
    CUdevice other = 0;
    int value = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&other, 1000));
    EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&other, -1));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(nullptr, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, device));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

TEST_F(Device, AttributesAgreeWithEachOther) {
    auto get = [&](CUdevice_attribute attribute) {
        int value = -2;
        EXPECT_CU(CUDA_SUCCESS, cuDeviceGetAttribute(&value, attribute, device));
        return value;
    };
    EXPECT_EQ(32, get(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    EXPECT_EQ(1, get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
    EXPECT_GE(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
              get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    EXPECT_GE(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
              get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    EXPECT_GE(get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
              get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    EXPECT_GT(get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 0);
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) get(CUdevice_attribute(i));
}

TEST_F(Device, IsFoundByItsBusId) {
    char text[32];
    CUdevice found = -1;
    ASSERT_CU(cuDeviceGetPCIBusId(text, sizeof text, device));
    EXPECT_CU(CUDA_SUCCESS, cuDeviceGetByPCIBusId(&found, text));
    EXPECT_EQ(device, found);
}

using ContextCalls = Gpu;

TEST_F(ContextCalls, StackIsPerThread) {
    CUcontext current = nullptr;
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    EXPECT_EQ(context, current);
    std::thread([] {
        CUcontext other = reinterpret_cast<CUcontext>(1);
        size_t free = 0;
        size_t total = 0;
        EXPECT_CU(CUDA_SUCCESS, cuCtxGetCurrent(&other));
        EXPECT_EQ(nullptr, other);
        EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo(&free, &total));
        EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&other));
    }).join();
}

TEST_F(ContextCalls, PushAndPopNest) {
    CUcontext second = nullptr;
    CUcontext popped = nullptr;
    ASSERT_CU(cuCtxCreate(&second, nullptr, CU_CTX_SCHED_SPIN, device));
    EXPECT_CU(CUDA_SUCCESS, cuCtxPushCurrent(context));
    EXPECT_CU(CUDA_SUCCESS, cuCtxPopCurrent(&popped));
    EXPECT_EQ(context, popped);
    unsigned flags = 0;
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetFlags(&flags));
    EXPECT_EQ(unsigned{CU_CTX_SCHED_SPIN}, flags & CU_CTX_SCHED_MASK);
    EXPECT_CU(CUDA_SUCCESS, cuCtxDestroy(second));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetCurrent(&popped));
    EXPECT_EQ(context, popped);
}

TEST_F(ContextCalls, DestroyedOneIsRecognised) {
    CUcontext second = nullptr;
    ASSERT_CU(cuCtxCreate(&second, nullptr, 0, device));
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, kMiB));
    std::thread([&] {
        ASSERT_CU(cuCtxSetCurrent(second));
        ASSERT_CU(cuCtxDestroy(second));
    }).join();
    EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, cuCtxSetCurrent(context));
}

TEST_F(ContextCalls, DestroyingGivesMemoryBack) {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    ASSERT_CU(cuMemGetInfo(&before, &total));
    CUcontext second = nullptr;
    ASSERT_CU(cuCtxCreate(&second, nullptr, 0, device));
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 8 * kMiB));
    ASSERT_CU(cuCtxDestroy(second));
    ASSERT_CU(cuCtxSetCurrent(context));
    ASSERT_CU(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
}

TEST_F(ContextCalls, PrimaryOneIsCountedAndKeepsItsHandle) {
    CUcontext first = nullptr;
    CUcontext second = nullptr;
    unsigned flags = 0;
    int active = -1;
    ASSERT_CU(cuDevicePrimaryCtxRetain(&first, device));
    ASSERT_CU(cuDevicePrimaryCtxRetain(&second, device));
    EXPECT_EQ(first, second);
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(first));
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(device));
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(device, &flags, &active));
    EXPECT_EQ(1, active);
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(device));
    EXPECT_CU(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(device, &flags, &active));
    EXPECT_EQ(0, active);
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(device));
}

TEST_F(ContextCalls, LimitsAreKept) {
    size_t value = 0;
    EXPECT_CU(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(4096u, value);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
}

TEST_F(ContextCalls, InvalidHandlesAreErrorsNotCrashes) {
    auto bad = reinterpret_cast<CUcontext>(0x1234560);
    CUdevice other = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(bad));
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(bad));
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(bad));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetDevice(&other));
    EXPECT_EQ(device, other);
}
