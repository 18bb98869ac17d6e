// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/simgpu/exec/kernel_fixture.hpp"

namespace simgpu::exec {

namespace {

class Kernels : public KernelTest {
  protected:
    void SetUp() override { load("kernels"); }
};

std::uint32_t blocks(std::size_t count, std::uint32_t block) {
    return static_cast<std::uint32_t>((count + block - 1) / block);
}

TEST_P(Kernels, AllKernelsCanBeExecuted) {
    for (const ptx::Kernel& kernel : module->kernels) EXPECT_EQ(kernel.unknown, "") << kernel.name;
    EXPECT_EQ(module->target, std::string("sm_") + (std::string(GetParam()).substr(8)));
}

TEST_P(Kernels, SaxpyIsExact) {
    const int n = 5000;
    const auto x = random_floats(n);
    const auto y = random_floats(n);
    const auto dx = memory.upload(x);
    const auto dy = memory.upload(y);
    launch_ok("saxpy", {{blocks(n, 256), 1, 1}, {256, 1, 1}, 0}, params(dy, dx, 1.5F, n));
    const auto out = memory.download<float>(dy, n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(out[i], std::fma(1.5F, x[i], y[i])) << i;
}

TEST_P(Kernels, CountersCountLanesBytesAndFlops) {
    const int n = 1024;
    const auto dx = memory.upload(random_floats(n));
    const auto dy = memory.upload(random_floats(n));
    const RunResult result = launch("saxpy", {{4, 1, 1}, {256, 1, 1}, 0}, params(dy, dx, 1.5F, n));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.counters.global_bytes_loaded, 2U * n * sizeof(float));
    EXPECT_EQ(result.counters.global_bytes_stored, n * sizeof(float));
    EXPECT_EQ(result.counters.flops, 2U * n);
    EXPECT_GT(result.counters.thread_instructions, 10U * n);
    EXPECT_EQ(result.counters.thread_instructions % 32, 0U);
}

TEST_P(Kernels, AGridWaitsForAllItsCtas) {
    const int n = 40 * 64 - 5;
    const int rounds = 3;
    std::vector<int> values(n);
    std::iota(values.begin(), values.end(), 0);
    const auto address = memory.upload(values);
    const LaunchGeometry geometry{{40, 1, 1}, {64, 1, 1}, 0};
    EXPECT_EQ(launch("grid_rounds", geometry, params(address, n, rounds)).status, RunStatus::Trap);
    options.cooperative = true;
    launch_ok("grid_rounds", geometry, params(address, n, rounds));
    const auto out = memory.download<int>(address, n);
    for (int i = 0; i < n; ++i)
        ASSERT_EQ(out[static_cast<std::size_t>(i)], (i + rounds) % n + rounds) << i;
}

TEST_P(Kernels, WarpsReadWhatABarrierPublishedBeforeOthersGoOn) {
    const int rows = 6;
    const int columns = 512;
    const int threads = 256;
    std::vector<float> in(rows * columns);
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k % 7 + k / columns);
    const auto din = memory.upload(in);
    const auto dout = memory.allocate(rows * threads * sizeof(float));
    launch_ok("repeated_sums", {{1, 1, 1}, {threads, 1, 1}, 0}, params(din, dout, rows, columns));
    const auto out = memory.download<float>(dout, rows * threads);
    for (int row = 0; row < rows; ++row) {
        const float expected =
            std::accumulate(in.begin() + row * columns, in.begin() + (row + 1) * columns, 0.0F);
        for (int t = 0; t < threads; ++t)
            ASSERT_EQ(out[static_cast<std::size_t>(row * threads + t)], expected)
                << row << ' ' << t;
    }
}

TEST_P(Kernels, BlockSumsAgree) {
    const int n = 10000;
    const auto in = random_floats(n);
    const auto din = memory.upload(in);
    const auto dout = memory.allocate(8 * sizeof(float));
    launch_ok("block_sum", {{8, 1, 1}, {256, 1, 1}, 0}, params(din, dout, n));
    const auto out = memory.download<float>(dout, 8);
    const double expected = std::accumulate(in.begin(), in.end(), 0.0);
    EXPECT_NEAR(std::accumulate(out.begin(), out.end(), 0.0), expected, 1e-3);
    launch_ok("tree_sum", {{8, 1, 1}, {512, 1, 1}, 512 * sizeof(float)}, params(din, dout));
    const auto tree = memory.download<float>(dout, 8);
    for (int b = 0; b < 8; ++b)
        EXPECT_NEAR(tree[b], std::accumulate(in.begin() + b * 512, in.begin() + (b + 1) * 512, 0.0),
                    1e-4);
}

TEST_P(Kernels, SoftmaxRowsAgree) {
    const int rows = 5;
    const int columns = 333;
    const auto in = random_floats(rows * columns, -5, 5);
    const auto din = memory.upload(in);
    const auto dout = memory.allocate(in.size() * sizeof(float));
    launch_ok("softmax_rows", {{rows, 1, 1}, {128, 1, 1}, 0}, params(din, dout, columns));
    const auto out = memory.download<float>(dout, in.size());
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(in[r * columns + c]));
        for (int c = 0; c < columns; ++c)
            ASSERT_NEAR(out[r * columns + c],
                        std::exp(static_cast<double>(in[r * columns + c])) / sum, 1e-6);
    }
}

TEST_P(Kernels, CausalAttentionSoftmaxAgrees) {
    const int t = 70;
    const int rows = 2 * t;
    const auto in = random_floats(static_cast<std::size_t>(rows) * t, -4, 4);
    const auto din = memory.upload(in);
    const auto dout = memory.allocate(in.size() * sizeof(float));
    launch_ok("attention_softmax", {{blocks(rows * 32, 128), 1, 1}, {128, 1, 1}, 0},
              params(dout, din, 0.25F, rows, t));
    const auto out = memory.download<float>(dout, in.size());
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c <= r % t; ++c) sum += std::exp(0.25 * in[r * t + c]);
        for (int c = 0; c < t; ++c)
            ASSERT_NEAR(out[r * t + c], c <= r % t ? std::exp(0.25 * in[r * t + c]) / sum : 0.0,
                        1e-6);
    }
}

TEST_P(Kernels, LayernormForwardAndBackwardAgree) {
    const int rows = 37;
    const int channels = 96;
    const auto x = random_floats(rows * channels, -2, 2);
    const auto w = random_floats(channels);
    const auto b = random_floats(channels);
    const auto dout = random_floats(rows * channels);
    const std::vector<float> zeros(static_cast<std::size_t>(rows) * channels, 0.0F);
    const auto px = memory.upload(x);
    const auto pw = memory.upload(w);
    const auto pb = memory.upload(b);
    const auto pd = memory.upload(dout);
    const auto pout = memory.allocate(x.size() * 4);
    const auto pmean = memory.allocate(rows * 4);
    const auto prstd = memory.allocate(rows * 4);
    launch_ok("layernorm_forward", {{blocks(rows, 4), 1, 1}, {128, 1, 1}, 0},
              params(pout, pmean, prstd, px, pw, pb, rows, channels));
    const auto pdx = memory.upload(zeros);
    const auto pdw = memory.upload(std::vector<float>(channels, 0.0F));
    const auto pdb = memory.upload(std::vector<float>(channels, 0.0F));
    launch_ok("layernorm_backward", {{3, 1, 1}, {128, 1, 1}, 2 * channels * 4},
              params(pdx, pdw, pdb, pd, px, pw, pmean, prstd, rows, channels));
    const auto out = memory.download<float>(pout, x.size());
    const auto dx = memory.download<float>(pdx, x.size());
    const auto dw = memory.download<float>(pdw, channels);
    const auto db = memory.download<float>(pdb, channels);
    std::vector<double> edw(channels), edb(channels);
    for (int r = 0; r < rows; ++r) {
        double mean = 0;
        double variance = 0;
        for (int c = 0; c < channels; ++c) mean += x[r * channels + c];
        mean /= channels;
        for (int c = 0; c < channels; ++c) variance += std::pow(x[r * channels + c] - mean, 2);
        const double s = 1 / std::sqrt(variance / channels + 1e-5);
        double m1 = 0;
        double m2 = 0;
        for (int c = 0; c < channels; ++c) {
            const double norm = (x[r * channels + c] - mean) * s;
            ASSERT_NEAR(out[r * channels + c], norm * w[c] + b[c], 1e-5);
            m1 += static_cast<double>(w[c]) * dout[r * channels + c] / channels;
            m2 += static_cast<double>(w[c]) * dout[r * channels + c] * norm / channels;
            edb[c] += dout[r * channels + c];
            edw[c] += norm * dout[r * channels + c];
        }
        for (int c = 0; c < channels; ++c) {
            const double norm = (x[r * channels + c] - mean) * s;
            ASSERT_NEAR(dx[r * channels + c],
                        (static_cast<double>(w[c]) * dout[r * channels + c] - m1 - norm * m2) * s,
                        1e-5);
        }
    }
    for (int c = 0; c < channels; ++c) {
        ASSERT_NEAR(dw[c], edw[c], 1e-4);
        ASSERT_NEAR(db[c], edb[c], 1e-4);
    }
}

TEST_P(Kernels, AdamwAgrees) {
    const int n = 1000;
    const auto p = random_floats(n);
    const auto g = random_floats(n);
    const std::vector<float> zeros(n, 0.0F);
    const auto pp = memory.upload(p);
    const auto pg = memory.upload(g);
    const auto pm = memory.upload(zeros);
    const auto pv = memory.upload(zeros);
    launch_ok("adamw", {{blocks(n, 128), 1, 1}, {128, 1, 1}, 0},
              params(pp, pg, pm, pv, n, 1e-3F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-8F, 0.01F));
    const auto out = memory.download<float>(pp, n);
    for (int i = 0; i < n; ++i) {
        const double m = 0.1 * g[i];
        const double v = 0.001 * g[i] * g[i];
        ASSERT_NEAR(out[i], p[i] - 1e-3 * (m / 0.1 / (std::sqrt(v / 0.001) + 1e-8) + 0.01 * p[i]),
                    1e-6);
    }
}

TEST_P(Kernels, FusedClassifierAgrees) {
    const int rows = 9;
    const int columns = 501;
    const int padded = 512;
    const auto logits = random_floats(rows * padded, -3, 3);
    const auto targets = random_ints(rows, 0, columns - 1);
    const auto pl = memory.upload(logits);
    const auto pt = memory.upload(targets);
    const auto losses = memory.allocate(rows * 4);
    launch_ok("fused_classifier", {{rows, 1, 1}, {64, 1, 1}, 0},
              params(pl, losses, pt, columns, padded));
    const auto gradients = memory.download<float>(pl, logits.size());
    const auto loss = memory.download<float>(losses, rows);
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c < columns; ++c)
            sum += std::exp(static_cast<double>(logits[r * padded + c]));
        ASSERT_NEAR(loss[r],
                    -std::log(std::exp(static_cast<double>(logits[r * padded + targets[r]])) / sum),
                    1e-5);
        for (int c = 0; c < columns; ++c) {
            ASSERT_NEAR(
                gradients[r * padded + c],
                std::exp(static_cast<double>(logits[r * padded + c])) / sum - (c == targets[r]),
                1e-6);
        }
    }
}

TEST_P(Kernels, TiledMatmulAgrees) {
    const int m = 37;
    const int n = 50;
    const int k = 41;
    const auto a = random_floats(m * k);
    const auto b = random_floats(k * n);
    const auto pa = memory.upload(a);
    const auto pb = memory.upload(b);
    const auto pc = memory.allocate(m * n * 4);
    launch_ok("matmul_tiled", {{blocks(n, 16), blocks(m, 16), 1}, {16, 16, 1}, 0},
              params(pa, pb, pc, m, n, k));
    const auto c = memory.download<float>(pc, m * n);
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += static_cast<double>(a[i * k + l]) * b[l * n + j];
            ASSERT_NEAR(c[i * n + j], sum, 1e-5);
        }
    }
}

TEST_P(Kernels, HistogramCountsEveryByte) {
    std::vector<unsigned char> in(20000);
    for (auto& value : in) value = static_cast<unsigned char>(random() % 256);
    const auto pin = memory.upload(in);
    const auto bins = memory.upload(std::vector<unsigned>(256, 0));
    launch_ok("histogram", {{4, 1, 1}, {192, 1, 1}, 0}, params(pin, bins, 20000));
    std::vector<unsigned> expected(256);
    for (const auto value : in) ++expected[value];
    EXPECT_EQ(memory.download<unsigned>(bins, 256), expected);
}

TEST_P(Kernels, PrefixSumAndSortAgree) {
    auto in = random_ints(512, -1000, 1000);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(512 * 4);
    launch_ok("prefix_sum", {{1, 1, 1}, {512, 1, 1}, 0}, params(pin, pout));
    std::vector<int> sums(512);
    std::partial_sum(in.begin(), in.end(), sums.begin());
    EXPECT_EQ(memory.download<int>(pout, 512), sums);
    launch_ok("bitonic_sort", {{1, 1, 1}, {512, 1, 1}, 512 * 4}, params(pin));
    std::sort(in.begin(), in.end());
    EXPECT_EQ(memory.download<int>(pin, 512), in);
}

TEST_P(Kernels, TransposeAgrees) {
    const int width = 70;
    const int height = 45;
    const auto in = random_floats(width * height);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(in.size() * 4);
    launch_ok("transpose", {{blocks(width, 32), blocks(height, 32), 1}, {32, 8, 1}, 0},
              params(pin, pout, width, height));
    const auto out = memory.download<float>(pout, in.size());
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) ASSERT_EQ(out[x * height + y], in[y * width + x]);
    }
}

TEST_P(Kernels, VectorLoadsKeepTheirOrder) {
    const int n = 100;
    const auto in = random_floats(n * 4);
    const auto p = memory.upload(in);
    launch_ok("scale_float4", {{1, 1, 1}, {128, 1, 1}, 0}, params(p, 3.0F, n));
    const auto out = memory.download<float>(p, n * 4);
    for (int i = 0; i < n; ++i) {
        ASSERT_EQ(out[i * 4], in[i * 4] * 3.0F);
        ASSERT_EQ(out[i * 4 + 1], in[i * 4 + 1] + 3.0F);
        ASSERT_EQ(out[i * 4 + 2], in[i * 4 + 2] - 3.0F);
        ASSERT_EQ(out[i * 4 + 3], in[i * 4 + 3] / 3.0F);
    }
}

TEST_P(Kernels, DoubleMathAgrees) {
    std::vector<double> in;
    for (const float value : random_floats(200, -10, 10)) in.push_back(value);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(in.size() * 6 * 8);
    launch_ok("double_math", {{2, 1, 1}, {128, 1, 1}, 0}, params(pin, pout, 200));
    const auto out = memory.download<double>(pout, in.size() * 6);
    const auto close = [](double got, double expected) {
        ASSERT_NEAR(got, expected, std::fabs(expected) * 1e-14 + 1e-15);
    };
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double x = in[i];
        close(out[i * 6], std::exp(x));
        close(out[i * 6 + 1], std::log(std::fabs(x) + 1.0));
        close(out[i * 6 + 2], std::sqrt(std::fabs(x)));
        close(out[i * 6 + 3], std::sin(x));
        close(out[i * 6 + 4], std::pow(std::fabs(x), 1.5));
        close(out[i * 6 + 5], 1.0 / (x + 20.0));
    }
}

TEST_P(Kernels, FloatMathAgrees) {
    const auto in = random_floats(1000, -6, 6);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(in.size() * 12 * 4);
    launch_ok("float_math", {{8, 1, 1}, {128, 1, 1}, 0}, params(pin, pout, 1000));
    const auto out = memory.download<float>(pout, in.size() * 12);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double x = in[i];
        const double expected[] = {std::exp(x),        std::log(std::fabs(x)),
                                   std::tanh(x),       std::pow(std::fabs(x), 1.7F),
                                   std::sin(x),        std::cos(in[i] * 1000.0F),
                                   std::erf(x),        std::exp(x),
                                   std::fmod(x, 0.75), std::cbrt(x),
                                   std::atan2(x, 2.0), std::log1p(std::fabs(x))};
        for (int k = 0; k < 12; ++k)
            ASSERT_NEAR(out[i * 12 + k], expected[k], std::fabs(expected[k]) * 2e-6 + 5e-7)
                << k << " of " << x;
    }
}

TEST_P(Kernels, IntegerMathIsExact) {
    auto a = random_ints(500, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
    auto b = random_ints(500, -50, 50);
    a[0] = std::numeric_limits<int>::min();
    b[0] = 3;
    const auto pa = memory.upload(a);
    const auto pb = memory.upload(b);
    const auto pout = memory.allocate(a.size() * 8 * 8);
    launch_ok("integer_math", {{4, 1, 1}, {128, 1, 1}, 0}, params(pa, pb, pout, 500));
    const auto out = memory.download<long long>(pout, a.size() * 8);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const long long wide = a[i] * 1000003LL + b[i];
        const auto ua = static_cast<unsigned>(a[i]);
        const auto ub = static_cast<unsigned>(b[i]);
        unsigned reversed = 0;
        for (int k = 0; k < 32; ++k) reversed |= (((ub & 0xffU) >> k) & 1U) << (31 - k);
        ASSERT_EQ(out[i * 8], b[i] != 0 ? a[i] / b[i] : 0);
        ASSERT_EQ(out[i * 8 + 1], b[i] != 0 ? a[i] % b[i] : 0);
        ASSERT_EQ(out[i * 8 + 2], b[i] != 0 ? ua / ub : 0);
        ASSERT_EQ(out[i * 8 + 3], b[i] != 0 ? wide / b[i] : 0);
        ASSERT_EQ(out[i * 8 + 4], a[i] / 7);
        ASSERT_EQ(out[i * 8 + 5], ua % 1000U);
        ASSERT_EQ(out[i * 8 + 6], static_cast<int>((static_cast<long long>(a[i]) * b[i]) >> 32));
        const int ffs = a[i] == 0 ? 0 : std::countr_zero(ua) + 1;
        ASSERT_EQ(
            static_cast<int>(out[i * 8 + 7]),
            static_cast<int>(static_cast<unsigned>(std::popcount(ua) + std::countl_zero(ub) + ffs) +
                             reversed));
    }
}

int wander_on_host(int x, int i) {
    if (x < 0) return -1;
    int steps = 0;
    while (x != 1) {
        if (steps > 60) break;
        ++steps;
        if (x % 2 == 0) {
            x /= 2;
            continue;
        }
        for (int k = 0; k < x % 5; ++k) {
            if (k == 3) break;
            steps += k;
        }
        x = 3 * x + 1;
    }
    switch (i % 7) {
        case 0:
            return steps + 100;
        case 1:
            return steps * 2;
        case 2:
            return (steps - 7) ^ 5;
        case 3:
            return steps ^ 5;
        case 4:
            return ~steps;
        case 5:
            return steps << 3;
        default:
            return steps + x;
    }
}

TEST_P(Kernels, DivergentControlFlowAgrees) {
    const int n = 700;
    const auto in = random_ints(n, -5, 2000);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(n * 4);
    launch_ok("wander", {{blocks(n, 128), 1, 1}, {128, 1, 1}, 0}, params(pin, pout, n));
    const auto out = memory.download<int>(pout, n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(out[i], wander_on_host(in[i], i)) << in[i];
}

TEST_P(Kernels, ThreadsThatReturnedDoNotHoldABarrier) {
    const auto pout = memory.upload(std::vector<int>(100, -1));
    launch_ok("return_before_barrier", {{1, 1, 1}, {100, 1, 1}, 0}, params(pout));
    const auto out = memory.download<int>(pout, 100);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(out[i], i % 3 == 1 ? -1 : 67) << i;
}

TEST_P(Kernels, SpinLocksAmongLanesMakeProgress) {
    const auto lock = memory.upload(std::vector<int>(1, 0));
    const auto counter = memory.upload(std::vector<int>(1, 0));
    launch_ok("spin_lock", {{2, 1, 1}, {96, 1, 1}, 0}, params(lock, counter));
    EXPECT_EQ(memory.download<int>(counter, 1)[0], 192);
}

TEST_P(Kernels, BlocksMayWaitForLaterBlocks) {
    const auto flags = memory.upload(std::vector<int>(6, 0));
    const auto order = memory.upload(std::vector<int>(7, 0));
    launch_ok("chain", {{6, 1, 1}, {32, 1, 1}, 0}, params(flags, order));
    EXPECT_EQ(memory.download<int>(order, 6), (std::vector<int>{5, 4, 3, 2, 1, 0}));
}

TEST_P(Kernels, BarrierReductionsSeeAllThreads) {
    std::vector<int> in(96, 2);
    in[5] = 7;
    in[70] = 9;
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(96 * 3 * 4);
    launch_ok("barrier_votes", {{1, 1, 1}, {96, 1, 1}, 0}, params(pin, pout));
    const auto out = memory.download<int>(pout, 96 * 3);
    for (int t = 0; t < 96; ++t) {
        ASSERT_EQ(out[t * 3], 2);
        ASSERT_NE(out[t * 3 + 1], 0);
        ASSERT_NE(out[t * 3 + 2], 0);
    }
}

TEST_P(Kernels, WarpVotesAndShufflesAgree) {
    const auto in = random_ints(32, 0, 15);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(32 * 8 * 4);
    launch_ok("warp_votes", {{1, 1, 1}, {32, 1, 1}, 0}, params(pin, pout));
    const auto out = memory.download<unsigned>(pout, 32 * 8);
    unsigned odd = 0;
    unsigned second = 0;
    bool seven = false;
    for (int t = 0; t < 32; ++t) {
        odd |= static_cast<unsigned>(in[t] & 1) << t;
        second |= static_cast<unsigned>((in[t] >> 1) & 1) << t;
        seven = seven || in[t] == 7;
    }
    for (int t = 0; t < 32; ++t) {
        ASSERT_EQ(out[t * 8], odd);
        ASSERT_NE(out[t * 8 + 1], 0U);
        ASSERT_EQ(out[t * 8 + 2] != 0, seven);
        ASSERT_EQ(out[t * 8 + 3], 0xffffffffU);
        ASSERT_EQ(out[t * 8 + 4], second & (t % 2 == 0 ? 0x55555555U : 0xaaaaaaaaU));
        ASSERT_EQ(out[t * 8 + 5], static_cast<unsigned>(in[t / 8 * 8 + 5]));
        ASSERT_EQ(out[t * 8 + 6], static_cast<unsigned>(in[t % 16 >= 3 ? t - 3 : t]));
        ASSERT_EQ(out[t * 8 + 7], static_cast<unsigned>(in[t + 2 < 32 ? t + 2 : t]));
    }
}

TEST_P(Kernels, Im2colCol2imAndMaxpoolAgree) {
    const int channels = 3, height = 11, width = 9, kernel = 3, pad = 1, stride = 2;
    const int out_h = (height + 2 * pad - kernel) / stride + 1;
    const int out_w = (width + 2 * pad - kernel) / stride + 1;
    const auto image = random_floats(channels * height * width);
    const auto pimage = memory.upload(image);
    const std::size_t column_count =
        static_cast<std::size_t>(channels) * kernel * kernel * out_h * out_w;
    const auto pcolumns = memory.allocate(column_count * 4);
    launch_ok("im2col", {{blocks(channels * out_h * out_w, 64), 1, 1}, {64, 1, 1}, 0},
              params(pimage, pcolumns, channels, height, width, kernel, pad, stride, out_h, out_w));
    std::vector<float> back(image.size(), 0.0F);
    const auto columns = memory.download<float>(pcolumns, column_count);
    for (int c = 0; c < channels; ++c)
        for (int i = 0; i < kernel; ++i)
            for (int j = 0; j < kernel; ++j)
                for (int h = 0; h < out_h; ++h)
                    for (int w = 0; w < out_w; ++w) {
                        const int y = h * stride - pad + i;
                        const int x = w * stride - pad + j;
                        const bool inside = y >= 0 && x >= 0 && y < height && x < width;
                        const float value =
                            columns[((c * kernel + i) * kernel + j) * out_h * out_w + h * out_w +
                                    w];
                        ASSERT_EQ(value, inside ? image[(c * height + y) * width + x] : 0.0F);
                        if (inside) back[(c * height + y) * width + x] += value;
                    }
    const auto pback = memory.upload(std::vector<float>(image.size(), 0.0F));
    launch_ok("col2im", {{blocks(image.size(), 64), 1, 1}, {64, 1, 1}, 0},
              params(pcolumns, pback, channels, height, width, kernel, pad, stride, out_h, out_w));
    const auto got = memory.download<float>(pback, image.size());
    for (std::size_t i = 0; i < image.size(); ++i) ASSERT_NEAR(got[i], back[i], 1e-5);
    const int pooled_h = (height - 2) / 2 + 1;
    const int pooled_w = (width - 2) / 2 + 1;
    const auto ppool = memory.allocate(image.size() * 4);
    const auto pwhere = memory.allocate(image.size() * 4);
    launch_ok("maxpool", {{blocks(channels * pooled_h * pooled_w, 64), 1, 1}, {64, 1, 1}, 0},
              params(pimage, ppool, pwhere, channels, height, width, 2, 2));
    const auto pooled = memory.download<float>(ppool, channels * pooled_h * pooled_w);
    const auto where = memory.download<int>(pwhere, channels * pooled_h * pooled_w);
    for (std::size_t i = 0; i < pooled.size(); ++i) ASSERT_EQ(pooled[i], image[where[i]]);
    ASSERT_EQ(pooled[0], std::max({image[0], image[1], image[width], image[width + 1]}));
}

TEST_P(Kernels, BatchnormDropoutAndBiasAgree) {
    const int batch = 4, filters = 5, spatial = 50;
    const int n = batch * filters * spatial;
    const auto x = random_floats(n);
    const auto px = memory.upload(x);
    const auto pmean = memory.allocate(filters * 4);
    const auto pvariance = memory.allocate(filters * 4);
    launch_ok("batchnorm_statistics", {{filters, 1, 1}, {128, 1, 1}, 0},
              params(px, pmean, pvariance, batch, filters, spatial));
    const auto mean = memory.download<float>(pmean, filters);
    const auto variance = memory.download<float>(pvariance, filters);
    for (int f = 0; f < filters; ++f) {
        double sum = 0;
        double square = 0;
        for (int b = 0; b < batch; ++b)
            for (int s = 0; s < spatial; ++s) {
                const double v = x[(b * filters + f) * spatial + s];
                sum += v;
                square += v * v;
            }
        ASSERT_NEAR(mean[f], sum / (batch * spatial), 1e-5);
        ASSERT_NEAR(variance[f], square / (batch * spatial) - std::pow(sum / (batch * spatial), 2),
                    1e-5);
    }
    const auto rolls = random_floats(n, 0, 1);
    const auto bias = random_floats(filters);
    launch_ok("dropout", {{2, 4, 1}, {128, 1, 1}, 0},
              params(px, memory.upload(rolls), 0.3F, 1.25F, n));
    launch_ok("add_bias", {{blocks(n, 128), 1, 1}, {128, 1, 1}, 0},
              params(px, memory.upload(bias), batch, filters, spatial));
    const auto out = memory.download<float>(px, n);
    for (int i = 0; i < n; ++i)
        ASSERT_EQ(out[i], (rolls[i] < 0.3F ? 0.0F : x[i] * 1.25F) + bias[i / spatial % filters]);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Kernels,
                         testing::Values("compute_75", "compute_80", "compute_90", "compute_120"));

}  // namespace

}  // namespace simgpu::exec
