// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "simgpu/nvml/abi.hpp"

using namespace simgpu::nvml;

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
const char* nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned* out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out);
int nvmlDeviceGetHandleByPciBusId_v2(const char* text, void** out);
int nvmlDeviceGetHandleByUUID(const char* uuid, void** out);
int nvmlDeviceGetUUID(void* device, char* out, unsigned capacity);
int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* out);
int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryInfoV2* out);
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, ProcessV1* out);
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessV2* out);
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* out);
}

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBufferBytes = 24 * kMiB;

/// A process of its own for each: what is read of the environment is read once.
template <typename Body>
void in_a_child(Body&& body) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

void* device(unsigned index) {
    void* handle = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &handle), kSuccess);
    return handle;
}

CUdeviceptr take_memory() {
    CUcontext context = nullptr;
    CUdeviceptr buffer = 0;
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&buffer, kBufferBytes), CUDA_SUCCESS);
    return buffer;
}

TEST(Nvml, AnswersNothingBeforeItIsInitialised) {
    unsigned count = 0;
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), kUninitialized);
    EXPECT_EQ(nvmlShutdown(), kUninitialized);
    EXPECT_STREQ(nvmlErrorString(kNotSupported), "Not supported");
}

TEST(Nvml, ShowsAllDevicesWhicheverAreVisible) {
    in_a_child([] {
        setenv("SIMGPU_DEVICES", "3", 1);
        setenv("CUDA_VISIBLE_DEVICES", "2", 1);
        ASSERT_EQ(nvmlInit_v2(), kSuccess);
        unsigned count = 0;
        EXPECT_EQ(nvmlDeviceGetCount_v2(&count), kSuccess);
        EXPECT_EQ(count, 3U);
        EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(3, nullptr), kInvalidArgument);
        take_memory();
        MemoryInfo memory[3];
        for (unsigned i = 0; i < 3; ++i)
            EXPECT_EQ(nvmlDeviceGetMemoryInfo(device(i), &memory[i]), kSuccess);
        EXPECT_EQ(memory[0].used, 0U);
        EXPECT_GE(memory[2].used, kBufferBytes);
        EXPECT_EQ(memory[2].free + memory[2].used, memory[2].total);
    });
}

TEST(Nvml, FindsADeviceByPlaceAndUuid) {
    in_a_child([] {
        setenv("SIMGPU_DEVICES", "2", 1);
        ASSERT_EQ(nvmlInit_v2(), kSuccess);
        void* found = nullptr;
        EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("00000000:02:00.0", &found), kSuccess);
        EXPECT_EQ(found, device(1));
        char uuid[96];
        EXPECT_EQ(nvmlDeviceGetUUID(device(1), uuid, 8), kInsufficientSize);
        EXPECT_EQ(nvmlDeviceGetUUID(device(1), uuid, sizeof uuid), kSuccess);
        EXPECT_EQ(std::string(uuid).substr(0, 4), "GPU-");
        EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &found), kSuccess);
        EXPECT_EQ(found, device(1));
        EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:03:00.0", &found), kNotFound);
    });
}

TEST(Nvml, BeginsNothing) {
    in_a_child([] {
        ASSERT_EQ(nvmlInit_v2(), kSuccess);
        int count = 0;
        EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        in_a_child([] { take_memory(); });
    });
}

TEST(Nvml, NamesWhoHoldsMemory) {
    in_a_child([] {
        const std::string file = testing::TempDir() + "nvml_" + std::to_string(getpid());
        setenv("SIMGPU_SHARE", file.c_str(), 1);
        ASSERT_EQ(nvmlInit_v2(), kSuccess);
        int ready[2];
        ASSERT_EQ(pipe(ready), 0);
        const pid_t other = fork();
        if (other == 0) {
            take_memory();
            if (write(ready[1], "y", 1) != 1) _exit(1);
            for (;;) pause();
        }
        char byte = 0;
        ASSERT_EQ(read(ready[0], &byte, 1), 1);
        take_memory();
        unsigned count = 0;
        EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(device(0), &count, nullptr),
                  kInsufficientSize);
        ASSERT_EQ(count, 2U);
        std::vector<ProcessV1> old(2);
        EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(device(0), &count, old.data()), kSuccess);
        std::vector<ProcessV2> processes(2);
        EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &count, processes.data()),
                  kSuccess);
        EXPECT_EQ(old[0].pid, static_cast<std::uint32_t>(getpid()));
        EXPECT_EQ(old[1].pid, static_cast<std::uint32_t>(other));
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(old[i].pid, processes[i].pid);
            EXPECT_GE(processes[i].bytes, kBufferBytes);
        }
        MemoryInfoV2 memory{};
        EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device(0), &memory), kArgumentVersionMismatch);
        memory.version = kMemoryInfoV2;
        EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device(0), &memory), kSuccess);
        EXPECT_EQ(memory.used, processes[0].bytes + processes[1].bytes);
        kill(other, SIGKILL);
        waitpid(other, nullptr, 0);
        count = 2;
        EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(device(0), &count, old.data()), kSuccess);
        EXPECT_EQ(count, 1U);
        unlink(file.c_str());
    });
}

TEST(Nvml, HasNoSensors) {
    unsigned degrees = 0;
    EXPECT_EQ(nvmlDeviceGetTemperature(nullptr, 0, &degrees), kNotSupported);
}

}  // namespace
