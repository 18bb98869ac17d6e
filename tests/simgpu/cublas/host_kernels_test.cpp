// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The arithmetic of the stand-in, launch by launch, without a driver: device addresses are host
// addresses here.

#include "simgpu/cublas/host_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cublas/kernels.hpp"
#include "simgpu/half_float.hpp"

namespace libswap::simgpu::cublas {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// Nothing is mapped below.
constexpr std::uint64_t kFirstAddress = 1 << 16;

void* span(const SimgpuHostLaunch*, std::uint64_t va, std::size_t, int) {
    return va < kFirstAddress ? nullptr : reinterpret_cast<void*>(va);
}

struct Cost {
    double flops = -1;
    double bytes = -1;
};

template <typename Params>
Cost run(void (*kernel)(const SimgpuHostLaunch*), const Params& params) {
    EXPECT_TRUE(blas::load());
    Cost cost;
    SimgpuHostLaunch launch{};
    launch.params = &params;
    launch.param_bytes = sizeof(params);
    launch.span = span;
    launch.flops = &cost.flops;
    launch.bytes = &cost.bytes;
    kernel(&launch);
    return cost;
}

template <typename T>
std::uint64_t address(const std::vector<T>& values, std::size_t at = 0) {
    return reinterpret_cast<std::uint64_t>(values.data() + at);
}

std::vector<float> numbers(std::size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (float& value : values) {
        seed = seed * 1664525U + 1013904223U;
        value = static_cast<float>(seed >> 20) / 2048.0f - 1.0f;
    }
    return values;
}

GemmParams gemm_params(std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmParams params{};
    params.m = m;
    params.n = n;
    params.k = k;
    params.lda = params.ldb = params.ldc = std::max({m, n, k}) + 3;
    params.batch = 1;
    params.alpha.value = 1;
    return params;
}

class GemmShapes
    : public testing::TestWithParam<std::tuple<bool, bool, int, int, int, float, float>> {};

TEST_P(GemmShapes, AgreesWithPlainLoops) {
    const auto [transpose_a, transpose_b, m, n, k, alpha, beta] = GetParam();
    GemmParams params = gemm_params(m, n, k);
    params.transpose_a = transpose_a;
    params.transpose_b = transpose_b;
    params.alpha.value = alpha;
    params.beta.value = beta;
    const auto size = static_cast<std::size_t>(params.lda * params.lda);
    const auto a = numbers(size, 1);
    const auto b = numbers(size, 2);
    auto c = numbers(size, 3);
    const auto before = c;
    params.a = address(a);
    params.b = address(b);
    params.c = address(c);

    const Cost cost = run(host_gemm, params);

    for (std::int64_t j = 0; j < params.ldc; ++j) {
        for (std::int64_t i = 0; i < params.ldc; ++i) {
            const auto at = static_cast<std::size_t>(i + j * params.ldc);
            if (i >= m || j >= n) {
                ASSERT_EQ(c[at], before[at]) << "outside, at " << i << ", " << j;
                continue;
            }
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l) {
                sum +=
                    static_cast<double>(a[transpose_a ? l + i * params.lda : i + l * params.lda]) *
                    b[transpose_b ? j + l * params.ldb : l + j * params.ldb];
            }
            ASSERT_NEAR(c[at], alpha * sum + beta * before[at], 1e-4) << i << ", " << j;
        }
    }
    EXPECT_EQ(cost.flops, alpha == 0 ? 0 : 2.0 * m * n * k);
    EXPECT_GT(cost.bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(All, GemmShapes,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(1, 7, 150), testing::Values(1, 33, 130),
                                          testing::Values(0, 1, 65),
                                          testing::Values(0.0f, 1.0f, -0.5f),
                                          testing::Values(0.0f, 1.0f, 2.0f)));

TEST(HostGemm, DoesNotReadWhatBetaZeroOverwrites) {
    GemmParams params = gemm_params(4, 4, 4);
    const auto a = numbers(64, 1);
    std::vector<float> c(64, kNan);
    params.a = params.b = address(a);
    params.c = address(c);

    run(host_gemm, params);

    for (std::int64_t j = 0; j < 4; ++j) {
        for (std::int64_t i = 0; i < 4; ++i) {
            EXPECT_FALSE(std::isnan(c[i + j * params.ldc]));
        }
    }
}

TEST(HostGemm, DoesNotTouchMatricesThatAlphaZeroScales) {
    GemmParams params = gemm_params(4, 4, 4);
    params.alpha.value = 0;
    params.beta.value = 1;
    auto c = numbers(64, 1);
    const auto before = c;
    params.a = params.b = 8;  // not mapped
    params.c = address(c);

    run(host_gemm, params);

    EXPECT_EQ(c, before);
}

TEST(HostGemm, ChangesNothingWhereAnOperandFaults) {
    GemmParams params = gemm_params(4, 4, 4);
    auto c = numbers(64, 1);
    const auto before = c;
    params.a = 8;  // not mapped
    params.b = params.c = address(c);

    run(host_gemm, params);

    EXPECT_EQ(c, before);
}

TEST(HostGemm, ReadsFactorsFromTheDevice) {
    GemmParams params = gemm_params(1, 1, 1);
    const std::vector<float> a = {3};
    const std::vector<float> b = {5};
    std::vector<float> c = {7};
    const std::vector<float> factors = {2, 10};
    params.a = address(a);
    params.b = address(b);
    params.c = address(c);
    params.alpha.device = address(factors);
    params.beta.device = address(factors, 1);

    run(host_gemm, params);

    EXPECT_EQ(c[0], 2 * 15 + 10 * 7);
}

TEST(HostGemm, WalksBatchesByStrideAndByTable) {
    constexpr std::int64_t kSide = 5;
    constexpr std::int64_t kBatch = 3;
    constexpr std::size_t kStride = 100;
    GemmParams params = gemm_params(kSide, kSide, kSide);
    params.batch = kBatch;
    params.stride_a = params.stride_b = params.stride_c = kStride;
    const auto a = numbers(kStride * kBatch, 1);
    const auto b = numbers(kStride * kBatch, 2);
    std::vector<float> by_stride(kStride * kBatch);
    std::vector<float> by_table(kStride * kBatch);
    std::vector<float> one_by_one(kStride * kBatch);
    params.a = address(a);
    params.b = address(b);
    params.c = address(by_stride);
    run(host_gemm, params);

    std::vector<std::uint64_t> tables[3];
    for (std::size_t i = 0; i < kBatch; ++i) {
        tables[0].push_back(address(a, i * kStride));
        tables[1].push_back(address(b, i * kStride));
        tables[2].push_back(address(by_table, i * kStride));
    }
    params.tables = 1;
    params.a = address(tables[0]);
    params.b = address(tables[1]);
    params.c = address(tables[2]);
    run(host_gemm, params);

    params.tables = 0;
    params.batch = 1;
    for (std::size_t i = 0; i < kBatch; ++i) {
        params.a = address(a, i * kStride);
        params.b = address(b, i * kStride);
        params.c = address(one_by_one, i * kStride);
        run(host_gemm, params);
    }
    EXPECT_EQ(by_stride, one_by_one);
    EXPECT_EQ(by_table, one_by_one);
}

TEST(HostGemm, GivesTheSameBitsEveryTime) {
    GemmParams params = gemm_params(500, 70, 90);
    const auto a = numbers(503 * 503, 1);
    params.a = params.b = address(a);
    std::vector<float> first(503 * 503);
    params.c = address(first);
    run(host_gemm, params);
    for (int i = 0; i < 5; ++i) {
        std::vector<float> again(503 * 503);
        params.c = address(again);
        run(host_gemm, params);
        ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0);
    }
}

TEST(HostGemm, ComputesInDouble) {
    GemmParams params = gemm_params(1, 1, 2);
    params.element = params.result = Element::Double;
    params.ldb = 2;
    params.lda = 1;
    const std::vector<double> a = {1, 1e-12};
    const std::vector<double> b = {1, 1};
    std::vector<double> c = {0};
    params.a = address(a);
    params.b = address(b);
    params.c = address(c);

    run(host_gemm, params);

    EXPECT_EQ(c[0], 1 + 1e-12);
}

TEST(HostGemm, MultipliesHalvesInFloatAndRoundsOnce) {
    for (const Element element : {Element::Half, Element::BFloat}) {
        const auto bits = [&](double value) {
            return element == Element::Half ? ::simgpu::double_to_half(value)
                                            : ::simgpu::double_to_bf16(value);
        };
        GemmParams params = gemm_params(2, 1, 2);
        params.element = params.result = element;
        params.lda = params.ldc = 3;
        params.ldb = 2;
        params.beta.value = 1;
        const std::vector<std::uint16_t> a = {bits(1), bits(2), bits(0), bits(3), bits(4)};
        const std::vector<std::uint16_t> b = {bits(0.5), bits(-1)};
        std::vector<std::uint16_t> c = {bits(10), bits(20), bits(7)};
        params.a = address(a);
        params.b = address(b);
        params.c = address(c);

        run(host_gemm, params);

        EXPECT_EQ(c, (std::vector<std::uint16_t>{bits(7.5), bits(17), bits(7)}));
        // Halves may be summed into a matrix of floats.
        params.result = Element::Float;
        std::vector<float> wide = {0, 0, 7};
        params.c = address(wide);
        run(host_gemm, params);
        EXPECT_EQ(wide, (std::vector<float>{-2.5F, -3, 7}));
    }
}

struct MatrixCase {
    MatrixParams params{};
    std::vector<float> a = numbers(200, 1);
    std::vector<float> b = numbers(200, 2);
    std::vector<float> c = std::vector<float>(200, kNan);
    std::vector<float> x = numbers(60, 3);
    std::vector<float> y = numbers(60, 4);

    MatrixCase(MatrixOp op, std::int64_t m, std::int64_t n) {
        params.op = op;
        params.m = m;
        params.n = n;
        params.lda = params.ldb = params.ldc = 12;
        params.incx = params.incy = 1;
        params.a = address(a);
        params.b = address(b);
        params.c = address(c);
        params.x = address(x);
        params.y = address(y);
        params.alpha.value = 2;
        params.beta.value = 3;
    }
};

TEST(HostMatrix, GemvHonoursTransposeIncrementsAndBeta) {
    for (const bool transpose : {false, true}) {
        for (const std::int64_t increment : {1, 2, -1}) {
            MatrixCase t(MatrixOp::Gemv, 7, 4);
            t.params.transpose_a = transpose;
            t.params.incx = increment;
            t.params.incy = 2;
            const auto before = t.y;
            run(host_matrix, t.params);
            const std::int64_t in = transpose ? 7 : 4;
            for (std::int64_t i = 0; i < (transpose ? 4 : 7); ++i) {
                double sum = 0;
                for (std::int64_t j = 0; j < in; ++j) {
                    const std::int64_t at =
                        increment > 0 ? j * increment : (j - in + 1) * increment;
                    sum += static_cast<double>(t.a[transpose ? j + i * 12 : i + j * 12]) * t.x[at];
                }
                EXPECT_NEAR(t.y[2 * i], 2 * sum + 3 * before[2 * i], 1e-5);
                EXPECT_EQ(t.y[2 * i + 1], before[2 * i + 1]);
            }
        }
    }
}

TEST(HostMatrix, GemvDoesNotReadWhatBetaZeroOverwrites) {
    MatrixCase t(MatrixOp::Gemv, 7, 4);
    t.params.beta.value = 0;
    std::fill(t.y.begin(), t.y.end(), kNan);
    run(host_matrix, t.params);
    EXPECT_FALSE(std::isnan(t.y[0]));

    std::fill(t.y.begin(), t.y.end(), kNan);
    t.params.alpha.value = 0;
    run(host_matrix, t.params);
    EXPECT_EQ(t.y[6], 0.0f);
    EXPECT_TRUE(std::isnan(t.y[7]));
}

TEST(HostMatrix, GerAddsAnOuterProduct) {
    MatrixCase t(MatrixOp::Ger, 5, 3);
    const auto before = t.a;
    run(host_matrix, t.params);
    for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t i = 0; i < 5; ++i) {
            EXPECT_NEAR(t.a[i + j * 12], before[i + j * 12] + 2 * t.x[i] * t.y[j], 1e-5);
        }
    }
}

TEST(HostMatrix, GeamAddsAndTransposes) {
    MatrixCase t(MatrixOp::Geam, 5, 3);
    t.params.transpose_b = 1;
    run(host_matrix, t.params);
    for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t i = 0; i < 5; ++i) {
            EXPECT_NEAR(t.c[i + j * 12], 2 * t.a[i + j * 12] + 3 * t.b[j + i * 12], 1e-5);
        }
    }
    EXPECT_TRUE(std::isnan(t.c[5]));

    t.params.beta.value = 0;
    t.params.b = 8;  // not mapped, and not read
    run(host_matrix, t.params);
    EXPECT_EQ(t.c[0], 2 * t.a[0]);
}

TEST(HostMatrix, DgmmScalesRowsOrColumns) {
    for (const bool left : {false, true}) {
        MatrixCase t(MatrixOp::Dgmm, 5, 3);
        t.params.left = left;
        run(host_matrix, t.params);
        for (std::size_t j = 0; j < 3; ++j) {
            for (std::size_t i = 0; i < 5; ++i) {
                EXPECT_EQ(t.c[i + j * 12], t.a[i + j * 12] * t.x[left ? i : j]);
            }
        }
    }
}

struct VectorCase {
    VectorParams params{};
    std::vector<float> x = {1, -2, 3, -4};
    std::vector<float> y = {10, 20, 30, 40};
    std::vector<std::int64_t> result = {-1};

    explicit VectorCase(VectorOp op) {
        params.op = op;
        params.x = address(x);
        params.y = address(y);
        params.result = address(result);
        params.n = 4;
        params.incx = params.incy = 1;
        params.alpha.value = 2;
    }
    float result_float() const {
        float value;
        std::memcpy(&value, result.data(), sizeof(value));
        return value;
    }
};

TEST(HostVector, UpdatesVectors) {
    VectorCase axpy(VectorOp::Axpy);
    run(host_vector, axpy.params);
    EXPECT_EQ(axpy.y, (std::vector<float>{12, 16, 36, 32}));

    VectorCase scal(VectorOp::Scal);
    scal.params.n = 2;
    scal.params.incx = 2;
    run(host_vector, scal.params);
    EXPECT_EQ(scal.x, (std::vector<float>{2, -2, 6, -4}));

    VectorCase copy(VectorOp::Copy);
    copy.params.incx = -1;
    run(host_vector, copy.params);
    EXPECT_EQ(copy.y, (std::vector<float>{-4, 3, -2, 1}));

    VectorCase swap(VectorOp::Swap);
    run(host_vector, swap.params);
    EXPECT_EQ(swap.x, (std::vector<float>{10, 20, 30, 40}));
    EXPECT_EQ(swap.y, (std::vector<float>{1, -2, 3, -4}));
}

TEST(HostVector, ReducesVectors) {
    VectorCase dot(VectorOp::Dot);
    run(host_vector, dot.params);
    EXPECT_EQ(dot.result_float(), 10 - 40 + 90 - 160);

    VectorCase nrm2(VectorOp::Nrm2);
    run(host_vector, nrm2.params);
    EXPECT_NEAR(nrm2.result_float(), std::sqrt(30.0), 1e-6);

    VectorCase asum(VectorOp::Asum);
    run(host_vector, asum.params);
    EXPECT_EQ(asum.result_float(), 10);

    VectorCase amax(VectorOp::Amax);
    run(host_vector, amax.params);
    EXPECT_EQ(amax.result[0], 4);
}

TEST(HostVector, WritesNarrowPlacesAsFourBytes) {
    VectorCase amax(VectorOp::Amax);
    amax.params.narrow_result = 1;
    run(host_vector, amax.params);
    std::int32_t halves[2];
    std::memcpy(halves, amax.result.data(), sizeof(halves));
    EXPECT_EQ(halves[0], 4);
    EXPECT_EQ(halves[1], -1);
}

TEST(HostVector, ReducesNothingToZero) {
    VectorCase amax(VectorOp::Amax);
    amax.params.n = 0;
    run(host_vector, amax.params);
    EXPECT_EQ(amax.result[0], 0);

    VectorCase dot(VectorOp::Dot);
    dot.params.n = 0;
    run(host_vector, dot.params);
    EXPECT_EQ(dot.result_float(), 0);
}

TEST(HostComplexGemm, MultipliesTransposedAndConjugatedMatrices) {
    using Numbers = std::vector<std::complex<float>>;
    const Numbers a{{1, 2}, {3, -1}, {0, 1}, {2, 2}};  // column by column
    const Numbers b{{1, 0}, {0, 1}, {2, -1}, {1, 1}};
    Numbers c(4, {1, 1});
    ComplexGemmParams params{};
    params.a = reinterpret_cast<std::uint64_t>(a.data());
    params.b = reinterpret_cast<std::uint64_t>(b.data());
    params.c = reinterpret_cast<std::uint64_t>(c.data());
    params.alpha = {0, 0, 1};
    params.beta = {0, 2, 0};
    params.m = params.n = params.k = params.lda = params.ldb = params.ldc = 2;
    params.batch = 1;
    params.transpose_a = params.conjugate_a = 1;
    run(host_complex_gemm, params);
    const std::complex<float> i(0, 1);
    for (std::size_t row = 0; row < 2; ++row)
        for (std::size_t column = 0; column < 2; ++column) {
            const auto sum = std::conj(a[2 * row]) * b[2 * column] +
                             std::conj(a[2 * row + 1]) * b[2 * column + 1];
            EXPECT_EQ(c[row + 2 * column], i * sum + std::complex<float>(2, 2));
        }
}

TEST(HostComplexGemm, NeverReadsWhatFactorsOfZeroSkip) {
    std::vector<std::complex<double>> c(2, {kNan, kNan});
    ComplexGemmParams params{};
    params.c = reinterpret_cast<std::uint64_t>(c.data());
    params.m = params.ldc = params.lda = 2;
    params.n = params.k = params.ldb = params.batch = 1;
    params.element = Element::Double;
    run(host_complex_gemm, params);
    EXPECT_EQ(c, (std::vector<std::complex<double>>(2)));
}

}  // namespace
}  // namespace libswap::simgpu::cublas
