// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "fake_driver.hpp"
#include "look.hpp"

// 19: the vendor's own runtime, as a library and linked into one, on the counting driver, with
// libswap preloaded. It looks all its entry points up and then gives up, for want of the driver's
// private tables: the look-ups are what is tested. VENDOR_RUNTIME is the library's path,
// COUNT_DEVICES its function that counts devices.

namespace {

/// The functions of the counting driver, by the driver that the runtime itself has opened.
template <class Function>
Function fake(const char* name) {
    return reinterpret_cast<Function>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

// The look-ups happen once in a process, so they are one test.
TEST(VendorRuntime, GetsAllItsEntryPointsThroughOurRoutes) {
    // Held open: the runtime closes the driver again when it gives up.
    ASSERT_NE(dlopen("libcuda.so.1", RTLD_NOW), nullptr) << dlerror();
    void* runtime = dlopen(VENDOR_RUNTIME, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(runtime, nullptr) << dlerror();
    const auto device_count = reinterpret_cast<int (*)(int*)>(dlsym(runtime, COUNT_DEVICES));
    int count = -1;
    EXPECT_NE(device_count(&count), 0);  // it needs tables that the counting driver does not have

    const auto request = fake<decltype(&fake_request)>("fake_request");
    const auto came_from = fake<decltype(&fake_request_came_from)>("fake_request_came_from");
    std::vector<std::string> asked;
    for (unsigned long i = 0; i < fake<decltype(&fake_request_count)>("fake_request_count")();
         ++i) {
        if (request(i)[0] == ' ') continue;  // it begins with a request for the empty name
        asked.push_back(request(i));
        EXPECT_TRUE(came_from(i, "libswap.so")) << request(i);
    }
    std::sort(asked.begin(), asked.end());

    std::vector<std::string> wanted;
    std::ifstream list(CUDART_REQUESTS);
    for (std::string line; std::getline(list, line);)
        if (!line.empty()) wanted.push_back(line);
    std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(wanted.size(), 439U);
    // A release beside 13.0 may ask for a few more or less; most of what it asks for must be the
    // same.
    std::vector<std::string> common;
    std::set_intersection(asked.begin(), asked.end(), wanted.begin(), wanted.end(),
                          std::back_inserter(common));
    EXPECT_GT(asked.size(), 400U);
    EXPECT_GT(common.size(), 400U);
}

}  // namespace
