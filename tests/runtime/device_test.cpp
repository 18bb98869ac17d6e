// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/device.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "runtime/host_memory.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A program on a device with a small budget: buffers of numbers, kernels that add.
class DeviceTest : public ::testing::Test {
  protected:
    void open(std::uint64_t budget_mib, std::uint64_t host_mib = 256) {
        config_.budget.kind = Amount::Kind::Bytes;
        config_.budget.bytes = budget_mib * kMiB;
        config_.host_limit.kind = Amount::Kind::Bytes;
        config_.host_limit.bytes = host_mib * kMiB;
        config_.min_swap_bytes = kMiB;
        host_limit_ = std::make_unique<HostLimit>(host_limit_of(config_));
        device_ = Device::open(fake_.table(), config_, nullptr, 0, fake_.context(),
                               host_limit_.get(), &edges_);
    }
    std::uint64_t alloc(std::uint64_t bytes) {
        CUdeviceptr ptr = 0;
        EXPECT_EQ(device_->mem_alloc(&ptr, bytes, fake_.context()), CUDA_SUCCESS);
        return ptr;
    }
    /// A kernel that does `work` and names `pointers`.
    CUresult launch(std::vector<std::uint64_t> pointers, std::function<void()> work,
                    CUstream stream = CU_STREAM_LEGACY) {
        Operation op;
        for (const std::uint64_t pointer : pointers) device_->name_address(op, pointer);
        op.signature = pointers.size();
        return device_->run(op, fake_.context(), stream,
                            [&] { return fake_.submit(stream, work); });
    }
    CUresult write(std::uint64_t buffer, std::uint64_t bytes, std::uint64_t value) {
        return launch({buffer}, [=] {
            auto* data = reinterpret_cast<std::uint64_t*>(buffer);
            for (std::uint64_t i = 0; i < bytes / 8; ++i) data[i] = value + i;
        });
    }
    bool check(std::uint64_t buffer, std::uint64_t bytes, std::uint64_t value) {
        bool good = true;
        bool* result = &good;
        EXPECT_EQ(launch({buffer},
                         [=] {
                             const auto* data = reinterpret_cast<const std::uint64_t*>(buffer);
                             for (std::uint64_t i = 0; i < bytes / 8; ++i)
                                 *result &= data[i] == value + i;
                         }),
                  CUDA_SUCCESS);
        fake_.pump();
        return good;
    }

    testing::FakeDriver fake_;
    Config config_;
    std::unique_ptr<HostLimit> host_limit_;
    PointerEdges edges_;
    std::unique_ptr<Device> device_;
};

std::ptrdiff_t threads() {
    using Tasks = std::filesystem::directory_iterator;
    return std::distance(Tasks("/proc/self/task"), Tasks());
}

TEST_F(DeviceTest, StartsNoThreadWhileEverythingFits) {
    const std::ptrdiff_t before = threads();
    open(32);
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t buffer = alloc(4 * kMiB);
        write(buffer, 4 * kMiB, 1);
        EXPECT_TRUE(check(buffer, 4 * kMiB, 1));
        EXPECT_EQ(device_->mem_free(buffer), CUDA_SUCCESS);
    }
    EXPECT_EQ(threads(), before);
    for (int i = 0; i < 12; ++i) write(alloc(4 * kMiB), 4 * kMiB, 1);
    EXPECT_GT(threads(), before);
}

TEST_F(DeviceTest, TheFirstEvictionWaitsForOperationsFromBeforeAnythingMoved) {
    open(16);
    const CUstream slow = fake_.make_stream();
    const std::uint64_t early = alloc(4 * kMiB);
    fake_.hold(slow, true);
    ASSERT_EQ(launch(
                  {early}, [=] { std::memset(reinterpret_cast<void*>(early), 7, 4 * kMiB); }, slow),
              CUDA_SUCCESS);
    EXPECT_EQ(fake_.calls("cuModuleLoadData"), 0u);
    std::vector<std::uint64_t> others;
    for (int i = 0; i < 3; ++i) others.push_back(alloc(4 * kMiB));
    const std::uint64_t one_too_many = alloc(4 * kMiB);
    std::uint64_t moved = 0;
    std::thread release([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        moved = device_->counters().evictions.load();
        fake_.hold(slow, false);
    });
    // Needs room, and everything may be what the slow stream uses.
    EXPECT_EQ(write(one_too_many, 4 * kMiB, 1), CUDA_SUCCESS);
    release.join();
    EXPECT_EQ(moved, 0u);
    EXPECT_GT(device_->counters().evictions.load(), 0u);
    bool good = true;
    bool* result = &good;
    EXPECT_EQ(launch({early},
                     [=] {
                         for (std::uint64_t i = 0; i < 4 * kMiB; ++i)
                             *result &= reinterpret_cast<const unsigned char*>(early)[i] == 7;
                     }),
              CUDA_SUCCESS);
    fake_.pump();
    EXPECT_TRUE(good);
}

TEST_F(DeviceTest, WhatAThreadThatEndedUsedOnItsOwnStreamMayLeave) {
    open(16);
    std::vector<std::uint64_t> buffers;
    std::thread([&] {
        for (int i = 0; i < 2; ++i) {
            buffers.push_back(alloc(4 * kMiB));
            auto* const data = reinterpret_cast<void*>(buffers.back());
            launch(
                {buffers.back()}, [=] { std::memset(data, 7, 4 * kMiB); }, CU_STREAM_PER_THREAD);
        }
    }).join();
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) {
        buffers.push_back(alloc(4 * kMiB));
        EXPECT_EQ(write(buffers.back(), 4 * kMiB, 1), CUDA_SUCCESS);
    }
    for (int i = 2; i < 6; ++i) EXPECT_TRUE(check(buffers[i], 4 * kMiB, 1));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
    EXPECT_GT(device_->counters().evictions.load(), 0u);
    EXPECT_EQ(device_->counters().stalls.load(), 0u);
}

TEST_F(DeviceTest, SaysSoonThatTheDriverGivesNoMoreMemory) {
    open(32);
    fake_.fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    const auto begun = std::chrono::steady_clock::now();
    CUdeviceptr ptr = 0;
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(device_->mem_alloc(&ptr, 1000, fake_.context()), CUDA_ERROR_NOT_READY);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

TEST_F(DeviceTest, SaysSoonThatWhatLiesReadyIsOfAnotherSize) {
    fake_.device_bytes = 131072 * kMiB;
    open(65536);
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 2; ++i) buffers.push_back(alloc(16 * kMiB));
    for (const std::uint64_t buffer : buffers) EXPECT_EQ(device_->mem_free(buffer), CUDA_SUCCESS);
    fake_.fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY, true);
    const auto begun = std::chrono::steady_clock::now();
    CUdeviceptr ptr = 0;
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(device_->mem_alloc(&ptr, 1000, fake_.context()), CUDA_ERROR_NOT_READY);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

TEST_F(DeviceTest, KeepsContentsOfTwiceTheBudget) {
    open(32);
    ASSERT_TRUE(device_);
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 16; ++i) buffers.push_back(alloc(4 * kMiB));
    for (std::size_t i = 0; i < buffers.size(); ++i) write(buffers[i], 4 * kMiB, i * 1000);
    for (int round = 0; round < 3; ++round)
        for (std::size_t i = 0; i < buffers.size(); ++i)
            EXPECT_TRUE(check(buffers[i], 4 * kMiB, i * 1000)) << i;
    EXPECT_LE(fake_.device_used(), 32 * kMiB);
    EXPECT_GT(device_->counters().bytes_out.load(), 0u);
    EXPECT_TRUE(device_->is_valid());
    EXPECT_EQ(fake_.calls_under_lock, 0u);
    for (const std::uint64_t buffer : buffers) EXPECT_EQ(device_->mem_free(buffer), CUDA_SUCCESS);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(DeviceTest, DoesNotCopyOutWhatDidNotChange) {
    open(16);
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 8; ++i) buffers.push_back(alloc(4 * kMiB));
    for (std::size_t i = 0; i < buffers.size(); ++i) write(buffers[i], 4 * kMiB, i);
    for (int round = 0; round < 4; ++round)
        for (std::size_t i = 0; i < buffers.size(); ++i)
            EXPECT_TRUE(check(buffers[i], 4 * kMiB, i));
    EXPECT_GT(device_->counters().bytes_clean.load(), 0u);
}

TEST_F(DeviceTest, AnOperationLargerThanTheBudgetReadsTheRestOnTheHost) {
    open(16);
    const std::uint64_t buffer = alloc(40 * kMiB);
    EXPECT_EQ(write(buffer, 40 * kMiB, 7), CUDA_SUCCESS);
    EXPECT_TRUE(check(buffer, 40 * kMiB, 7));
    EXPECT_GT(device_->counters().host_operands.load(), 0u);
}

TEST_F(DeviceTest, FreesInEveryState) {
    open(16);
    for (int round = 0; round < 8; ++round) {
        std::vector<std::uint64_t> buffers;
        for (int i = 0; i < 7; ++i) buffers.push_back(alloc((2 + i % 3) * 2 * kMiB));
        for (const std::uint64_t buffer : buffers) write(buffer, 4 * kMiB, buffer);
        std::shuffle(buffers.begin(), buffers.end(), std::mt19937(round));
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            if (i % 2) {
                EXPECT_TRUE(check(buffers[i], 4 * kMiB, buffers[i]));
            }
            EXPECT_EQ(device_->mem_free(buffers[i]), CUDA_SUCCESS);
            EXPECT_EQ(device_->mem_free(buffers[i]), CUDA_ERROR_INVALID_VALUE);
        }
    }
    EXPECT_EQ(device_->counters().span_bytes.load(), 0u);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(DeviceTest, SmallRequestsShareSlabsAndComeBack) {
    open(32);
    std::vector<std::uint64_t> pieces;
    for (int i = 0; i < 100; ++i) pieces.push_back(alloc(1000));
    EXPECT_LE(fake_.device_used(), 4 * kMiB);
    for (const std::uint64_t piece : pieces) EXPECT_EQ(device_->mem_free(piece), CUDA_SUCCESS);
    EXPECT_EQ(alloc(1000), pieces.front());
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(DeviceTest, SmallRequestsBeyondTheBudgetAreOursAsWell) {
    open(6);
    const std::uint64_t large = alloc(2 * kMiB);
    EXPECT_EQ(write(large, 2 * kMiB, 1), CUDA_SUCCESS);
    fake_.pump();
    std::vector<std::uint64_t> small;
    for (int i = 0; i < 20; ++i) {
        small.push_back(alloc(kMiB / 2));
        ASSERT_TRUE(device_->owns(small.back())) << i;
    }
    EXPECT_GE(fake_.device_used(), 10 * kMiB);
    EXPECT_TRUE(check(large, 2 * kMiB, 1));
    for (const std::uint64_t buffer : small) EXPECT_EQ(device_->mem_free(buffer), CUDA_SUCCESS);
}

TEST_F(DeviceTest, SaysOutOfMemoryWhenHostMemoryIsExhaustedToo) {
    open(16, 16);
    CUdeviceptr ptr = 0;
    int count = 0;
    while (device_->mem_alloc(&ptr, 4 * kMiB, fake_.context()) == CUDA_SUCCESS) ++count;
    EXPECT_GE(count, 6);
    EXPECT_LE(count, 8);
}

TEST_F(DeviceTest, WorksWithoutMappableHostMemory) {
    fake_.host_numa = false;
    open(16);
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 8; ++i) buffers.push_back(alloc(4 * kMiB));
    for (std::size_t i = 0; i < buffers.size(); ++i) write(buffers[i], 4 * kMiB, i);
    for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(check(buffers[i], 4 * kMiB, i));
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(DeviceTest, FollowsPointersInTables) {
    open(16);
    const std::uint64_t table = alloc(64);
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 6; ++i) buffers.push_back(alloc(4 * kMiB));
    for (std::size_t i = 0; i < buffers.size(); ++i) write(buffers[i], 4 * kMiB, i);
    edges_.add(table, buffers[0]);
    edges_.add(table + 8, buffers[5] + 64);
    Operation op;
    device_->name_address(op, table);
    EXPECT_EQ(op.spans.size(), 2u);
    edges_.overwrite(table + 8, 8);
    op.clear();
    device_->name_address(op, table);
    EXPECT_EQ(op.spans.size(), 1u);
}

TEST_F(DeviceTest, EndsWhileTimesOfOperationsAreRead) {
    config_.mode = Mode::Observe;  // all operations are timed
    for (int round = 0; round < 100; ++round) {
        open(16);
        const std::uint64_t buffer = alloc(2 * kMiB);
        for (int i = 0; i < 64; ++i) write(buffer, 64, 1);
        device_->settle(fake_.context());
        EXPECT_TRUE(check(buffer, 64, 1));  // taken up again, and ended by the destructor
        device_.reset();
    }
}

TEST_F(DeviceTest, SurvivesAFailureOfEachCall) {
    const char* const names[] = {"cuMemCreate",         "cuMemMap",          "cuMemUnmap",
                                 "cuMemSetAccess",      "cuMemRelease",      "cuMemAddressReserve",
                                 "cuMemcpyDtoHAsync",   "cuMemcpyHtoDAsync", "cuEventCreate",
                                 "cuEventRecord",       "cuEventQuery",      "cuStreamWaitEvent",
                                 "cuStreamSynchronize", "cuMemsetD8Async",   "cuLaunchKernel"};
    for (const char* name : names) {
        for (std::uint64_t nth : {1, 2, 3, 5, 8, 13, 21, 34}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(nth));
            open(6);
            ASSERT_TRUE(device_);
            fake_.fail(name, nth, CUDA_ERROR_UNKNOWN);
            std::vector<std::uint64_t> buffers;
            for (int i = 0; i < 6; ++i) {
                CUdeviceptr ptr = 0;
                const CUresult result = device_->mem_alloc(&ptr, 2 * kMiB, fake_.context());
                if (result == CUDA_SUCCESS) buffers.push_back(ptr);
            }
            for (std::size_t i = 0; i < buffers.size(); ++i)
                EXPECT_EQ(write(buffers[i], 4096, i), CUDA_SUCCESS);
            for (int round = 0; round < 2; ++round)
                for (std::size_t i = 0; i < buffers.size(); ++i)
                    EXPECT_TRUE(check(buffers[i], 4096, i)) << i;
            for (const std::uint64_t buffer : buffers)
                EXPECT_EQ(device_->mem_free(buffer), CUDA_SUCCESS);
            EXPECT_TRUE(device_->is_valid());
            EXPECT_FALSE(device_->lost());
            fake_.clear_faults();
            device_.reset();
        }
    }
}

}  // namespace
}  // namespace libswap
