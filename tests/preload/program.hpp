// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the tests of this folder that are programs themselves have in common: they run with
// libswap.so preloaded, on a simulated device of 64 MiB, with a budget of 20 MiB.

#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace preload_tests {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBudget = 20 * kMiB;

#define MUST(call) ASSERT_EQ(call, CUDA_SUCCESS)

/// Adds `value` to `count` words at `words`, `stride` words apart.
inline constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p_words, .param .u32 p_count, .param .u32 p_stride, .param .u32 p_value)
{
    .reg .pred %over;
    .reg .b32 %i, %t, %count, %stride, %value, %old;
    .reg .b64 %at, %offset;
    mov.u32 %i, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mul.lo.u32 %i, %i, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    ld.param.u32 %count, [p_count];
    setp.ge.u32 %over, %i, %count;
    @%over bra DONE;
    ld.param.u32 %stride, [p_stride];
    ld.param.u32 %value, [p_value];
    ld.param.u64 %at, [p_words];
    mul.lo.u32 %i, %i, %stride;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %at, %at, %offset;
    ld.global.u32 %old, [%at];
    add.u32 %old, %old, %value;
    st.global.u32 [%at], %old;
DONE:
    ret;
}
)";

/// A context and a kernel. Buffers are of words; the kernel touches one in each KiB.
class Program : public ::testing::Test {
  protected:
    static constexpr unsigned kStride = 256;

    void SetUp() override {
        MUST(cuInit(0));
        MUST(cuDeviceGet(&device_, 0));
        MUST(cuDevicePrimaryCtxRetain(&context_, device_));
        MUST(cuCtxSetCurrent(context_));
        MUST(cuModuleLoadData(&module_, kPtx));
        MUST(cuModuleGetFunction(&add_, module_, "add"));
        MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    }
    void TearDown() override {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
        EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
        EXPECT_EQ(cuDevicePrimaryCtxRelease(device_), CUDA_SUCCESS);
    }

    CUresult add(CUdeviceptr buffer, std::uint64_t bytes, unsigned value, CUstream stream) {
        unsigned count = static_cast<unsigned>(bytes / 4 / kStride);
        unsigned stride = kStride;
        void* params[] = {&buffer, &count, &stride, &value};
        return cuLaunchKernel(add_, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params,
                              nullptr);
    }
    CUdeviceptr alloc(std::uint64_t bytes, unsigned value = 0) {
        CUdeviceptr buffer = 0;
        EXPECT_EQ(cuMemAlloc(&buffer, bytes), CUDA_SUCCESS);
        EXPECT_EQ(cuMemsetD32Async(buffer, value, bytes / 4, stream_), CUDA_SUCCESS);
        return buffer;
    }
    /// Buffers of 4 MiB, three times the budget in all, each filled with its number.
    std::vector<CUdeviceptr> fill_device() {
        std::vector<CUdeviceptr> buffers;
        for (unsigned i = 0; i < 3 * kBudget / (4 * kMiB); ++i)
            buffers.push_back(alloc(4 * kMiB, i));
        return buffers;
    }
    /// Uses all of them in turn, so that each has to leave and come back.
    void press(const std::vector<CUdeviceptr>& buffers) {
        for (const CUdeviceptr buffer : buffers) MUST(add(buffer, 4 * kMiB, 1000, stream_));
    }
    void free_all(const std::vector<CUdeviceptr>& buffers) {
        for (const CUdeviceptr buffer : buffers) EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
    }
    /// The words that the kernel touches are all `value`.
    bool holds(CUdeviceptr buffer, std::uint64_t bytes, unsigned value) {
        std::vector<unsigned> words(bytes / 4);
        EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
        EXPECT_EQ(cuMemcpyDtoH(words.data(), buffer, bytes), CUDA_SUCCESS);
        for (std::size_t i = 0; i + kStride <= words.size(); i += kStride)
            if (words[i] != value) return false;
        return true;
    }

    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction add_ = nullptr;
    CUstream stream_ = nullptr;
};

}  // namespace preload_tests
