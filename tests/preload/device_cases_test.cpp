// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "program.hpp"

// Programs with more than one device. Both have the budget of program.hpp.

namespace preload_tests {
namespace {

class Devices : public Program {
  protected:
    void SetUp() override {
        int count = 0;
        MUST(cuInit(0));
        MUST(cuDeviceGetCount(&count));
        if (count < 2) GTEST_SKIP() << "one device";
        Program::SetUp();
        MUST(cuDeviceGet(&other_device_, 1));
        MUST(cuDevicePrimaryCtxRetain(&other_, other_device_));
    }
    void TearDown() override {
        if (!other_) return;
        MUST(cuCtxSetCurrent(context_));
        Program::TearDown();
        EXPECT_EQ(cuDevicePrimaryCtxRelease(other_device_), CUDA_SUCCESS);
    }
    /// While the other device is current: copies on a stream of this one's, of this one's memory.
    void copy_with_other_current(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
        MUST(cuCtxSetCurrent(other_));
        MUST(cuMemcpyDtoDAsync(to, from, 4 * kMiB, stream));
        MUST(cuCtxSetCurrent(context_));
    }

    CUdevice other_device_ = 0;
    CUcontext other_ = nullptr;
};

TEST_F(Devices, AStreamMayBeUsedAndDestroyedWhileAnotherDeviceIsCurrent) {
    MUST(cuCtxSetCurrent(other_));
    CUdeviceptr elsewhere = 0;
    MUST(cuMemAlloc(&elsewhere, 4 * kMiB));
    MUST(cuCtxSetCurrent(context_));
    CUevent done = nullptr;
    MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    const std::vector<CUdeviceptr> buffers = fill_device();
    MUST(cuStreamSynchronize(stream_));
    constexpr unsigned kRounds = 6;
    for (unsigned round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            CUstream stream = nullptr;
            MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            MUST(add(buffers[i], 4 * kMiB, 1, stream));
            copy_with_other_current(buffers[i], buffers[i], stream);
            MUST(cuEventRecord(done, stream));
            MUST(cuStreamWaitEvent(stream_, done, 0));
            MUST(cuCtxSetCurrent(other_));
            MUST(cuStreamDestroy(stream));
            MUST(cuCtxSetCurrent(context_));
        }
        press(buffers);
        MUST(cuStreamSynchronize(stream_));
    }
    for (unsigned i = 0; i < buffers.size(); ++i)
        EXPECT_TRUE(holds(buffers[i], 4 * kMiB, i + kRounds * 1001)) << i;
    MUST(cuEventDestroy(done));
    free_all(buffers);
    MUST(cuCtxSetCurrent(other_));
    EXPECT_EQ(cuMemFree(elsewhere), CUDA_SUCCESS);
}

}  // namespace
}  // namespace preload_tests
