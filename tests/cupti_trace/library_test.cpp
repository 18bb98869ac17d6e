// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cupti_trace/library.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace libswap::cupti {
namespace {

TEST(OtherClient, IsALibraryThatCuptiWasLinkedInto) {
    EXPECT_EQ(other_client(), "");
    void* const library = dlopen(BRINGS_CUPTI, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_EQ(other_client(), "libbrings_cupti.so brings CUPTI");
    dlclose(library);
    EXPECT_EQ(other_client(), "");
}

/// It is in nobody's scope but its own. Under libswap its calls still mean its own functions.
TEST(ALibraryThatBringsCupti, GetsItsOwn) {
    void* const library = dlopen(BRINGS_CUPTI, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto* const begin = reinterpret_cast<int (*)()>(dlsym(library, "begin_profile"));
    ASSERT_NE(begin, nullptr);
    EXPECT_EQ(begin(), 4711 + 4712);
    dlclose(library);
}

}  // namespace
}  // namespace libswap::cupti
