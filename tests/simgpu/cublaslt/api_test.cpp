// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The stand-in for cuBLASLt as a program uses it, on the stand-in driver.

#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

/// A column-major matrix in device memory and its layout.
class Matrix {
  public:
    Matrix(std::uint64_t rows, std::uint64_t columns, std::int64_t ld, int batch = 1)
        : elements_(static_cast<std::size_t>(ld) * columns * static_cast<std::size_t>(batch)) {
        EXPECT_EQ(cuMemAlloc(&address_, elements_ * sizeof(float)), CUDA_SUCCESS);
        EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, columns, ld),
                  CUBLAS_STATUS_SUCCESS);
        if (batch > 1) {
            const std::int32_t count = batch;
            const std::int64_t stride = ld * static_cast<std::int64_t>(columns);
            EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                       &count, sizeof(count)),
                      CUBLAS_STATUS_SUCCESS);
            EXPECT_EQ(
                cublasLtMatrixLayoutSetAttribute(
                    layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
                CUBLAS_STATUS_SUCCESS);
        }
    }
    Matrix(const Matrix&) = delete;
    ~Matrix() {
        cublasLtMatrixLayoutDestroy(layout);
        cuMemFree(address_);
    }

    void fill(float first, float step) {
        std::vector<float> values(elements_);
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] = first + step * static_cast<float>(k % 17);
        ASSERT_EQ(cuMemcpyHtoD(address_, values.data(), elements_ * sizeof(float)), CUDA_SUCCESS);
    }

    std::vector<float> read() const {
        std::vector<float> values(elements_);
        EXPECT_EQ(cuMemcpyDtoH(values.data(), address_, elements_ * sizeof(float)), CUDA_SUCCESS);
        return values;
    }

    void* data() const { return reinterpret_cast<void*>(address_); }

    cublasLtMatrixLayout_t layout = nullptr;

  private:
    std::size_t elements_;
    CUdeviceptr address_ = 0;
};

class CublasLt : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        CUdevice device = 0;
        ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        CUcontext context = nullptr;
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
        ASSERT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
                  CUBLAS_STATUS_SUCCESS);
        ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    }
    void TearDown() override {
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatmulDescDestroy(desc);
        cublasLtDestroy(handle);
    }

    template <typename T>
    void set(cublasLtMatmulDescAttributes_t attribute, T value) {
        ASSERT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
                  CUBLAS_STATUS_SUCCESS);
    }

    cublasStatus_t matmul(float alpha, const Matrix& a, const Matrix& b, float beta,
                          const Matrix& c, const Matrix& d) {
        cublasLtMatmulHeuristicResult_t found{};
        int count = 0;
        const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
            handle, desc, a.layout, b.layout, c.layout, d.layout, preference, 1, &found, &count);
        EXPECT_EQ(count, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
        return cublasLtMatmul(handle, desc, &alpha, a.data(), a.layout, b.data(), b.layout, &beta,
                              c.data(), c.layout, d.data(), d.layout, &found.algo, nullptr, 0,
                              nullptr);
    }

    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
};

TEST_F(CublasLt, AddsBiasToEachRowOfAProduct) {
    Matrix weight(4, 3, 4);
    Matrix in(4, 5, 4);
    Matrix out(3, 5, 3);
    Matrix bias(3, 1, 3);
    weight.fill(-1, 0.25F);
    in.fill(0.5F, -0.125F);
    bias.fill(10, 1);
    out.fill(99, 0);
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data());
    ASSERT_EQ(matmul(1, weight, in, 0, out, out), CUBLAS_STATUS_SUCCESS);
    const auto w = weight.read();
    const auto x = in.read();
    const auto b = bias.read();
    const auto y = out.read();
    for (std::size_t column = 0; column < 5; ++column) {
        for (std::size_t row = 0; row < 3; ++row) {
            float expected = b[row];
            for (std::size_t k = 0; k < 4; ++k) expected += w[row * 4 + k] * x[column * 4 + k];
            EXPECT_FLOAT_EQ(y[column * 3 + row], expected);
        }
    }
}

TEST_F(CublasLt, KeepsTheSourceApartFromTheResultInEveryBatch) {
    Matrix a(2, 2, 3, 2);
    Matrix b(2, 2, 2, 2);
    Matrix c(2, 2, 4, 2);
    Matrix d(2, 2, 2, 2);
    a.fill(1, 0.5F);
    b.fill(2, -0.25F);
    c.fill(-3, 1);
    d.fill(77, 0);
    const auto before = c.read();
    ASSERT_EQ(matmul(2, a, b, 0.5F, c, d), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(c.read(), before);
    const auto x = a.read();
    const auto y = b.read();
    const auto result = d.read();
    for (std::size_t batch = 0; batch < 2; ++batch) {
        for (std::size_t column = 0; column < 2; ++column) {
            for (std::size_t row = 0; row < 2; ++row) {
                float sum = 0;
                for (std::size_t k = 0; k < 2; ++k)
                    sum += x[batch * 6 + k * 3 + row] * y[batch * 4 + column * 2 + k];
                const float expected = 2 * sum + 0.5F * before[batch * 8 + column * 4 + row];
                EXPECT_FLOAT_EQ(result[batch * 4 + column * 2 + row], expected);
            }
        }
    }
}

TEST_F(CublasLt, AppliesActivations) {
    Matrix identity(2, 2, 2);
    Matrix in(2, 2, 2);
    Matrix out(2, 2, 2);
    identity.fill(0, 0);
    const float one = 1;
    ASSERT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(identity.data()), &one, sizeof(one)),
              CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(identity.data()) + 3 * sizeof(float), &one,
                           sizeof(one)),
              CUDA_SUCCESS);
    in.fill(-1, 0.75F);
    const auto x = in.read();
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
    ASSERT_EQ(matmul(1, identity, in, 0, out, out), CUBLAS_STATUS_SUCCESS);
    const auto relu = out.read();
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU);
    ASSERT_EQ(matmul(1, identity, in, 0, out, out), CUBLAS_STATUS_SUCCESS);
    const auto gelu = out.read();
    for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(relu[k], x[k] > 0 ? x[k] : 0.0F);
        const double v = x[k];
        const double root = std::sqrt(2 / std::acos(-1.0));
        EXPECT_NEAR(gelu[k], 0.5 * v * (1 + std::tanh(root * (v + 0.044715 * v * v * v))), 1e-6);
    }
}

TEST_F(CublasLt, RefusesShapesThatDisagreeAndTypesThatAreNotBuilt) {
    Matrix a(2, 3, 2);
    Matrix b(2, 2, 2);
    Matrix d(2, 2, 2);
    EXPECT_EQ(matmul(1, a, b, 0, d, d), CUBLAS_STATUS_INVALID_VALUE);
    const std::int32_t bytes = CUDA_R_8I;
    ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(b.layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &bytes,
                                               sizeof(bytes)),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(matmul(1, b, b, 0, d, d), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasLt, AttributesAreReadBackAndSizesChecked) {
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
    std::int32_t value = -1;
    std::size_t written = 0;
    EXPECT_EQ(
        cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, nullptr, 0, &written),
        CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(written, sizeof(value));
    EXPECT_EQ(cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &value,
                                             sizeof(value), nullptr),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(value, CUBLAS_OP_T);
    const std::int64_t wide = 0;
    EXPECT_EQ(
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof(wide)),
        CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(
        cublasLtMatmulDescSetAttribute(nullptr, CUBLASLT_MATMUL_DESC_TRANSA, &value, sizeof(value)),
        CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
