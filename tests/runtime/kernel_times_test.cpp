// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// On the stand-in driver, with the stand-in libcupti where the loader finds it.
#include "runtime/kernel_times.hpp"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace libswap {
namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kSuccess = 0;

/// A function of the libcupti that is loaded; null while there is none.
template <typename Function>
Function cupti(const char* name) {
    Function function = nullptr;
    void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    void* address = dlsym(library, name);
    std::memcpy(&function, &address, sizeof function);
    dlclose(library);
    return function;
}

/// Somebody has buffers registered: CUPTI is in use.
bool in_use() {
    const auto flush = cupti<int (*)(std::uint32_t)>("cuptiActivityFlushAll");
    return flush != nullptr && flush(0) == kSuccess;
}

class Times : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        ASSERT_EQ(cuMemAlloc(&memory_, kBytes), CUDA_SUCCESS);
    }
    void TearDown() override {
        while (learners_ > 0) release();
        end(times_);
        EXPECT_FALSE(in_use());
        cuMemFree(memory_);
        cuDevicePrimaryCtxRelease(0);
    }
    void acquire(CuptiUse use = CuptiUse::Auto) {
        times_.acquire(use);
        ++learners_;
    }
    void release() {
        times_.release();
        --learners_;
    }
    /// Whether it was timed.
    bool operation(std::uint64_t serial, int device = 0) {
        const bool timed = times_.enter(device, serial);
        EXPECT_EQ(cuMemsetD8Async(memory_, 1, kBytes, nullptr), CUDA_SUCCESS);
        if (timed) times_.leave();
        return timed;
    }
    std::vector<OperationTime> collect(int device = 0) {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        std::vector<OperationTime> all;
        for (int k = 0; k < 10; ++k) {
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            times_.collect(device, false, &all);
        }
        std::sort(all.begin(), all.end(), [](const OperationTime& a, const OperationTime& b) {
            return a.serial < b.serial;
        });
        return all;
    }
    /// Until nothing more comes and CUPTI was taken out, at most for some seconds.
    static void end(KernelTimes& times) {
        std::vector<OperationTime> rest;
        for (int k = 0; k < 1000 && !times.is_out(); ++k) {
            times.collect(0, false, &rest);
            times.finish();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    CUcontext context_ = nullptr;
    CUdeviceptr memory_ = 0;
    KernelTimes times_;
    int learners_ = 0;
};

TEST_F(Times, OfOperationsComeWithTheirNumbers) {
    acquire();
    for (std::uint64_t serial = 100; serial < 150; ++serial) EXPECT_TRUE(operation(serial));
    std::vector<OperationTime> all = collect();
    ASSERT_EQ(all.size(), 50U);
    EXPECT_EQ(times_.answered(), 50U);
    std::uint64_t serial = 100;
    for (const OperationTime& time : all) {
        EXPECT_EQ(time.serial, serial++);
        EXPECT_GT(time.end_ns, time.start_ns);
        EXPECT_LT(time.end_ns - time.start_ns, 1'000'000U);
    }
    EXPECT_LE(all[0].end_ns, all[1].start_ns);
}

// 86: profilers that come or go break what is being captured.
TEST_F(Times, AreTakenUpAndLeftOnlyWhileNothingIsCaptured) {
    acquire();
    operation(1);
    times_.begin_capture();
    release();
    EXPECT_EQ(collect().size(), 1U);
    times_.finish();
    EXPECT_FALSE(times_.is_out());
    EXPECT_TRUE(in_use());
    times_.end_capture();
    end(times_);
    EXPECT_TRUE(times_.is_out());
    EXPECT_FALSE(in_use());
}

TEST_F(Times, OfDevicesAreKeptApart) {
    acquire();
    operation(1, 0);
    operation(2, 3);
    operation(3, 0);
    const auto first = collect(0);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[0].serial, 1U);
    EXPECT_EQ(first[1].serial, 3U);
    const auto other = collect(3);
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0].serial, 2U);
}

TEST_F(Times, ComeInAHurryAtOnce) {
    acquire();
    operation(7);
    std::vector<OperationTime> all;
    times_.collect(0, false, &all);  // it is asked again in 2 ms
    all.clear();
    operation(8);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    times_.collect(0, true, &all);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                            [](const OperationTime& time) { return time.serial == 8; }));
}

TEST_F(Times, EndWithTheLastThatLearns) {
    acquire();
    acquire();
    release();
    EXPECT_TRUE(operation(1));
    release();
    EXPECT_FALSE(operation(2));
    EXPECT_FALSE(times_.is_out());
    const auto all = collect();
    ASSERT_EQ(all.size(), 1U);  // what was under way still comes
    EXPECT_EQ(all[0].serial, 1U);
    EXPECT_TRUE(in_use());
    end(times_);
    EXPECT_TRUE(times_.is_out());
    EXPECT_FALSE(in_use());
    EXPECT_FALSE(times_.collect(0, true, std::make_unique<std::vector<OperationTime>>().get()));
}

TEST_F(Times, AreNotTakenOutUnderAnOperation) {
    acquire();
    ASSERT_TRUE(times_.enter(0, 1));
    release();
    std::vector<OperationTime> rest;
    for (int k = 0; k < 420; ++k) {  // longer than it drains
        times_.collect(0, false, &rest);
        times_.finish();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_FALSE(times_.is_out());
    EXPECT_TRUE(in_use());
    times_.leave();
    times_.finish();
    EXPECT_TRUE(times_.is_out());
}

TEST_F(Times, AreNotTakenASecondTime) {
    acquire();
    release();
    end(times_);
    acquire();
    EXPECT_FALSE(operation(1));
    EXPECT_FALSE(in_use());
}

TEST_F(Times, AreNotAskedForWhereTheUserSaysNo) {
    acquire(CuptiUse::Off);
    EXPECT_FALSE(operation(1));
    EXPECT_TRUE(times_.is_out());
    EXPECT_FALSE(in_use());
}

TEST_F(Times, AreNotAskedForBesideAProfiler) {
    setenv("CUDA_INJECTION64_PATH", "/nonexistent", 1);
    acquire();
    unsetenv("CUDA_INJECTION64_PATH");
    EXPECT_FALSE(operation(1));
    EXPECT_TRUE(times_.is_out());
    EXPECT_FALSE(in_use());
}

TEST_F(Times, AreNotAskedForWhereSomebodyHasTheCallbacksWhateverTheUserSays) {
    void* library = dlopen("libcupti.so.13", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto subscribe =
        cupti<int (*)(void**, void (*)(void*, unsigned, unsigned, const void*), void*)>(
            "cuptiSubscribe");
    const auto unsubscribe = cupti<int (*)(void*)>("cuptiUnsubscribe");
    void* subscriber = nullptr;
    ASSERT_EQ(subscribe(
                  &subscriber, [](void*, unsigned, unsigned, const void*) {}, nullptr),
              kSuccess);
    acquire(CuptiUse::On);
    EXPECT_FALSE(operation(1));
    EXPECT_FALSE(in_use());
    EXPECT_EQ(unsubscribe(subscriber), kSuccess);
    dlclose(library);
}

/// A profiler of the program's: what CUPTI tells it of memsets.
class Profiler {
  public:
    static void begin() {
        g_memsets = 0;
        EXPECT_EQ(
            cupti<int (*)(Requested, Completed)>("cuptiActivityRegisterCallbacks")(give, take),
            kSuccess);
        EXPECT_EQ(cupti<int (*)(std::uint32_t)>("cuptiActivityEnable")(kMemset), kSuccess);
    }
    static int memsets() {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQ(cupti<int (*)(std::uint32_t)>("cuptiActivityFlushAll")(1), kSuccess);
        return g_memsets;
    }
    static void end() { EXPECT_EQ(cupti<int (*)()>("cuptiFinalize")(), kSuccess); }

  private:
    using Requested = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
    using Completed = void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);
    static constexpr std::uint32_t kMemset = 2;
    static inline int g_memsets = 0;
    static inline std::uint8_t g_buffer[1 << 16];

    static void give(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
        *buffer = g_buffer;
        *size = sizeof g_buffer;
        *most = 0;
    }
    static void take(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
        const auto next =
            cupti<int (*)(std::uint8_t*, std::size_t, void**)>("cuptiActivityGetNextRecord");
        void* record = nullptr;
        while (next(buffer, valid, &record) == kSuccess)
            g_memsets += *static_cast<std::uint32_t*>(record) == kMemset ? 1 : 0;
    }
};

TEST_F(Times, AreLeftToAProfilerThatBegins) {
    acquire();
    ASSERT_TRUE(operation(1));
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_TRUE(times_.enter(0, 2));  // on another thread, in the middle of a call
    times_.leave_to_others();
    EXPECT_TRUE(times_.is_out());
    Profiler::begin();
    times_.leave();
    for (std::uint64_t serial = 3; serial < 13; ++serial) EXPECT_FALSE(operation(serial));
    EXPECT_EQ(Profiler::memsets(), 10);
    // The end of the learning takes nothing from it.
    release();
    end(times_);
    EXPECT_TRUE(collect().empty());
    for (std::uint64_t serial = 13; serial < 18; ++serial) EXPECT_FALSE(operation(serial));
    EXPECT_EQ(Profiler::memsets(), 15);
    Profiler::end();
}

TEST_F(Times, AreNotAskedForOnceSomebodyElseHasUsedCupti) {
    times_.leave_to_others();
    acquire(CuptiUse::On);
    EXPECT_FALSE(operation(1));
    EXPECT_TRUE(times_.is_out());
    EXPECT_FALSE(in_use());
}

TEST_F(Times, OfAParentAreLeftAloneInItsChild) {
    KernelTimes& parent = KernelTimes::instance();
    parent.acquire(CuptiUse::Auto);
    ASSERT_TRUE(parent.enter(0, 1));
    parent.leave();
    const pid_t child = fork();
    if (child == 0) {
        KernelTimes::forget();
        KernelTimes& mine = KernelTimes::instance();
        mine.acquire(CuptiUse::On);
        const bool fine = &mine != &parent && !mine.enter(0, 2) && mine.is_out();
        _exit(fine ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    parent.release();
    end(parent);
    EXPECT_TRUE(parent.is_out());
}

}  // namespace
}  // namespace libswap
