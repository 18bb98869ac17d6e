// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <atomic>
#include <cstring>
#include <string>

#include "gpu_fixture.hpp"

using Modules = Gpu;

TEST_F(Modules, GlobalsHaveAddressesAndValues) {
    CUdeviceptr va = 0;
    size_t bytes = 0;
    EXPECT_CU(CUDA_SUCCESS, cuModuleGetGlobal(&va, &bytes, module, "counter"));
    EXPECT_EQ(4u, bytes);
    EXPECT_EQ(41u, word_at(va));
    EXPECT_CU(CUDA_SUCCESS, cuModuleGetGlobal(&va, nullptr, module, "table"));
    EXPECT_EQ(40u, word_at(va + 12));
    EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&va, &bytes, module, "absent"));
    CUdeviceptr out = 0;
    ASSERT_CU(cuMemAlloc(&out, 4));
    void* arguments[] = {&out};
    EXPECT_CU(CUDA_SUCCESS,
              cuLaunchKernel(function("bump"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_EQ(72u, word_at(out));
}

TEST_F(Modules, FunctionsAreFoundCountedAndNamed) {
    CUfunction found = nullptr;
    unsigned count = 0;
    const char* name = nullptr;
    CUmodule owner = nullptr;
    EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&found, module, "absent"));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE,
              cuModuleGetFunction(&found, reinterpret_cast<CUmodule>(0x770), "fill"));
    EXPECT_CU(CUDA_SUCCESS, cuModuleGetFunctionCount(&count, module));
    EXPECT_EQ(5u, count);
    CUfunction all[8] = {};
    EXPECT_CU(CUDA_SUCCESS, cuModuleEnumerateFunctions(all, 8, module));
    EXPECT_NE(nullptr, all[4]);
    EXPECT_EQ(nullptr, all[5]);
    EXPECT_CU(CUDA_SUCCESS, cuFuncGetName(&name, function("fill")));
    EXPECT_STREQ("fill", name);
    EXPECT_CU(CUDA_SUCCESS, cuFuncGetModule(&owner, function("fill")));
    EXPECT_EQ(module, owner);
}

TEST_F(Modules, ParameterLayoutIsKnown) {
    CUfunction layout = function("layout");
    size_t offset = 0;
    size_t bytes = 0;
    const size_t expected[][2] = {{0, 1}, {8, 8}, {16, 24}, {40, 4}};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_CU(CUDA_SUCCESS, cuFuncGetParamInfo(layout, i, &offset, &bytes));
        EXPECT_EQ(expected[i][0], offset);
        EXPECT_EQ(expected[i][1], bytes);
    }
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(layout, 4, &offset, &bytes));
    EXPECT_CU(CUDA_SUCCESS, cuFuncGetParamInfo(layout, 1, &offset, nullptr));
}

TEST_F(Modules, BadTextIsRefusedWithAReason) {
    char log[512] = "untouched";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule bad = nullptr;
    EXPECT_CU(
        CUDA_ERROR_INVALID_PTX,
        cuModuleLoadDataEx(&bad, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {",
                           2, options, values));
    EXPECT_STRNE("untouched", log);
    EXPECT_GT(std::strlen(log), 0u);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&bad, nullptr));
    EXPECT_CU(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&bad, "/nonexistent.ptx"));
}

TEST_F(Modules, UnloadedOnesAreGone) {
    CUfunction fill_function = function("fill");
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 64));
    unsigned value = 1;
    void* arguments[] = {&va, &value, &value};
    ASSERT_CU(cuModuleUnload(module));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(fill_function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
}

using Libraries = Gpu;

TEST_F(Libraries, KernelsAreLaunchedLikeFunctions) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction of_kernel = nullptr;
    unsigned count = 0;
    ASSERT_CU(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "absent"));
    ASSERT_CU(cuLibraryGetKernel(&kernel, library, "fill"));
    EXPECT_CU(CUDA_SUCCESS, cuLibraryGetKernelCount(&count, library));
    EXPECT_EQ(5u, count);
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 64));
    unsigned value = 13;
    unsigned words = 16;
    void* arguments[] = {&va, &value, &words};
    EXPECT_CU(CUDA_SUCCESS, cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 16, 1, 1,
                                           0, nullptr, arguments, nullptr));
    EXPECT_EQ(13u, word_at(va + 60));
    value = 14;
    ASSERT_CU(cuKernelGetFunction(&of_kernel, kernel));
    EXPECT_CU(CUDA_SUCCESS,
              cuLaunchKernel(of_kernel, 1, 1, 1, 16, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_EQ(14u, word_at(va));
    size_t offset = 0;
    size_t bytes = 0;
    EXPECT_CU(CUDA_SUCCESS, cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
    EXPECT_EQ(8u, offset);
    CUdeviceptr global = 0;
    EXPECT_CU(CUDA_SUCCESS, cuLibraryGetGlobal(&global, &bytes, library, "counter"));
    EXPECT_EQ(41u, word_at(global));
    EXPECT_CU(CUDA_SUCCESS, cuLibraryUnload(library));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&kernel, library, "fill"));
}

using Launches = Gpu;

TEST_F(Launches, ParametersAreTakenAtTheCall) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 64));
    unsigned value = 1;
    unsigned words = 16;
    CUdeviceptr target = va;
    void* arguments[] = {&target, &value, &words};
    ASSERT_CU(cuLaunchKernel(function("fill"), 1, 1, 1, 16, 1, 1, 0, nullptr, arguments, nullptr));
    value = 2;
    target = 0;
    EXPECT_EQ(1u, word_at(va));
}

TEST_F(Launches, ExtraBufferCarriesParameters) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 64));
    struct {
        CUdeviceptr out;
        unsigned value;
        unsigned words;
    } block{va, 55, 16};
    size_t bytes = sizeof block;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    EXPECT_CU(CUDA_SUCCESS,
              cuLaunchKernel(function("fill"), 1, 1, 1, 16, 1, 1, 0, nullptr, nullptr, extra));
    EXPECT_EQ(55u, word_at(va + 60));
    void* arguments[] = {&block.out, &block.value, &block.words};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernel(function("fill"), 1, 1, 1, 16, 1, 1, 0, nullptr, arguments, extra));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernel(function("fill"), 1, 1, 1, 16, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(Launches, LimitsAreChecked) {
    CUdeviceptr va = 0;
    unsigned value = 0;
    void* arguments[] = {&va, &value, &value};
    CUfunction f = function("fill");
    auto try_shape = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared) {
        return cuLaunchKernel(f, gx, gy, 1, bx, by, bz, shared, nullptr, arguments, nullptr);
    };
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(0, 1, 1, 1, 1, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(1, 1, 2048, 1, 1, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(1, 1, 64, 32, 1, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(1, 1, 1, 1, 65, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(1, 70000, 1, 1, 1, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, try_shape(1, 1, 1, 1, 1, 49 * 1024));
    EXPECT_CU(CUDA_SUCCESS,
              cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024));
    EXPECT_CU(CUDA_SUCCESS, try_shape(1, 1, 1, 1, 1, 49 * 1024));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function("bounded"), 1, 1, 1, 65, 1, 1, 0,
                                                       nullptr, arguments, nullptr));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(reinterpret_cast<CUfunction>(0x880), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             arguments, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(Launches, ConfigurationsWork) {
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 64));
    unsigned value = 91;
    unsigned words = 16;
    void* arguments[] = {&va, &value, &words};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 16;
    config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    EXPECT_CU(CUDA_SUCCESS, cuLaunchKernelEx(&config, function("fill"), arguments, nullptr));
    EXPECT_EQ(91u, word_at(va));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernelEx(nullptr, function("fill"), arguments, nullptr));
}

TEST_F(Launches, OccupancyFitsTheDevice) {
    int blocks = 0;
    int grid = 0;
    int block = 0;
    int per_sm = 0;
    ASSERT_CU(
        cuDeviceGetAttribute(&per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
    EXPECT_CU(CUDA_SUCCESS,
              cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("fill"), 256, 0));
    EXPECT_GT(blocks, 0);
    EXPECT_LE(blocks * 256, per_sm);
    EXPECT_CU(CUDA_SUCCESS,
              cuOccupancyMaxPotentialBlockSize(&grid, &block, function("fill"), nullptr, 0, 0));
    EXPECT_GT(block, 0);
    EXPECT_GT(grid, 0);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, function("fill"), 256, 0));
}

using Streams = Gpu;

TEST_F(Streams, OrderHoldsWithinAndAcross) {
    CUstream first = nullptr;
    CUstream second = nullptr;
    CUevent ready = nullptr;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    ASSERT_CU(cuMemAlloc(&a, kMiB));
    ASSERT_CU(cuMemAlloc(&b, kMiB));
    ASSERT_CU(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    ASSERT_CU(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 1; i < 20; ++i) {
        ASSERT_CU(fill(a, i, kMiB / 4, first));
        ASSERT_CU(cuEventRecord(ready, first));
        ASSERT_CU(cuStreamWaitEvent(second, ready, 0));
        ASSERT_CU(cuMemcpyDtoDAsync(b, a, kMiB, second));
        ASSERT_CU(cuEventRecord(ready, second));
        ASSERT_CU(cuStreamWaitEvent(first, ready, 0));
    }
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(second));
    EXPECT_EQ(19u, word_at(b + kMiB - 4));
    EXPECT_CU(CUDA_SUCCESS, cuEventQuery(ready));
    EXPECT_CU(CUDA_SUCCESS, cuStreamDestroy(first));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(first));
    EXPECT_CU(CUDA_SUCCESS, cuEventDestroy(ready));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(ready));
}

TEST_F(Streams, TellTheirProperties) {
    CUstream stream = nullptr;
    int least = 0;
    int greatest = 0;
    int priority = 0;
    unsigned flags = 0;
    unsigned long long id = 0;
    unsigned long long other_id = 0;
    CUcontext owner = nullptr;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    ASSERT_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_LT(greatest, least);
    ASSERT_CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
    EXPECT_CU(CUDA_SUCCESS, cuStreamGetPriority(stream, &priority));
    EXPECT_EQ(greatest, priority);
    EXPECT_CU(CUDA_SUCCESS, cuStreamGetFlags(stream, &flags));
    EXPECT_EQ(unsigned{CU_STREAM_NON_BLOCKING}, flags);
    EXPECT_CU(CUDA_SUCCESS, cuStreamGetId(stream, &id));
    EXPECT_CU(CUDA_SUCCESS, cuStreamGetId(nullptr, &other_id));
    EXPECT_NE(id, other_id);
    EXPECT_CU(CUDA_SUCCESS, cuStreamGetCtx(stream, &owner));
    EXPECT_EQ(context, owner);
    EXPECT_CU(CUDA_SUCCESS, cuStreamIsCapturing(stream, &capture));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, capture);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 77));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(nullptr, 0));
}

TEST_F(Streams, EventsMeasureTime) {
    CUevent start = nullptr;
    CUevent end = nullptr;
    float milliseconds = -1;
    CUdeviceptr va = 0;
    ASSERT_CU(cuMemAlloc(&va, 4 * kMiB));
    ASSERT_CU(cuEventCreate(&start, 0));
    ASSERT_CU(cuEventCreate(&end, 0));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
    ASSERT_CU(cuEventRecord(start, nullptr));
    ASSERT_CU(fill(va, 1, kMiB));
    ASSERT_CU(cuEventRecord(end, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuEventSynchronize(end));
    EXPECT_CU(CUDA_SUCCESS, cuEventElapsedTime(&milliseconds, start, end));
    EXPECT_GT(milliseconds, 0);
    EXPECT_LT(milliseconds, 1000);
}

TEST_F(Streams, HostFunctionsRunInOrder) {
    CUdeviceptr va = 0;
    void* pinned = nullptr;
    ASSERT_CU(cuMemAlloc(&va, 64));
    ASSERT_CU(cuMemHostAlloc(&pinned, 64, 0));
    ASSERT_CU(fill(va, 99, 16));
    ASSERT_CU(cuMemcpyDtoHAsync(pinned, va, 64, nullptr));
    struct Seen {
        unsigned* words;
        std::atomic<unsigned> value{0};
    } seen{static_cast<unsigned*>(pinned)};
    ASSERT_CU(cuLaunchHostFunc(
        nullptr,
        [](void* data) { static_cast<Seen*>(data)->value = *static_cast<Seen*>(data)->words; },
        &seen));
    std::atomic<int> status{-1};
    ASSERT_CU(cuStreamAddCallback(
        nullptr,
        [](CUstream, CUresult result, void* data) {
            *static_cast<std::atomic<int>*>(data) = result;
        },
        &status, 0));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(99u, seen.value.load());
    EXPECT_EQ(CUDA_SUCCESS, status.load());
}

TEST_F(Streams, WordsAreWaitedForAndWritten) {
    void* pinned = nullptr;
    CUstream stream = nullptr;
    ASSERT_CU(cuMemHostAlloc(&pinned, 64, 0));
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    auto* words = static_cast<std::atomic<unsigned>*>(pinned);
    words[0] = 0;
    words[1] = 0;
    auto va = reinterpret_cast<CUdeviceptr>(pinned);
    ASSERT_CU(cuStreamWaitValue32(stream, va, 5, CU_STREAM_WAIT_VALUE_GEQ));
    ASSERT_CU(cuStreamWriteValue32(stream, va + 4, 6, 0));
    EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    EXPECT_EQ(0u, words[1].load());
    words[0] = 5;
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(6u, words[1].load());
}

TEST_F(Streams, CaptureModeIsExchanged) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, mode);
    EXPECT_CU(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, mode);
}
