// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The stand-in as a program uses it, on the stand-in driver.

#include <cublas_v2.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

class Cublas : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    }

    void TearDown() override {
        EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS);
        for (CUdeviceptr address : allocated_) {
            EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
        }
        cuDevicePrimaryCtxRelease(0);
    }

    template <typename T>
    T* on_device(const std::vector<T>& values) {
        CUdeviceptr address = 0;
        EXPECT_EQ(cuMemAlloc(&address, values.size() * sizeof(T)), CUDA_SUCCESS);
        EXPECT_EQ(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
        allocated_.push_back(address);
        return reinterpret_cast<T*>(address);
    }

    template <typename T>
    std::vector<T> on_host(const T* values, std::size_t count) {
        std::vector<T> copy(count);
        EXPECT_EQ(
            cuMemcpyDtoH(copy.data(), reinterpret_cast<CUdeviceptr>(values), count * sizeof(T)),
            CUDA_SUCCESS);
        return copy;
    }

    std::size_t free_bytes() {
        std::size_t free = 0;
        std::size_t total = 0;
        EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
        return free;
    }

    CUcontext context_ = nullptr;
    cublasHandle_t handle_ = nullptr;
    std::vector<CUdeviceptr> allocated_;
};

// Column-major 2 x 2: columns (1, 2) and (3, 4).
const std::vector<float> kA = {1, 2, 3, 4};
const std::vector<float> kB = {10, 20, 30, 40};
const std::vector<float> kProduct = {70, 100, 150, 220};
const std::vector<float> kNan(4, std::numeric_limits<float>::quiet_NaN());

TEST_F(Cublas, MultipliesWithFactorsOnTheHostAndOnTheDevice) {
    float* a = on_device(kA);
    float* b = on_device(kB);
    float* c = on_device(kNan);
    const float one = 1;
    const float zero = 0;
    ASSERT_EQ(
        cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2),
        CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(c, 4), kProduct);

    float* factors = on_device<float>({2, 1});
    ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSgemm_64(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, factors, a, 2, b, 2,
                             factors + 1, c, 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(c, 4), (std::vector<float>{210, 300, 450, 660}));
}

TEST_F(Cublas, MultipliesBatches) {
    std::vector<float> two = kA;
    two.insert(two.end(), kB.begin(), kB.end());
    float* a = on_device(two);
    float* b = on_device(kB);
    float* c = on_device(std::vector<float>(8, 0));
    const float one = 1;
    const float zero = 0;
    ASSERT_EQ(cublasSgemmStridedBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, 4,
                                        b, 2, 0, &zero, c, 2, 4, 2),
              CUBLAS_STATUS_SUCCESS);
    const std::vector<float> expected = {70, 100, 150, 220, 700, 1000, 1500, 2200};
    EXPECT_EQ(on_host(c, 8), expected);

    float* d = on_device(std::vector<float>(8, 0));
    float** a_table = on_device<float*>({a, a + 4});
    float** b_table = on_device<float*>({b, b});
    float** d_table = on_device<float*>({d, d + 4});
    ASSERT_EQ(cublasSgemmBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a_table, 2,
                                 b_table, 2, &zero, d_table, 2, 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(d, 8), expected);
}

TEST_F(Cublas, MultipliesComplexMatricesAndVectors) {
    const float* a = on_device<float>({1, 2, 0, 1});  // (1 + 2i, i), a row
    const float* x = on_device<float>({0, 1, 2, 0});
    float* y = on_device<float>({0, 0, 9, 9});
    const cuComplex one{1, 0};
    const cuComplex zero{0, 0};
    const auto complex = [](const float* data) {
        return reinterpret_cast<cuComplex*>(const_cast<float*>(data));
    };
    ASSERT_EQ(cublasCgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, complex(a), 1,
                          complex(x), 2, &zero, complex(y), 1),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(y, 4), (std::vector<float>{-2, 3, 9, 9}));
    ASSERT_EQ(cublasCgemv(handle_, CUBLAS_OP_C, 1, 2, &one, complex(a), 1, complex(x), 1, &zero,
                          complex(y), 1),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(y, 4), (std::vector<float>{2, 1, 1, 0}));
    EXPECT_EQ(cublasCgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 2, &one, complex(a), 1,
                          complex(x), 2, &zero, complex(y), 2),
              CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Cublas, MultipliesByTypeWhereItIsFloat) {
    float* a = on_device(kA);
    float* b = on_device(kB);
    float* c = on_device(kNan);
    const float one = 1;
    const float zero = 0;
    ASSERT_EQ(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_32F, 2, b,
                           CUDA_R_32F, 2, &zero, c, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(c, 4), kProduct);
}

TEST_F(Cublas, RefusesWrongArguments) {
    const float one = 1;
    float* a = on_device(kA);
    auto gemm = [&](int m, int n, int k, int lda, int ldb, int ldc, const float* alpha) {
        return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, a, lda, a, ldb, &one,
                           a, ldc);
    };
    EXPECT_EQ(gemm(2, 2, 2, 2, 2, 2, &one), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(gemm(0, 2, 2, 1, 2, 1, nullptr), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(gemm(-1, 2, 2, 2, 2, 2, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(2, 2, 2, 1, 2, 2, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(2, 2, 2, 2, 1, 2, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(2, 2, 2, 2, 2, 1, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(2, 2, 2, 2, 2, 2, nullptr), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a, 2),
              CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(cublasSetWorkspace(handle_, a + 1, 1024), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Cublas, GivesResultsOfReductionsToHostAndDevice) {
    float* x = on_device<float>({3, -4, 0});
    float norm = 0;
    ASSERT_EQ(cublasSnrm2(handle_, 3, x, 1, &norm), CUBLAS_STATUS_SUCCESS);
    EXPECT_FLOAT_EQ(norm, 5);
    int place = 0;
    ASSERT_EQ(cublasIsamax(handle_, 3, x, 1, &place), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(place, 2);
    std::int64_t wide_place = 0;
    ASSERT_EQ(cublasIsamax_64(handle_, 3, x, 1, &wide_place), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(wide_place, 2);

    float* sum = on_device<float>({-1});
    ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSasum(handle_, 3, x, 1, sum), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(sum, 1)[0], 7);
}

TEST_F(Cublas, CopiesMatricesColumnByColumn) {
    float* device = on_device(std::vector<float>(9, 0));
    ASSERT_EQ(cublasSetMatrix(2, 2, sizeof(float), kA.data(), 2, device, 3), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(on_host(device, 5), (std::vector<float>{1, 2, 0, 3, 4}));
    std::vector<float> back(4);
    ASSERT_EQ(cublasGetMatrix(2, 2, sizeof(float), device, 3, back.data(), 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(back, kA);
    std::vector<float> every_third(2);
    ASSERT_EQ(cublasGetVector(2, sizeof(float), device, 3, every_third.data(), 1),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(every_third, (std::vector<float>{1, 3}));
}

TEST_F(Cublas, WorksInTheHandlesStream) {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cublasSetStream(handle_, stream), CUBLAS_STATUS_SUCCESS);
    cudaStream_t got = nullptr;
    ASSERT_EQ(cublasGetStream(handle_, &got), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(got, stream);
    float* x = on_device(kA);
    const float two = 2;
    ASSERT_EQ(cublasSscal(handle_, 4, &two, x, 1), CUBLAS_STATUS_SUCCESS);
    std::vector<float> doubled(4);
    ASSERT_EQ(cuMemcpyDtoHAsync(doubled.data(), reinterpret_cast<CUdeviceptr>(x), 16, stream),
              CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(doubled, (std::vector<float>{2, 4, 6, 8}));
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Cublas, AllocatesAWorkspaceOnlyWhereNoneIsSet) {
    float* a = on_device(kA);
    float* workspace = on_device(std::vector<float>(1024, 0));
    const float one = 1;
    const std::size_t before = free_bytes();
    auto multiply = [&] {
        return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a,
                           2);
    };
    ASSERT_EQ(cublasSetWorkspace(handle_, workspace, 4096), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
    // Which takes the workspace back.
    ASSERT_EQ(cublasSetStream(handle_, nullptr), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(free_bytes(), before - (4 << 20));
}

TEST_F(Cublas, KeepsModes) {
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasGetMathMode(handle_, &math), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(math, CUBLAS_TF32_TENSOR_OP_MATH);
    int version = 0;
    ASSERT_EQ(cublasGetVersion(handle_, &version), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(version, CUBLAS_VERSION);
    EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED");
}

TEST_F(Cublas, SaysOnceWhatIsNotBuilt) {
    ::unsetenv("SIMGPU_STRICT");
    testing::internal::CaptureStderr();
    float* a = on_device(kA);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(cublasStrmv(handle_, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 2, a,
                              2, a, 1),
                  CUBLAS_STATUS_NOT_SUPPORTED);
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "simgpu: cublas: cublasStrmv_v2 is not built, NOT_SUPPORTED\n");
}

TEST_F(Cublas, FaultsLikeADevice) {
    const float one = 1;
    float* a = on_device(kA);
    float* nowhere = a + (std::size_t{1} << 30);
    ASSERT_EQ(
        cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, nowhere, 2, a, 2, &one, a, 2),
        CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a, 2),
              CUBLAS_STATUS_EXECUTION_FAILED);
    allocated_.clear();
    EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
}

}  // namespace
