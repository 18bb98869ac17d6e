// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "fake_driver.hpp"
#include "look.hpp"

// Runs with libswap preloaded on a driver of CUDA 12.2, which lacks some of what libswap exports.

extern "C" {
int cuInit(unsigned flags);
[[gnu::weak]] int cuMemcpyBatchAsync(void**, void**, std::size_t*, std::size_t, void*, std::size_t*,
                                     std::size_t, std::size_t*, void*);
[[gnu::weak]] int cuMemPrefetchBatchAsync(void*, void*, std::size_t, void*, void*, std::size_t,
                                          std::uint64_t, void*);
int cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                        int* status);
}

namespace {

// 14, 23: what the driver does not have is not there, by any look-up.
TEST(OldDriver, MissingFunctionsAreMissing) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    for (const char* name :
         {"cuMemcpyBatchAsync", "cuCtxSynchronize_v2", "cuMemPrefetchBatchAsync"}) {
        EXPECT_EQ(dlsym(driver, name), nullptr) << name;
        EXPECT_EQ(dlsym(RTLD_DEFAULT, name), nullptr) << name;
        EXPECT_NE(dlerror(), nullptr) << name;
        EXPECT_EQ(dlsym(RTLD_NEXT, name), nullptr) << name;
        EXPECT_EQ(dlsym(dlopen(nullptr, RTLD_NOW), name), nullptr) << name;
    }
    void* function = nullptr;
    int status = -1;
    EXPECT_EQ(cuGetProcAddress_v2("cuMemcpyBatchAsync", &function, 12080, 0, &status), 500);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, 1);
}

TEST(OldDriver, MissingFunctionsThatAreLinkedAreNotSupported) {
    EXPECT_EQ(
        cuMemcpyBatchAsync(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr),
        801);
    EXPECT_EQ(cuMemPrefetchBatchAsync(nullptr, nullptr, 0, nullptr, nullptr, 0, 0, nullptr), 801);
}

TEST(OldDriver, PresentFunctionsAreHooked) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT_EQ(look(dlsym(driver, "cuMemAlloc_v2")), "libswap.so:cuMemAlloc_v2");
    EXPECT_EQ(look(dlvsym(driver, "cuMemAlloc_v2", "FAKE_12")), "libswap.so:cuMemAlloc_v2");
    EXPECT_EQ(look(dlvsym(driver, "cuImportExternalMemory", "FAKE_12")),
              "libswap.so:cuImportExternalMemory");
    EXPECT_EQ(dlvsym(driver, "cuMemAlloc_v2", "FAKE_13"), nullptr);
}

// A driver before CUDA 12.4 is passed through, in one line.
TEST(OldDriver, IsPassedThroughWithOneLine) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuInit(0), 0);
    EXPECT_EQ(cuInit(0), 0);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("libswap: warning: ["), std::string::npos) << said;
    EXPECT_NE(said.find("the driver has no cuFuncGetParamInfo, passing through\n"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
    EXPECT_EQ(fake_calls("cuInit"), 2U);
}

}  // namespace
