// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fake_driver.hpp"
#include "look.hpp"

// Runs with libswap preloaded, linked with the counting driver. The numbers behind the names are
// the rows of the list of interposers' faults that the project keeps (facts, section 5).

extern "C" {
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes);
int cuImportExternalMemory(void* pool, std::size_t keep);
int cuMemsetD32_v2(std::uint64_t address, unsigned value, std::size_t count);
int cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                        int* status);
}

namespace {

using GetProcAddress = int (*)(const char*, void**, int, std::uint64_t);
using GetProcAddressV2 = int (*)(const char*, void**, int, std::uint64_t, int*);

void* driver_handle() {
    static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle;
}

template <class Function>
Function from_driver(const char* name) {
    return reinterpret_cast<Function>(dlsym(driver_handle(), name));
}

/// What the driver itself answers, past libswap.
template <class Function>
Function past_libswap(const char* name) {
    return reinterpret_cast<Function>(fake_address(name));
}

void* ask(const char* symbol, int version, std::uint64_t flags) {
    void* function = nullptr;
    int status = -1;
    cuGetProcAddress_v2(symbol, &function, version, flags, &status);
    return function;
}

// 20: direct link, dlopen and dlsym, cuGetProcAddress.
TEST(Routes, EachGivesTheSameHook) {
    const std::string hook = "libswap.so:cuMemAlloc_v2";
    EXPECT_EQ(look_at(&cuMemAlloc_v2), hook);
    EXPECT_EQ(look(dlsym(driver_handle(), "cuMemAlloc_v2")), hook);
    EXPECT_EQ(look(ask("cuMemAlloc", 12000, 0)), hook);
}

TEST(Routes, EachReachesTheDriverOnce) {
    std::uint64_t address = 0;
    const unsigned long before = fake_calls("cuMemAlloc_v2");
    EXPECT_EQ(cuMemAlloc_v2(&address, 512), 0);
    EXPECT_EQ(from_driver<decltype(&cuMemAlloc_v2)>("cuMemAlloc_v2")(&address, 512), 0);
    EXPECT_EQ(reinterpret_cast<decltype(&cuMemAlloc_v2)>(ask("cuMemAlloc", 3020, 0))(&address, 512),
              0);
    EXPECT_EQ(fake_calls("cuMemAlloc_v2"), before + 3);
}

TEST(Routes, CountedHookForwardsResultAndCall) {
    const unsigned long before = fake_calls("cuImportExternalMemory");
    fake_set_result(719);
    EXPECT_EQ(cuImportExternalMemory(nullptr, 4096), 719);
    fake_set_result(0);
    EXPECT_EQ(cuImportExternalMemory(nullptr, 4096), 0);
    EXPECT_EQ(fake_calls("cuImportExternalMemory"), before + 2);
}

// 24: out-parameters and results are the driver's when it fails.
TEST(Routes, FailureOfTheDriverIsHandedOnUntouched) {
    std::uint64_t address = 0xdead;
    fake_set_result(2);
    EXPECT_EQ(cuMemAlloc_v2(&address, 512), 2);
    EXPECT_EQ(address, 0xdeadU);
    fake_set_result(700);
    EXPECT_EQ(cuMemsetD32_v2(0x1000, 0, 4), 700);
    fake_set_result(0);
}

TEST(Dlsym, UnhookedNamesAreTheDrivers) {
    EXPECT_EQ(look(dlsym(driver_handle(), "cuDeviceGetCount")), "libcuda.so.1:cuDeviceGetCount");
    EXPECT_EQ(look(ask("cuDeviceGetCount", 2000, 0)), "libcuda.so.1:cuDeviceGetCount");
    EXPECT_EQ(dlsym(driver_handle(), "cuThereIsNoSuchFunction"), nullptr);
    EXPECT_NE(dlerror(), nullptr);
}

TEST(Dlsym, SuccessLeavesNoError) {
    dlerror();
    EXPECT_NE(dlsym(driver_handle(), "cuMemFree_v2"), nullptr);
    EXPECT_EQ(dlerror(), nullptr);
    EXPECT_NE(dlsym(RTLD_DEFAULT, "cuMemFree_v2"), nullptr);
    EXPECT_EQ(dlerror(), nullptr);
}

// 11: RTLD_NEXT must not go round the hooks.
TEST(Dlsym, NextAndDefaultGiveTheHook) {
    EXPECT_EQ(look(dlsym(RTLD_NEXT, "cuMemAlloc_v2")), "libswap.so:cuMemAlloc_v2");
    EXPECT_EQ(look(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")), "libswap.so:cuMemAlloc_v2");
    EXPECT_EQ(look(dlsym(RTLD_DEFAULT, "cuImportExternalMemory")),
              "libswap.so:cuImportExternalMemory");
    EXPECT_EQ(dlvsym(driver_handle(), "cuMemAlloc_v2", "NOT_A_VERSION"), nullptr);
}

TEST(Dlsym, HandleOfTheProgramGivesTheHook) {
    void* program = dlopen(nullptr, RTLD_NOW);
    EXPECT_EQ(look(dlsym(program, "cuMemAlloc_v2")), "libswap.so:cuMemAlloc_v2");
    EXPECT_EQ(dlsym(program, "cuThereIsNoSuchFunction"), nullptr);
}

// 2: OpenMP's runtime looks for the next definition of its own function, from several threads,
// twice.
TEST(Dlsym, NextIsCountedFromTheCaller) {
    using Forward = void* (*)();
    void* first = dlopen("libfirst.so", RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(first, nullptr) << dlerror();
    const auto forward = reinterpret_cast<Forward>(dlsym(first, "libswap_test_forward"));
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 2; ++n)
                if (look(forward()) == "libsecond.so:libswap_test_tool") ++right;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 16);
}

// 12: RTLD_DEFAULT from a library with a scope of its own.
TEST(Dlsym, DefaultIsAnsweredInTheScopeOfTheCaller) {
    void* local = dlopen("liblocal.so", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(local, nullptr) << dlerror();
    const auto find = reinterpret_cast<void* (*)(const char*)>(dlsym(local, "libswap_test_find"));
    EXPECT_EQ(look(find("libswap_test_local_only")), "liblocal.so:libswap_test_local_only");
}

// 6: look-ups of unknown names, on a stack of 64 KiB, before cuInit.
TEST(Dlsym, ManyUnknownNamesOnASmallStack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // The thread's own storage is taken from the stack too.
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
    pthread_t thread;
    const auto work = [](void*) -> void* {
        for (int i = 0; i < 10000; ++i) {
            char name[32];
            std::snprintf(name, sizeof name, i % 2 ? "cuUnknown%d" : "nvmlUnknown%d", i);
            if (dlsym(driver_handle(), name)) return driver_handle();
        }
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, work, nullptr), 0);
    void* wrong = nullptr;
    pthread_join(thread, &wrong);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(wrong, nullptr);
}

// 3: names of other libraries that begin with cu go straight to libc.
TEST(Dlsym, NamesOfOtherLibrariesAreLeftAlone) {
    void* first = dlopen("libfirst.so", RTLD_NOW);
    EXPECT_EQ(look(dlsym(first, "cudnnCreate")), "libfirst.so:cudnnCreate");
    EXPECT_EQ(look(dlsym(first, "cuMemFree_v2")),
              "libfirst.so:cuMemFree_v2");  // not a driver: its own function
}

// 17, 18: documented limits: an object that is bound before the global scope, or in another one, is
// not seen.
TEST(Dlsym, DeepBoundObjectsAreNotSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers refuse RTLD_DEEPBIND";
#endif
    void* deep = dlopen("libdeep.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    ASSERT_NE(deep, nullptr) << dlerror();
    const auto find =
        reinterpret_cast<void* (*)(const char*)>(dlsym(deep, "libswap_test_find_in_driver"));
    EXPECT_EQ(look(find("cuMemAlloc_v2")), "libcuda.so.1:cuMemAlloc_v2");
}

TEST(GetProcAddress, VersionChoosesTheSignature) {
    EXPECT_EQ(look(ask("cuCtxSynchronize", 2000, 0)), "libswap.so:cuCtxSynchronize");
    EXPECT_EQ(look(ask("cuCtxSynchronize", 13000, 0)), "libswap.so:cuCtxSynchronize_v2");
    EXPECT_EQ(look(ask("cuMemcpyBatchAsync", 12080, 0)), "libswap.so:cuMemcpyBatchAsync");
    EXPECT_EQ(look(ask("cuMemcpyBatchAsync", 13000, 0)), "libswap.so:cuMemcpyBatchAsync_v2");
}

TEST(GetProcAddress, FlagChoosesTheStream) {
    EXPECT_EQ(look(ask("cuMemcpyHtoD", 12000, 0)), "libswap.so:cuMemcpyHtoD_v2");
    EXPECT_EQ(look(ask("cuMemcpyHtoD", 12000, 1)), "libswap.so:cuMemcpyHtoD_v2");
    EXPECT_EQ(look(ask("cuMemcpyHtoD", 12000, 2)), "libswap.so:cuMemcpyHtoD_v2_ptds");
    EXPECT_EQ(look(ask("cuLaunchKernel", 12000, 2)), "libswap.so:cuLaunchKernel_ptsz");
    EXPECT_EQ(look(ask("cuMemAlloc", 12000, 2)), "libswap.so:cuMemAlloc_v2");
}

// 21: the fourth and the fifth argument.
TEST(GetProcAddress, GivesItselfInTheArityAskedFor) {
    EXPECT_EQ(look(ask("cuGetProcAddress", 11030, 0)), "libswap.so:cuGetProcAddress");
    EXPECT_EQ(look(ask("cuGetProcAddress", 12000, 0)), "libswap.so:cuGetProcAddress_v2");
    EXPECT_EQ(look(dlsym(driver_handle(), "cuGetProcAddress")), "libswap.so:cuGetProcAddress");
    void* function = nullptr;
    EXPECT_EQ(from_driver<GetProcAddress>("cuGetProcAddress")("cuMemAlloc", &function, 12000, 0),
              0);
    EXPECT_EQ(look(function), "libswap.so:cuMemAlloc_v2");
    int status[2] = {-1, 0x5a5a5a5a};
    EXPECT_EQ(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, status), 0);
    EXPECT_EQ(status[0], 0);
    EXPECT_EQ(status[1], 0x5a5a5a5a);
}

TEST(GetProcAddress, StatusAndFailureAreTheDrivers) {
    const auto real = past_libswap<GetProcAddressV2>("cuGetProcAddress_v2");
    for (const char* symbol :
         {"", "cuMemAlloc", "cuNoSuchThing", "cuMemAlloc_v2", "cuMemcpyBatchAsync"})
        for (const int version : {0, 1, 2000, 3020, 12070, 13000, 99999})
            for (const std::uint64_t flags : {0UL, 1UL, 2UL, 4UL, ~0UL}) {
                void *wanted = nullptr, *got = nullptr;
                int wanted_status = -1, got_status = -1;
                const int wanted_result = real(symbol, &wanted, version, flags, &wanted_status);
                EXPECT_EQ(cuGetProcAddress_v2(symbol, &got, version, flags, &got_status),
                          wanted_result);
                EXPECT_EQ(got_status, wanted_status);
                EXPECT_EQ(got == nullptr, wanted == nullptr);
            }
}

TEST(GetProcAddress, NullStatusIsAllowed) {
    void* function = nullptr;
    EXPECT_EQ(cuGetProcAddress_v2("cuMemFree", &function, 12000, 0, nullptr), 0);
    EXPECT_EQ(look(function), "libswap.so:cuMemFree_v2");
}

/// All that the vendor's runtime of CUDA 13 asks for, in its order: hooks where we have them under
/// exactly the name of the driver's answer, the driver's own functions elsewhere, statuses
/// unchanged.
TEST(GetProcAddress, EveryRequestOfTheVendorsRuntimeIsAnsweredInKind) {
    std::ifstream list(CUDART_REQUESTS);
    const auto real = past_libswap<GetProcAddressV2>("cuGetProcAddress_v2");
    std::string symbol, version_text, flags_text;
    int requests = 0, hooked = 0;
    while (list >> symbol >> version_text >> flags_text) {
        const int version = std::stoi(version_text.substr(4));
        const std::uint64_t flags = std::stoul(flags_text.substr(6));
        void *wanted = nullptr, *got = nullptr;
        int wanted_status = -1, got_status = -1;
        EXPECT_EQ(cuGetProcAddress_v2(symbol.c_str(), &got, version, flags, &got_status),
                  real(symbol.c_str(), &wanted, version, flags, &wanted_status));
        EXPECT_EQ(got_status, wanted_status);
        const std::string name = look(wanted).substr(look(wanted).find(':') + 1);
        const bool is_ours =
            dlsym(dlopen("libswap.so", RTLD_NOW | RTLD_NOLOAD), name.c_str()) != nullptr &&
            look(got) == "libswap.so:" + name;
        EXPECT_TRUE(is_ours || got == wanted)
            << symbol << ' ' << look(got) << " for " << look(wanted);
        hooked += is_ours ? 1 : 0;
        ++requests;
    }
    EXPECT_EQ(requests, 439);
    EXPECT_GT(hooked, 150);
}

// 10: a driver that looks its answer up in the global scope, and finds us.
TEST(GetProcAddress, OwnHookAsTheDriversAnswerStaysItself) {
    fake_answer("cuMemAlloc", reinterpret_cast<void*>(&cuMemAlloc_v2));
    EXPECT_EQ(look(ask("cuMemAlloc", 12000, 0)), "libswap.so:cuMemAlloc_v2");
    std::uint64_t address = 0;
    const unsigned long before = fake_calls("cuMemAlloc_v2");
    EXPECT_EQ(cuMemAlloc_v2(&address, 512), 0);
    EXPECT_EQ(fake_calls("cuMemAlloc_v2"), before + 1);
    fake_answer("cuMemAlloc", nullptr);
}

// Two names of one family at one address, as in a driver whose per-thread variant is the same
// function.
TEST(GetProcAddress, SharedAddressIsToldApartByTheFlag) {
    fake_answer("cuMemsetD8", fake_address("cuMemsetD8_v2"));
    EXPECT_EQ(look(ask("cuMemsetD8", 12000, 2)), "libswap.so:cuMemsetD8_v2");
    fake_answer("cuMemsetD8", nullptr);
}

// A hooked name answered by the function of an unhooked one: its signature is not ours to guess.
TEST(GetProcAddress, ExportedFunctionOfAnotherNameIsLeftAlone) {
    fake_answer("cuMemsetD16", fake_address("cuDeviceGetCount"));
    EXPECT_EQ(ask("cuMemsetD16", 12000, 0), fake_address("cuDeviceGetCount"));
    fake_answer("cuMemsetD16", nullptr);
}

int g_unnamed_calls = 0;
int unnamed_fill(std::uint64_t, unsigned, std::size_t) {
    ++g_unnamed_calls;
    return 0;
}

// A driver, or an interposer behind us, that answers with a function it does not export.
TEST(GetProcAddress, UnnamedFunctionIsCalledThroughTheHook) {
    fake_answer("cuMemsetD32", reinterpret_cast<void*>(&unnamed_fill));
    void* function = ask("cuMemsetD32", 12000, 0);
    EXPECT_EQ(look(function), "libswap.so:cuMemsetD32_v2");
    EXPECT_EQ(reinterpret_cast<decltype(&cuMemsetD32_v2)>(function)(0x1000, 0, 4), 0);
    EXPECT_EQ(g_unnamed_calls, 1);
    fake_answer("cuMemsetD32", nullptr);
}

}  // namespace
