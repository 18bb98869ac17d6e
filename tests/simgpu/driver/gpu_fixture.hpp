// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

/// Expects a driver call to return `code`, and says both by name if not.
#define EXPECT_CU(code, expression) \
    EXPECT_EQ(std::string(name_of(code)), std::string(name_of(expression)))
#define ASSERT_CU(expression) \
    ASSERT_EQ(std::string("CUDA_SUCCESS"), std::string(name_of(expression)))

inline const char* name_of(CUresult result) {
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    return name != nullptr ? name : "(no such code)";
}

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kPage = 2 * kMiB;

/// Kernels that the tests use: fill(ptr, value, n) stores words; add_one(ptr, n); poke(ptr, value)
/// stores one word; read(from, to) copies one word; block sums with shared memory and dynamic
/// shared memory.
inline constexpr const char* kKernels = R"(
.version 7.0
.target sm_70
.address_size 64

.global .align 4 .u32 counter = 41;
.const .align 4 .u32 table[4] = {10, 20, 30, 40};

.visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r6, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
DONE:
    ret;
}

.visible .entry read(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry bump(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [counter];
    add.u32 %r1, %r1, 1;
    st.global.u32 [counter], %r1;
    ld.const.u32 %r2, [table+8];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}

.visible .entry layout(.param .u8 a, .param .u64 b, .param .align 8 .b8 c[24], .param .f32 d)
{
    ret;
}

.visible .entry bounded(.param .u64 out)
.maxntid 64, 1, 1
{
    ret;
}
)";

/// A context and the kernels above, made for each test and gone after it.
class Gpu : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_CU(cuInit(0));
        ASSERT_CU(cuDeviceGet(&device, 0));
        ASSERT_CU(cuCtxCreate(&context, nullptr, 0, device));
        ASSERT_CU(cuModuleLoadData(&module, kKernels));
    }

    void TearDown() override {
        if (context == nullptr) return;
        EXPECT_CU(CUDA_SUCCESS, cuCtxDestroy(context));
    }

    CUfunction function(const char* name) {
        CUfunction found = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuModuleGetFunction(&found, module, name));
        return found;
    }

    CUresult fill(CUdeviceptr out, unsigned value, unsigned count, CUstream stream = nullptr) {
        void* arguments[] = {&out, &value, &count};
        constexpr unsigned kBlock = 128;
        return cuLaunchKernel(function("fill"), (count + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1,
                              0, stream, arguments, nullptr);
    }

    CUresult read(CUdeviceptr from, CUdeviceptr to) {
        void* arguments[] = {&from, &to};
        return cuLaunchKernel(function("read"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
    }

    static unsigned word_at(CUdeviceptr va) {
        unsigned value = 0;
        EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoH(&value, va, sizeof value));
        return value;
    }

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
};

/// Physical memory and where it is mapped, by hand.
class VmmGpu : public Gpu {
  protected:
    void SetUp() override {
        Gpu::SetUp();
        int supported = 0;
        ASSERT_CU(cuDeviceGetAttribute(
            &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
        if (supported == 0) GTEST_SKIP() << "the device has no virtual memory management";
    }

    CUmemAllocationProp on_device() const {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
        return properties;
    }

    CUmemGenericAllocationHandle create(std::size_t bytes) {
        CUmemGenericAllocationHandle handle = 0;
        CUmemAllocationProp properties = on_device();
        EXPECT_CU(CUDA_SUCCESS, cuMemCreate(&handle, bytes, &properties, 0));
        return handle;
    }

    static CUdeviceptr reserve(std::size_t bytes) {
        CUdeviceptr va = 0;
        EXPECT_CU(CUDA_SUCCESS, cuMemAddressReserve(&va, bytes, 0, 0, 0));
        return va;
    }

    CUresult grant(CUdeviceptr va, std::size_t bytes,
                   CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        CUmemAccessDesc access{};
        access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
        access.flags = flags;
        return cuMemSetAccess(va, bytes, &access, 1);
    }
};
