// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The stand-in's library by the vendor's interface, on the stand-in driver.

#include <cuda.h>
#include <cufftXt.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

namespace {

class Cufft : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        ASSERT_EQ(cufftCreate(&plan_), CUFFT_SUCCESS);
    }
    void TearDown() override {
        EXPECT_EQ(cufftDestroy(plan_), CUFFT_SUCCESS);
        for (const CUdeviceptr address : memory_) EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    }
    template <typename T>
    void* upload(const std::vector<T>& values) {
        CUdeviceptr address = 0;
        EXPECT_EQ(cuMemAlloc(&address, values.size() * sizeof(T)), CUDA_SUCCESS);
        EXPECT_EQ(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
        memory_.push_back(address);
        return reinterpret_cast<void*>(address);
    }
    template <typename T>
    std::vector<T> download(const void* from, std::size_t count) {
        std::vector<T> values(count);
        EXPECT_EQ(
            cuMemcpyDtoH(values.data(), reinterpret_cast<CUdeviceptr>(from), count * sizeof(T)),
            CUDA_SUCCESS);
        return values;
    }
    cufftResult make(long long n, cudaDataType from, cudaDataType to, long long batch = 1) {
        std::size_t work = 1;
        return cufftXtMakePlanMany(plan_, 1, &n, nullptr, 1, 1, from, nullptr, 1, 1, to, batch,
                                   &work, CUDA_C_32F);
    }

    CUcontext context_ = nullptr;
    cufftHandle plan_ = CUFFT_PLAN_NULL;
    std::vector<CUdeviceptr> memory_;
};

using Numbers = std::vector<std::complex<float>>;

Numbers rounded(Numbers values) {
    for (auto& value : values) value = {std::round(value.real()), std::round(value.imag())};
    return values;
}

TEST_F(Cufft, TransformsABatchOfRealArrays) {
    ASSERT_EQ(make(4, CUDA_R_32F, CUDA_C_32F, 2), CUFFT_SUCCESS);
    ASSERT_EQ(cufftSetStream(plan_, nullptr), CUFFT_SUCCESS);
    void* from = upload(std::vector<float>{1, 2, 3, 4, 1, 0, 0, 0});
    void* to = upload(Numbers(6));
    ASSERT_EQ(cufftXtExec(plan_, from, to, CUFFT_FORWARD), CUFFT_SUCCESS);
    EXPECT_EQ(rounded(download<std::complex<float>>(to, 6)),
              (Numbers{{10, 0}, {-2, 2}, {-2, 0}, {1, 0}, {1, 0}, {1, 0}}));
}

TEST_F(Cufft, TransformsInPlaceBothWays) {
    ASSERT_EQ(make(2, CUDA_C_32F, CUDA_C_32F), CUFFT_SUCCESS);
    void* data = upload(Numbers{{1, 2}, {3, 4}});
    ASSERT_EQ(cufftXtExec(plan_, data, data, CUFFT_FORWARD), CUFFT_SUCCESS);
    EXPECT_EQ(rounded(download<std::complex<float>>(data, 2)), (Numbers{{4, 6}, {-2, -2}}));
    ASSERT_EQ(cufftXtExec(plan_, data, data, CUFFT_INVERSE), CUFFT_SUCCESS);
    EXPECT_EQ(rounded(download<std::complex<float>>(data, 2)), (Numbers{{2, 4}, {6, 8}}));
}

TEST_F(Cufft, RefusesWrongArguments) {
    float* data = nullptr;
    EXPECT_EQ(cufftXtExec(plan_, data, data, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
    EXPECT_EQ(make(0, CUDA_C_32F, CUDA_C_32F), CUFFT_INVALID_SIZE);
    EXPECT_EQ(make(4, CUDA_R_32F, CUDA_R_32F), CUFFT_INVALID_TYPE);
    EXPECT_EQ(make(4, CUDA_C_32F, CUDA_C_64F), CUFFT_INVALID_TYPE);
    ASSERT_EQ(make(4, CUDA_C_32F, CUDA_C_32F), CUFFT_SUCCESS);
    EXPECT_EQ(make(4, CUDA_C_32F, CUDA_C_32F), CUFFT_INVALID_PLAN);  // has been made
    EXPECT_EQ(cufftXtExec(plan_, data, data, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
    EXPECT_EQ(cufftDestroy(CUFFT_PLAN_NULL), CUFFT_INVALID_PLAN);
}

}  // namespace
