// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The interface without handles, as old programs use it.

#include <cublas.h>
#include <cuda.h>
#include <gtest/gtest.h>

namespace {

class LegacyCublas : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cublasInit(), CUBLAS_STATUS_SUCCESS);
    }
    void TearDown() override { EXPECT_EQ(cublasShutdown(), CUBLAS_STATUS_SUCCESS); }

    template <typename T>
    static T* upload(const T (&values)[4]) {
        void* device = nullptr;
        EXPECT_EQ(cublasAlloc(4, sizeof(T), &device), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(cublasSetVector(4, sizeof(T), values, 1, device, 1), CUBLAS_STATUS_SUCCESS);
        return static_cast<T*>(device);
    }

    template <typename T>
    static void expect(const T* device, T a, T b, T c, T d) {
        T values[4] = {};
        ASSERT_EQ(cublasGetVector(4, sizeof(T), device, 1, values, 1), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(values[0], a);
        EXPECT_EQ(values[1], b);
        EXPECT_EQ(values[2], c);
        EXPECT_EQ(values[3], d);
    }
};

TEST_F(LegacyCublas, MultipliesByValueAndLetter) {
    const float values[4] = {1, 2, 3, 4};
    float* a = upload(values);
    float* c = upload(values);
    cublasSgemm('n', 't', 2, 2, 2, 2, a, 2, a, 2, 1, c, 2);
    expect(c, 21.0F, 30.0F, 31.0F, 44.0F);
    cublasSgemv('T', 2, 2, 1, a, 2, a, 1, 0, c, 1);
    expect(c, 5.0F, 11.0F, 31.0F, 44.0F);
    EXPECT_EQ(cublasGetError(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasFree(a), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasFree(c), CUBLAS_STATUS_SUCCESS);
}

TEST_F(LegacyCublas, ReturnsResults) {
    const double values[4] = {3, -8, 4, 1};
    double* x = upload(values);
    EXPECT_EQ(cublasDdot(3, x, 1, x, 1), 89);
    EXPECT_EQ(cublasDasum(4, x, 1), 16);
    EXPECT_EQ(cublasDnrm2(2, x, 2), 5);
    EXPECT_EQ(cublasIdamax(4, x, 1), 2);
    cublasDscal(2, -1, x, 1);
    cublasDaxpy(2, 2, x, 1, x + 2, 1);
    expect(x, -3.0, 8.0, -2.0, 17.0);
    EXPECT_EQ(cublasFree(x), CUBLAS_STATUS_SUCCESS);
}

TEST_F(LegacyCublas, KeepsTheStatusUntilItIsAskedFor) {
    const float values[4] = {1, 2, 3, 4};
    float* a = upload(values);
    cublasSgemm('x', 'n', 2, 2, 2, 1, a, 2, a, 2, 0, a, 2);
    cublasSscal(4, 2, a, 1);
    EXPECT_EQ(cublasGetError(), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasGetError(), CUBLAS_STATUS_SUCCESS);
    expect(a, 2.0F, 4.0F, 6.0F, 8.0F);
    EXPECT_EQ(cublasFree(a), CUBLAS_STATUS_SUCCESS);
}

TEST(LegacyCublasWithoutInit, SaysSo) {
    void* device = nullptr;
    EXPECT_EQ(cublasAlloc(1, 4, &device), CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(cublasShutdown(), CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
