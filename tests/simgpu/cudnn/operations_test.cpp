// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the stand-in does beside convolutions, against plain loops and finite differences.

#include <cmath>
#include <functional>
#include <limits>

#include "simgpu/cudnn/params.hpp"
#include "tests/simgpu/cudnn/launched.hpp"

namespace libswap::simgpu::cudnn {
namespace {

using Doubles = std::vector<double>;

/// The gradient of sum(weights * f(x)) by each x, by differences.
Doubles by_differences(Doubles x, const Doubles& weights,
                       const std::function<Doubles(const Doubles&)>& f) {
    constexpr double kStep = 1e-6;
    const auto sum = [&] {
        const Doubles y = f(x);
        double total = 0;
        for (std::size_t i = 0; i < y.size(); ++i) total += weights[i] * y[i];
        return total;
    };
    Doubles gradient(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double at = x[i];
        x[i] = at + kStep;
        const double above = sum();
        x[i] = at - kStep;
        const double below = sum();
        x[i] = at;
        gradient[i] = (above - below) / (2 * kStep);
    }
    return gradient;
}

Doubles activation_forward(const Tensor& desc, const Activation& activation, const Doubles& x) {
    Doubles y(x.size());
    ActivationParams p{};
    p.x = address(x);
    p.y = address(y);
    p.alpha = 1;
    p.x_desc = p.y_desc = desc;
    p.activation = activation;
    run(host_activation_forward, p);
    return y;
}

class Activations : public testing::TestWithParam<int> {};

TEST_P(Activations, HaveTheGradientsOfTheirDifferences) {
    const Tensor desc = dense({2, 3, 2, 2}, CUDNN_DATA_DOUBLE);
    const Activation activation{GetParam(), 0, 0.7, 1.3};
    const Doubles x = numbers<double>(desc.elements(), 5);
    const Doubles dy = numbers<double>(desc.elements(), 6);
    const Doubles y = activation_forward(desc, activation, x);
    Doubles dx(x.size());
    ActivationGradientParams p{};
    p.y = address(y);
    p.dy = address(dy);
    p.x = address(x);
    p.dx = address(dx);
    p.alpha = 1;
    p.y_desc = p.dy_desc = p.x_desc = p.dx_desc = desc;
    p.activation = activation;
    run(host_activation_backward, p);
    expect_near(
        dx,
        by_differences(x, dy,
                       [&](const Doubles& at) { return activation_forward(desc, activation, at); }),
        1e-6);
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values(CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_RELU,
                                         CUDNN_ACTIVATION_TANH, CUDNN_ACTIVATION_CLIPPED_RELU,
                                         CUDNN_ACTIVATION_ELU, CUDNN_ACTIVATION_IDENTITY,
                                         CUDNN_ACTIVATION_SWISH));

TEST(Activations, KnowTheirFormulas) {
    const Tensor desc = dense({1, 1, 1, 3}, CUDNN_DATA_DOUBLE);
    const Doubles x = {-1, 0.5, 2};
    const auto all = [&](int mode) { return activation_forward(desc, {mode, 0, 1.5, 1}, x); };
    EXPECT_EQ(all(CUDNN_ACTIVATION_RELU), (Doubles{0, 0.5, 2}));
    EXPECT_EQ(all(CUDNN_ACTIVATION_CLIPPED_RELU), (Doubles{0, 0.5, 1.5}));
    expect_near(all(CUDNN_ACTIVATION_SIGMOID), {0.268941421, 0.622459331, 0.880797078}, 1e-8);
    expect_near(all(CUDNN_ACTIVATION_ELU), {1.5 * (std::exp(-1.0) - 1), 0.5, 2}, 1e-12);
    expect_near(all(CUDNN_ACTIVATION_SWISH), {-0.268941421, 0.311229666, 1.761594156}, 1e-8);
}

TEST(Activations, PropagateNanWhereAskedTo) {
    const Tensor desc = dense({1, 1, 1, 1}, CUDNN_DATA_DOUBLE);
    const Doubles nan = {std::nan("")};
    EXPECT_EQ(activation_forward(desc, {CUDNN_ACTIVATION_RELU, 0, 0, 1}, nan)[0], 0);
    EXPECT_TRUE(std::isnan(activation_forward(desc, {CUDNN_ACTIVATION_RELU, 1, 0, 1}, nan)[0]));
}

struct PoolingCase {
    int mode;
    int pad;
    int stride;
    int out;  ///< of 6 pixels, with a window of 3
};

class Poolings : public testing::TestWithParam<PoolingCase> {
  protected:
    Poolings() {
        p_.alpha = 1;
        p_.x_desc = dense({2, 3, 6, 6}, CUDNN_DATA_DOUBLE);
        p_.y_desc = dense({2, 3, GetParam().out, GetParam().out}, CUDNN_DATA_DOUBLE);
        p_.shape.mode = GetParam().mode;
        p_.shape.spatial = 2;
        for (int i = 0; i < 2; ++i) {
            p_.shape.window[i] = 3;
            p_.shape.pad[i] = GetParam().pad;
            p_.shape.stride[i] = GetParam().stride;
        }
    }

    Doubles forward(const Doubles& x) {
        Doubles y(static_cast<std::size_t>(p_.y_desc.elements()));
        p_.x = address(x);
        p_.y = address(y);
        run(host_pooling_forward, p_);
        return y;
    }

    Doubles by_loops(const Doubles& x) const {
        const int out = GetParam().out;
        Doubles y;
        for (int plane = 0; plane < 6; ++plane)
            for (int i = 0; i < out; ++i)
                for (int j = 0; j < out; ++j) {
                    double largest = -std::numeric_limits<double>::infinity();
                    double sum = 0;
                    int inside = 0;
                    for (int k = 0; k < 9; ++k) {
                        const int row = i * GetParam().stride - GetParam().pad + k / 3;
                        const int column = j * GetParam().stride - GetParam().pad + k % 3;
                        if (row < 0 || row >= 6 || column < 0 || column >= 6) continue;
                        const double value =
                            x[static_cast<std::size_t>((plane * 6 + row) * 6 + column)];
                        largest = std::max(largest, value);
                        sum += value;
                        ++inside;
                    }
                    const bool all = GetParam().mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
                    const bool max = GetParam().mode == CUDNN_POOLING_MAX ||
                                     GetParam().mode == CUDNN_POOLING_MAX_DETERMINISTIC;
                    y.push_back(max ? largest : sum / (all ? 9 : inside));
                }
        return y;
    }

    PoolingParams p_{};
};

TEST_P(Poolings, AgreeWithPlainLoops) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    expect_near(forward(x), by_loops(x), 1e-12);
}

TEST_P(Poolings, HaveTheGradientsOfTheirDifferences) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    const Doubles dy = numbers<double>(p_.y_desc.elements(), 4);
    const Doubles y = forward(x);
    Doubles dx(x.size());
    PoolingGradientParams g{};
    g.y = address(y);
    g.dy = address(dy);
    g.x = address(x);
    g.dx = address(dx);
    g.alpha = 1;
    g.y_desc = g.dy_desc = p_.y_desc;
    g.x_desc = g.dx_desc = p_.x_desc;
    g.shape = p_.shape;
    run(host_pooling_backward, g);
    expect_near(dx, by_differences(x, dy, [&](const Doubles& at) { return forward(at); }), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    All, Poolings,
    testing::Values(PoolingCase{CUDNN_POOLING_MAX, 1, 2, 3},
                    PoolingCase{CUDNN_POOLING_MAX_DETERMINISTIC, 0, 3, 2},
                    PoolingCase{CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 1, 1, 6},
                    PoolingCase{CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 1, 1, 6},
                    PoolingCase{CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 0, 1, 4}));

class Softmaxes : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Softmaxes, SumToOneAndHaveTheGradientsOfTheirDifferences) {
    const auto [algorithm, mode] = GetParam();
    const Tensor desc = dense({2, 3, 2, 2}, CUDNN_DATA_DOUBLE);
    SoftmaxParams p{};
    p.alpha = 1;
    p.x_desc = p.y_desc = p.dx_desc = desc;
    p.algorithm = algorithm;
    p.mode = mode;
    const auto forward = [&](const Doubles& x) {
        Doubles y(x.size());
        p.x = address(x);
        p.y = address(y);
        run(host_softmax_forward, p);
        return y;
    };
    const Doubles x = numbers<double>(desc.elements(), 3);
    const Doubles y = forward(x);
    double sum = 0;
    for (const double value : y) sum += algorithm == CUDNN_SOFTMAX_LOG ? std::exp(value) : value;
    EXPECT_NEAR(sum, mode == CUDNN_SOFTMAX_MODE_INSTANCE ? 2 : 8, 1e-12);
    const Doubles dy = numbers<double>(desc.elements(), 4);
    const Doubles right = by_differences(x, dy, forward);
    Doubles dx(x.size());
    p.x = address(dy);
    p.y = address(y);
    p.dx = address(dx);
    run(host_softmax_backward, p);
    expect_near(dx, right, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    All, Softmaxes,
    testing::Combine(testing::Values(CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG),
                     testing::Values(CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL)));

/// Batch normalisation of 4 images of 3 channels of 2 x 5 pixels.
class Normalizations : public testing::TestWithParam<bool> {
  protected:
    Normalizations() {
        p_.alpha = 1;
        p_.factor = 0.25;
        p_.epsilon = 1e-3;
        p_.x_desc = p_.y_desc = p_.z_desc = dense({4, 3, 2, 5}, CUDNN_DATA_DOUBLE);
        p_.param_desc = GetParam() ? dense({1, 3, 2, 5}, CUDNN_DATA_DOUBLE)
                                   : dense({1, 3, 1, 1}, CUDNN_DATA_DOUBLE);
        p_.per_activation = GetParam() ? 1 : 0;
        const std::int64_t params = p_.param_desc.elements();
        scale_ = numbers<double>(params, 21);
        bias_ = numbers<double>(params, 22);
        p_.scale = address(scale_);
        p_.bias = address(bias_);
    }

    std::size_t group_of(std::size_t i) const { return GetParam() ? i % 30 : i / 10 % 3; }

    Doubles forward(const Doubles& x) {
        Doubles y(x.size());
        p_.x = address(x);
        p_.y = address(y);
        run(host_normalization_training, p_);
        return y;
    }

    NormalizationParams p_{};
    Doubles scale_;
    Doubles bias_;
};

TEST_P(Normalizations, AgreeWithPlainLoops) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    const std::size_t groups = scale_.size();
    Doubles mean(groups);
    Doubles variance(groups);
    const double members = static_cast<double>(x.size() / groups);
    for (std::size_t i = 0; i < x.size(); ++i) mean[group_of(i)] += x[i] / members;
    for (std::size_t i = 0; i < x.size(); ++i)
        variance[group_of(i)] += std::pow(x[i] - mean[group_of(i)], 2) / members;
    Doubles running_mean(groups, 2);
    Doubles running_variance(groups, 3);
    Doubles saved_mean(groups);
    Doubles saved_inverse(groups);
    p_.mean = address(running_mean);
    p_.variance = address(running_variance);
    p_.saved_mean = address(saved_mean);
    p_.saved_inverse = address(saved_inverse);
    const Doubles y = forward(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t g = group_of(i);
        ASSERT_NEAR(y[i], (x[i] - mean[g]) / std::sqrt(variance[g] + 1e-3) * scale_[g] + bias_[g],
                    1e-12);
    }
    for (std::size_t g = 0; g < groups; ++g) {
        EXPECT_NEAR(saved_mean[g], mean[g], 1e-12);
        EXPECT_NEAR(saved_inverse[g], 1 / std::sqrt(variance[g] + 1e-3), 1e-12);
        EXPECT_NEAR(running_mean[g], 0.75 * 2 + 0.25 * mean[g], 1e-12);
        EXPECT_NEAR(running_variance[g], 0.75 * 3 + 0.25 * variance[g] * members / (members - 1),
                    1e-12);
    }
}

TEST_P(Normalizations, InferByTheEstimates) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    const Doubles mean = numbers<double>(p_.param_desc.elements(), 5);
    Doubles variance = numbers<double>(p_.param_desc.elements(), 6);
    for (double& value : variance) value = value * value + 0.1;
    Doubles y(x.size());
    p_.x = address(x);
    p_.y = address(y);
    p_.mean = address(mean);
    p_.variance = address(variance);
    run(host_normalization_inference, p_);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t g = group_of(i);
        ASSERT_NEAR(y[i], (x[i] - mean[g]) / std::sqrt(variance[g] + 1e-3) * scale_[g] + bias_[g],
                    1e-12);
    }
}

TEST_P(Normalizations, HaveTheGradientsOfTheirDifferences) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    const Doubles dy = numbers<double>(p_.x_desc.elements(), 8);
    Doubles dx(x.size());
    Doubles dscale(scale_.size());
    Doubles dbias(scale_.size());
    NormalizationGradientParams g{};
    g.x = address(x);
    g.dy = address(dy);
    g.dx = address(dx);
    g.scale = address(scale_);
    g.dscale = address(dscale);
    g.dbias = address(dbias);
    g.alpha_data = g.alpha_param = 1;
    g.epsilon = p_.epsilon;
    g.x_desc = g.dy_desc = g.dx_desc = p_.x_desc;
    g.param_desc = p_.param_desc;
    g.per_activation = p_.per_activation;
    run(host_normalization_backward, g);
    expect_near(dx, by_differences(x, dy, [&](const Doubles& at) { return forward(at); }), 1e-5);
    const Doubles scale = scale_;
    expect_near(dscale,
                by_differences(scale, dy,
                               [&](const Doubles& at) {
                                   scale_ = at;
                                   p_.scale = address(scale_);
                                   return forward(x);
                               }),
                1e-5);
    scale_ = scale;
    p_.scale = address(scale_);
    expect_near(dbias,
                by_differences(bias_, dy,
                               [&](const Doubles& at) {
                                   p_.bias = address(at);
                                   return forward(x);
                               }),
                1e-5);
}

TEST_P(Normalizations, AddAndActivateAndRememberWhatWentThrough) {
    const Doubles x = numbers<double>(p_.x_desc.elements(), 9);
    const Doubles z = numbers<double>(p_.x_desc.elements(), 7);
    const Doubles plain = forward(x);
    std::vector<std::uint8_t> reserve(x.size() / 8);
    p_.z = address(z);
    p_.reserve = address(reserve);
    p_.activation.mode = CUDNN_ACTIVATION_RELU;
    p_.has_activation = 1;
    const Doubles y = forward(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(y[i], std::max(plain[i] + z[i], 0.0), 1e-12);
        ASSERT_EQ(reserve[i / 8] >> (i % 8) & 1, plain[i] + z[i] > 0 ? 1 : 0);
    }
    const Doubles dy = numbers<double>(p_.x_desc.elements(), 8);
    Doubles dx(x.size());
    Doubles dz(x.size());
    Doubles dscale(scale_.size());
    Doubles dbias(scale_.size());
    NormalizationGradientParams g{};
    g.x = address(x);
    g.dy = address(dy);
    g.dx = address(dx);
    g.dz = address(dz);
    g.scale = address(scale_);
    g.dscale = address(dscale);
    g.dbias = address(dbias);
    g.reserve = address(reserve);
    g.alpha_data = g.alpha_param = 1;
    g.epsilon = p_.epsilon;
    g.x_desc = g.dy_desc = g.dx_desc = g.dz_desc = p_.x_desc;
    g.param_desc = p_.param_desc;
    g.has_activation = 1;
    g.per_activation = p_.per_activation;
    run(host_normalization_backward, g);
    expect_near(dx, by_differences(x, dy, [&](const Doubles& at) { return forward(at); }), 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(dz[i], y[i] > 0 ? dy[i] : 0);
}

INSTANTIATE_TEST_SUITE_P(All, Normalizations, testing::Bool(), [](const auto& info) {
    return info.param ? "PerActivation" : "PerChannel";
});

TEST(Dropout, DropsTheSameOnTheWayBackAndOthersTheNextTime) {
    const Tensor desc = dense({1, 1, 100, 100});
    std::vector<std::uint64_t> states(16, 99);
    DropoutStateParams s{address(states), 128, 42};
    run(host_dropout_states, s);
    const std::vector<float> ones(10000, 1);
    std::vector<float> y(ones.size());
    std::vector<float> dx(ones.size());
    std::vector<std::uint8_t> reserve(ones.size() / 8);
    DropoutParams p{};
    p.x = address(ones);
    p.y = address(y);
    p.reserve = address(reserve);
    p.states = address(states);
    p.rate = 0.25;
    p.x_desc = p.y_desc = desc;
    run(host_dropout_forward, p);
    int dropped = 0;
    for (const float value : y) {
        ASSERT_TRUE(value == 0 || std::abs(value - 4.0F / 3) < 1e-6F);
        dropped += value == 0 ? 1 : 0;
    }
    EXPECT_NEAR(dropped, 2500, 200);
    p.y = address(dx);
    run(host_dropout_backward, p);
    EXPECT_EQ(dx, y);
    run(host_dropout_forward, p);
    EXPECT_NE(dx, y);
    run(host_dropout_states, s);
    run(host_dropout_forward, p);
    EXPECT_EQ(dx, y);
}

TEST(TensorOps, RepeatTheSecondOperand) {
    const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const std::vector<float> b = {10, 20};
    TensorOpParams p{};
    p.a = address(a);
    p.b = address(b);
    p.alpha1 = 2;
    p.alpha2 = 1;
    p.beta = 1;
    p.a_desc = p.c_desc = dense({1, 2, 2, 3});
    p.b_desc = dense({1, 2, 1, 1});
    const auto result = [&](int op) {
        std::vector<float> c(12, 100);
        p.c = address(c);
        p.op = op;
        run(host_tensor_op, p);
        return c;
    };
    EXPECT_EQ(result(CUDNN_OP_TENSOR_ADD)[0], 112);
    EXPECT_EQ(result(CUDNN_OP_TENSOR_ADD)[11], 144);
    EXPECT_EQ(result(CUDNN_OP_TENSOR_MUL)[6], 380);
    EXPECT_EQ(result(CUDNN_OP_TENSOR_MIN)[11], 120);
    EXPECT_EQ(result(CUDNN_OP_TENSOR_MAX)[11], 124);
    p.b = 0;
    EXPECT_FLOAT_EQ(result(CUDNN_OP_TENSOR_SQRT)[7], 104);
    EXPECT_FLOAT_EQ(result(CUDNN_OP_TENSOR_NOT)[0], 99);
}

TEST(TensorReduce, KnowsAllOperationsAndIndices) {
    const std::vector<float> a = {1, -4, 2, 0, 3, -1};
    ReductionParams p{};
    p.a = address(a);
    p.alpha = 1;
    p.a_desc = dense({1, 2, 3, 1});
    p.c_desc = dense({1, 2, 1, 1});
    std::vector<std::uint32_t> indices(2, 77);
    const auto result = [&](int op) {
        std::vector<float> c(2);
        p.c = address(c);
        p.op = op;
        run(host_tensor_reduce, p);
        return c;
    };
    using Pair = std::vector<float>;
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_ADD), (Pair{-1, 2}));
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_MUL), (Pair{-8, 0}));
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS), (Pair{-8, -3}));
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_AMAX), (Pair{4, 3}));
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_NORM1), (Pair{7, 4}));
    expect_near(result(CUDNN_REDUCE_TENSOR_AVG), {-1.0F / 3, 2.0F / 3}, 1e-6);
    expect_near(result(CUDNN_REDUCE_TENSOR_NORM2), {std::sqrt(21.0F), std::sqrt(10.0F)}, 1e-6);
    p.indices = address(indices);
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_MIN), (Pair{-4, -1}));
    EXPECT_EQ(indices, (std::vector<std::uint32_t>{1, 2}));
    EXPECT_EQ(result(CUDNN_REDUCE_TENSOR_MAX), (Pair{2, 3}));
    EXPECT_EQ(indices, (std::vector<std::uint32_t>{2, 1}));
}

TEST(TensorFill, SetsAndScalesEveryType) {
    std::vector<std::int32_t> whole(4);
    TensorFillParams p{};
    p.y = address(whole);
    p.alpha = -3;
    p.y_desc = dense({1, 1, 2, 2}, CUDNN_DATA_INT32);
    run(host_tensor_set, p);
    EXPECT_EQ(whole, std::vector<std::int32_t>(4, -3));
    std::vector<float> values = {1, 2, 3, 4};
    p.y = address(values);
    p.y_desc = dense({1, 1, 2, 2});
    run(host_tensor_scale, p);
    EXPECT_EQ(values, (std::vector<float>{-3, -6, -9, -12}));
}

}  // namespace
}  // namespace libswap::simgpu::cudnn
