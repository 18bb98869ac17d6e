// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// SIMGPU_DATA=none: more memory than this computer has. Run with it, and with SIMGPU_MEMORY=190GiB.
#include "gpu_fixture.hpp"

#include <array>

#include "runtime/digest.hpp"
#include "simgpu/driver/host_kernel.h"

namespace {

constexpr std::size_t kGib = std::size_t{1} << 30;

class WithoutData : public Gpu {
  protected:
    CUdeviceptr allocate(std::size_t bytes) {
        CUdeviceptr va = 0;
        EXPECT_CU(CUDA_SUCCESS, cuMemAlloc(&va, bytes));
        return va;
    }

    /// libswap's digest of a whole allocation, by its own kernel, in so many launches.
    libswap::Digest digest(CUdeviceptr va, std::size_t bytes, std::size_t pieces = 1) {
        CUmodule digests = nullptr;
        CUfunction kernel = nullptr;
        void* result = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuModuleLoadData(&digests, libswap::kDigestPtx));
        EXPECT_CU(CUDA_SUCCESS,
                  cuModuleGetFunction(&kernel, digests, libswap::Digester::kKernelName));
        EXPECT_CU(CUDA_SUCCESS, cuMemHostAlloc(&result, sizeof(libswap::Digest), 0));
        CUdeviceptr sum = allocate(32);
        std::uint64_t words = bytes / 8 / pieces;
        std::uint64_t zero = 0;
        for (std::uint64_t i = 0; i < pieces; ++i) {
            CUdeviceptr piece = va + 8 * i * words;
            std::uint64_t first = i * words;
            void* out = i + 1 == pieces ? result : nullptr;
            void* arguments[] = {&piece, &words, &first, &sum, &zero, &zero, &out};
            EXPECT_CU(CUDA_SUCCESS,
                      cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
        }
        EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
        const libswap::Digest digest = *static_cast<libswap::Digest*>(result);
        EXPECT_CU(CUDA_SUCCESS, cuMemFreeHost(result));
        EXPECT_CU(CUDA_SUCCESS, cuMemFree(sum));
        return digest;
    }
};

TEST_F(WithoutData, TimePassesAsItWouldWithData) {
    const CUdeviceptr a = allocate(80 * kGib);
    const CUdeviceptr b = allocate(80 * kGib);
    CUevent begin = nullptr;
    CUevent end = nullptr;
    ASSERT_CU(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    ASSERT_CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(begin, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(b, a, 80 * kGib, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuEventRecord(end, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuEventSynchronize(end));
    float ms = 0;
    EXPECT_CU(CUDA_SUCCESS, cuEventElapsedTime(&ms, begin, end));
    EXPECT_NEAR(ms, 2.0 * 80 * 1.073741824 / 1.555, 1);
    CUdeviceptr c = 0;
    EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&c, 31 * kGib));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(a));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(b));
}

TEST_F(WithoutData, CopiesToTheHostBringNothing) {
    const CUdeviceptr va = allocate(kPage);
    unsigned word = 17;
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD32(va, 4, 1));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoH(&word, va, sizeof word));
    EXPECT_EQ(word, 17u);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(WithoutData, KernelsCountWhatTheyWrite) {
    const CUdeviceptr va = allocate(2 * kPage);
    EXPECT_CU(CUDA_SUCCESS, fill(va, 1, 100));
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(simgpuWriteCount(va), 1u);
    EXPECT_EQ(simgpuWriteCount(va + kPage), 0u);
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(WithoutData, DigestsFollowWrites) {
    const std::size_t bytes = 3 * kPage;
    const CUdeviceptr va = allocate(bytes);
    const auto fresh = digest(va, bytes);
    EXPECT_TRUE(fresh.known());
    EXPECT_EQ(fresh, digest(va, bytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD8(va + kPage, 0, 1));
    const auto written = digest(va, bytes);
    EXPECT_FALSE(fresh == written);
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD8(va + kPage, 0, 1));
    EXPECT_FALSE(written == digest(va, bytes));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(WithoutData, DigestsInPiecesAreTheSame) {
    const std::size_t bytes = 6 * kPage;
    const CUdeviceptr va = allocate(bytes);
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD8(va + 4 * kPage, 0, 1));
    const auto whole = digest(va, bytes);
    EXPECT_EQ(whole, digest(va, bytes, 2));
    EXPECT_EQ(whole, digest(va, bytes, 6));
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD8(va + 4 * kPage, 0, 1));
    EXPECT_FALSE(whole == digest(va, bytes, 3));
    EXPECT_CU(CUDA_SUCCESS, cuMemFree(va));
}

TEST_F(WithoutData, WhatIsNotMappedFaultsAllTheSame) {
    const CUdeviceptr va = allocate(kPage);
    CUdeviceptr unmapped = 0;
    ASSERT_CU(cuMemAddressReserve(&unmapped, kPage, 0, 0, 0));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoDAsync(unmapped, va, 4, nullptr));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

}  // namespace
