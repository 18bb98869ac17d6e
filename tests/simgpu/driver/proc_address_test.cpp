// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

struct Row {
    std::string symbol;
    std::string base;
    int version;
    bool per_thread;
};

const Row kRows[] = {
#define SIMGPU_API(symbol, base, version, per_thread) {#symbol, #base, version, per_thread != 0},
#include "simgpu/driver/api.def"
#undef SIMGPU_API
};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

GetProcAddress real() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT_NE(nullptr, library) << dlerror();
    return reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
}

std::string name_at(void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return "(nothing)";
    return info.dli_sname;
}

/// The symbol that was introduced with exactly this version, in the variant asked for where there
/// is one.
std::string expected(const std::string& base, int version, bool per_thread) {
    std::string found;
    for (const Row& row : kRows) {
        if (row.base != base || row.version > version) continue;
        if (!row.per_thread || per_thread) found = row.symbol;
    }
    return found;
}

}  // namespace

TEST(GetProcAddress, FindsEveryFunctionByItsVersion) {
    for (const Row& row : kRows) {
        void* address = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        cuuint64_t flags = row.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                          : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
        ASSERT_EQ(CUDA_SUCCESS, real()(row.base.c_str(), &address, row.version, flags, &status))
            << row.symbol;
        EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, status) << row.symbol;
        EXPECT_EQ(row.symbol, name_at(address));
    }
}

TEST(GetProcAddress, AnswersNvidiasRuntimeLineByLine) {
    const char* path = std::getenv("SIMGPU_PROC_ADDRESS_LIST");
    std::ifstream list(path != nullptr ? path : "");
    if (!list) GTEST_SKIP() << "the list of what libcudart 13 asks for is not here";
    std::string line;
    int answered = 0;
    while (std::getline(list, line)) {
        char base[128];
        int version = 0;
        unsigned flags = 0;
        if (std::sscanf(line.c_str(), "%127s ver=%d flags=%u", base, &version, &flags) != 3)
            continue;
        void* address = nullptr;
        ASSERT_EQ(CUDA_SUCCESS, real()(base, &address, version, flags, nullptr)) << line;
        EXPECT_EQ(expected(base, version, flags == 2), name_at(address)) << line;
        ++answered;
    }
    EXPECT_GE(answered, 400);
}

TEST(GetProcAddress, SaysWhyNot) {
    void* address = reinterpret_cast<void*>(1);
    auto status = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, real()("cuNoSuchFunction", &address, 13000, 0, &status));
    EXPECT_EQ(nullptr, address);
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, real()("cuLaunchKernelEx", &address, 11050, 0, &status));
    EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, real()("", &address, 0, 0, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, real()("cuInit", nullptr, 13000, 0, &status));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, real()(nullptr, &address, 13000, 0, &status));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, real()("cuInit", &address, 13000, 64, &status));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, real()("cuInit", &address, 99000, 0, &status));
}

TEST(GetProcAddress, AnswersForItself) {
    void* address = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, real()("cuGetProcAddress", &address, 12000, 0, nullptr));
    EXPECT_EQ("cuGetProcAddress_v2", name_at(address));
    EXPECT_EQ(CUDA_SUCCESS, real()("cuGetProcAddress", &address, 11030, 0, nullptr));
    EXPECT_EQ("cuGetProcAddress", name_at(address));
}
