// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Device errors and, on simgpu only, errors on demand. On a GPU run each test in a process of its
// own: an illegal access there poisons the whole process.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gpu_fixture.hpp"

using DeviceErrors = VmmGpu;

TEST_F(DeviceErrors, UnmappedMemoryFaultsAndSticks) {
    CUdeviceptr va = reserve(kPage);
    EXPECT_CU(CUDA_SUCCESS, fill(va, 1, 16)) << "the launch itself is fine";
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CUdeviceptr other = 0;
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&other, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, fill(va, 1, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(nullptr));
    CUstream stream = nullptr;
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamCreate(&stream, 0));
    ASSERT_CU(cuCtxDestroy(context));
    ASSERT_CU(cuCtxCreate(&context, nullptr, 0, device));
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&other, 16)) << "a new context is whole";
}

TEST_F(DeviceErrors, AccessThatWasNotGrantedFaults) {
    CUdeviceptr va = reserve(kPage);
    auto handle = create(kPage);
    ASSERT_CU(cuMemMap(va, kPage, 0, handle, 0));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 1, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
}

TEST_F(DeviceErrors, ReadOnlyMemoryIsReadAndNotWritten) {
    CUdeviceptr va = reserve(kPage);
    CUdeviceptr out = 0;
    auto handle = create(kPage);
    ASSERT_CU(cuMemAlloc(&out, 16));
    ASSERT_CU(cuMemMap(va, kPage, 0, handle, 0));
    ASSERT_CU(grant(va, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ));
    EXPECT_CU(CUDA_SUCCESS, read(va, out));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, fill(va, 1, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, cuMemUnmap(va, kPage));
    EXPECT_CU(CUDA_SUCCESS, cuMemRelease(handle));
}

TEST_F(DeviceErrors, PageableHostMemoryFaults) {
    std::vector<unsigned> host(4096);
    EXPECT_CU(CUDA_SUCCESS, fill(reinterpret_cast<CUdeviceptr>(host.data()), 1, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(DeviceErrors, FreedMemoryFaults) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 4 * kMiB));
    ASSERT_CU(cuMemFree(va));
    EXPECT_CU(CUDA_SUCCESS, fill(va, 1, 16));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(DeviceErrors, CopiesAndSetsFaultToo) {
    CUdeviceptr va = reserve(kPage);
    EXPECT_NE(CUDA_SUCCESS,
              cuMemsetD32(va, 0, 16) == CUDA_SUCCESS ? cuCtxSynchronize() : CUDA_ERROR_UNKNOWN);
}

namespace {

/// simgpu's own functions; null on a real driver.
template <typename Function>
Function* control(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

class OnDemand : public VmmGpu {
  protected:
    void SetUp() override {
        set_faults = control<int(const char*)>("simgpuFaultSet");
        count = control<std::uint64_t(const char*)>("simgpuCallCount");
        if (set_faults == nullptr || count == nullptr) GTEST_SKIP() << "not on simgpu";
        VmmGpu::SetUp();
    }
    void TearDown() override {
        if (set_faults != nullptr) set_faults("");
        VmmGpu::TearDown();
    }

    int (*set_faults)(const char*) = nullptr;
    std::uint64_t (*count)(const char*) = nullptr;
};

}  // namespace

TEST_F(OnDemand, TheNthCallFailsAndHasNoEffect) {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    ASSERT_EQ(0, set_faults("cuMemAlloc:2=2"));
    CUdeviceptr va = 0;
    CUdeviceptr untouched = 77;
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, kMiB));
    ASSERT_CU(cuMemGetInfo(&before, &total));
    EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&untouched, kMiB));
    EXPECT_EQ(77u, untouched);
    ASSERT_CU(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&untouched, kMiB));
}

TEST_F(OnDemand, RulesSelectByNumberFromNumberAndEvery) {
    CUcontext current = nullptr;
    ASSERT_EQ(0, set_faults("cuCtxGetCurrent:3+=999,cuCtxGetDevice:every2=700"));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    EXPECT_CU(CUDA_ERROR_UNKNOWN, cuCtxGetCurrent(&current));
    EXPECT_CU(CUDA_ERROR_UNKNOWN, cuCtxGetCurrent(&current));
    CUdevice found = 0;
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetDevice(&found));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxGetDevice(&found));
    EXPECT_CU(CUDA_SUCCESS, cuCtxGetDevice(&found));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize()) << "an error on demand is not the device's";
}

TEST_F(OnDemand, NonsenseIsRefusedWhole) {
    EXPECT_NE(0, set_faults("cuMemAlloc"));
    EXPECT_NE(0, set_faults("cuMemAlloc:0=2"));
    EXPECT_NE(0, set_faults("cuNoSuchCall:1=2"));
    EXPECT_NE(0, set_faults("cuMemAlloc:1=2,cuMemFree:x=1"));
    CUdeviceptr va = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, 16));
}

TEST_F(OnDemand, CallsAreCounted) {
    std::uint64_t all = count("cuMemAlloc");
    std::uint64_t newest = count("cuMemAlloc_v2");
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 16));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&va, 0));
    EXPECT_EQ(all + 2, count("cuMemAlloc"));
    EXPECT_EQ(newest + 2, count("cuMemAlloc_v2"));
    EXPECT_EQ(0u, count("cuNoSuchCall"));
}

TEST_F(OnDemand, WhatIsNotBuiltSaysSo) {
    EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuDestroyExternalSemaphore(nullptr));
    const void* table = nullptr;
    CUuuid id{};
    EXPECT_NE(CUDA_SUCCESS, cuGetExportTable(&table, &id));
    EXPECT_EQ(nullptr, table);
}

namespace {

/// print() may print; deep(out) has 256 bytes of local memory for each thread.
constexpr const char* kHungry = R"(
.version 7.0
.target sm_70
.address_size 64

.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};

.visible .entry print()
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd2, %rd1;
    mov.u64 %rd3, 0;
    {
    .param .b64 p0;
    st.param.b64 [p0], %rd2;
    .param .b64 p1;
    st.param.b64 [p1], %rd3;
    .param .b32 r0;
    call.uni (r0), vprintf, (p0, p1);
    ld.param.b32 %r1, [r0];
    }
    ret;
}

.visible .entry deep(.param .u64 out)
{
    .local .align 8 .b8 depot[256];
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 7;
    st.local.u32 [depot+128], %r1;
    ld.local.u32 %r2, [depot+128];
    st.global.u32 [%rd1], %r2;
    ret;
}
)";

std::size_t free_now() {
    std::size_t free = 0;
    EXPECT_CU(CUDA_SUCCESS, cuMemGetInfo(&free, nullptr));
    return free;
}

}  // namespace

TEST_F(OnDemand, WhatAContextTakesItselfIsCounted) {
    std::size_t buffer = 0;
    ASSERT_CU(cuCtxGetLimit(&buffer, CU_LIMIT_PRINTF_FIFO_SIZE));
    const std::size_t at_first = free_now();
    CUmodule hungry = nullptr;
    ASSERT_CU(cuModuleLoadData(&hungry, kHungry));
    const std::size_t with_module = free_now();
    EXPECT_LE(with_module + buffer, at_first);
    CUfunction deep = nullptr;
    CUdeviceptr out = 0;
    void* arguments[] = {&out};
    ASSERT_CU(cuModuleGetFunction(&deep, hungry, "deep"));
    ASSERT_CU(cuMemAlloc(&out, 4));
    const std::size_t before_launch = free_now();
    constexpr unsigned kBlocks = 64, kThreads = 256;
    ASSERT_CU(cuLaunchKernel(deep, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr));
    ASSERT_CU(cuCtxSynchronize());
    EXPECT_LE(free_now() + std::size_t{kBlocks} * kThreads * 256, before_launch);
    const std::size_t after_launch = free_now();
    ASSERT_CU(cuLaunchKernel(deep, 1, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr));
    ASSERT_CU(cuCtxSynchronize());
    EXPECT_EQ(after_launch, free_now());
}

TEST(ProcessLife, CallsBeforeInitAndAfterForkAreRefused) {
    // A child of its own for each, so that this process's state does not matter.
    pid_t child = fork();
    if (child == 0) {
        int devices = 0;
        bool initialised_before = cuDeviceGetCount(&devices) == CUDA_SUCCESS;
        CUresult after_init = cuInit(0);
        // Parent had initialised: nothing works in the child. Else cuInit makes it work.
        bool right = initialised_before
                         ? false
                         : (after_init == CUDA_SUCCESS || after_init == CUDA_ERROR_NOT_INITIALIZED);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST(ProcessLife, CallsAfterExitHandlersAreRefused) {
    // In a process of its own, whose first cuInit it is.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            // Registered before cuInit, so it runs after the driver's own handler.
            std::atexit([] {
                CUdeviceptr va = 0;
                _exit(cuMemAlloc(&va, 16) == CUDA_ERROR_DEINITIALIZED ? 42 : 43);
            });
            CUcontext context = nullptr;
            if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, nullptr, 0, 0) != CUDA_SUCCESS)
                _exit(44);
            std::exit(0);
        },
        ::testing::ExitedWithCode(42), "");
}

/// Several threads with a stream each, all calls at once.
TEST(Stress, ThreadsDoNotDisturbEachOther) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuCtxCreate(&context, nullptr, 0, 0));
    ASSERT_CU(cuModuleLoadData(&module, kKernels));
    ASSERT_CU(cuModuleGetFunction(&fill, module, "fill"));
    std::atomic<int> wrong{0};
    auto work = [&](unsigned seed) {
        CUstream stream = nullptr;
        wrong += cuCtxSetCurrent(context) != CUDA_SUCCESS;
        wrong += cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
        for (unsigned i = 1; i < 40; ++i) {
            CUdeviceptr va = 0;
            unsigned value = seed * 1000 + i;
            unsigned words = 4096;
            unsigned seen = 0;
            wrong += cuMemAlloc(&va, words * 4) != CUDA_SUCCESS;
            void* arguments[] = {&va, &value, &words};
            wrong += cuLaunchKernel(fill, 32, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr) !=
                     CUDA_SUCCESS;
            wrong += cuMemcpyDtoHAsync(&seen, va + 4 * (words - 1), 4, stream) != CUDA_SUCCESS;
            wrong += cuStreamSynchronize(stream) != CUDA_SUCCESS;
            wrong += seen != value;
            wrong += cuMemFree(va) != CUDA_SUCCESS;
        }
        wrong += cuStreamDestroy(stream) != CUDA_SUCCESS;
    };
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(0, wrong.load());
    EXPECT_CU(CUDA_SUCCESS, cuCtxDestroy(context));
}
