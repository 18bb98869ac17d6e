// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/driver.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace libswap {
namespace {

/// A driver that has everything but the names in `absent`; every function is the same one.
struct PretendDriver {
    std::set<std::string> absent;
    std::set<std::string> asked;
};

CUresult do_nothing() { return CUDA_SUCCESS; }

void* look_up(const char* symbol, void* context) {
    auto& pretend = *static_cast<PretendDriver*>(context);
    pretend.asked.insert(symbol);
    return pretend.absent.count(symbol) ? nullptr : reinterpret_cast<void*>(&do_nothing);
}

TEST(Driver, LoadsEverythingByItsExactName) {
    PretendDriver pretend;
    Driver table;
    ASSERT_TRUE(load_driver(&look_up, &pretend, &table));
    EXPECT_TRUE(pretend.asked.count("cuMemAlloc_v2"));
    EXPECT_FALSE(pretend.asked.count("cuMemAlloc"));
    EXPECT_NE(table.cuMemAlloc, nullptr);  // a macro of cuda.h: the same member
    EXPECT_NE(table.cuLaunchKernel, nullptr);
    EXPECT_NE(table.cuGraphLaunch, nullptr);
}

TEST(Driver, MissingRequiredFunctionIsNamed) {
    PretendDriver pretend{{"cuMemMap"}, {}};
    Driver table;
    const Status loaded = load_driver(&look_up, &pretend, &table);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, CUDA_ERROR_NOT_FOUND);
    EXPECT_STREQ(loaded.error().what, "cuMemMap");
}

TEST(Driver, MissingOptionalFunctionIsNull) {
    PretendDriver pretend{{"cuKernelGetFunction"}, {}};
    Driver table;
    ASSERT_TRUE(load_driver(&look_up, &pretend, &table));
    EXPECT_EQ(table.cuKernelGetFunction, nullptr);
}

TEST(Driver, OlderNameOfTheSameSignatureServes) {
    PretendDriver pretend{{"cuEventElapsedTime_v2"}, {}};
    Driver table;
    ASSERT_TRUE(load_driver(&look_up, &pretend, &table));
    EXPECT_NE(table.cuEventElapsedTime, nullptr);
    pretend.absent.insert("cuEventElapsedTime");
    EXPECT_FALSE(load_driver(&look_up, &pretend, &table));
}

TEST(Driver, ErrorsHaveNamesWithoutADriver) {
    EXPECT_STREQ(error_name(CUDA_SUCCESS), "CUDA_SUCCESS");
    EXPECT_STREQ(error_name(CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_NE(error_name(static_cast<CUresult>(98765)), nullptr);
}

Status twice(CUresult first, CUresult second) {
    LIBSWAP_TRY(LIBSWAP_CU(first));
    LIBSWAP_TRY(LIBSWAP_CU(second));
    return {};
}

TEST(Driver, CallsBecomeResultsWithTheirTextAndPlace) {
    EXPECT_TRUE(twice(CUDA_SUCCESS, CUDA_SUCCESS));
    const Status failed = twice(CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_STREQ(failed.error().what, "second");
    EXPECT_NE(std::strstr(failed.error().where.file_name(), "driver_test.cpp"), nullptr);
}

TEST(Driver, TellsTheCallThatFailedByItsName) {
    EXPECT_EQ(call_name("driver_.cuMemMap(base, bytes, 0, handle, 0)"), "cuMemMap");
    EXPECT_EQ(call_name("impl_->driver.cuCtxSynchronize()"), "cuCtxSynchronize");
    EXPECT_EQ(call_name("a remap"), "a remap");
}

}  // namespace
}  // namespace libswap
