// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The legacy calls beside convolutions, on the stand-in driver: that each argument arrives where it
// belongs, and what they refuse. What they compute is operations_test.cpp's and rnn_test.cpp's.

#include <cmath>

#include "tests/simgpu/cudnn/library.hpp"

namespace {

using Floats = std::vector<float>;

constexpr float kOne = 1;
constexpr float kZero = 0;

class CudnnOperations : public Cudnn {
  protected:
    void SetUp() override {
        Cudnn::SetUp();
        for (cudnnTensorDescriptor_t* tensor : {&x_desc_, &small_desc_, &channel_desc_}) {
            cudnnCreateTensorDescriptor(tensor);
        }
        cudnnCreateActivationDescriptor(&relu_);
        cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0);
        set(x_desc_, 2, 2, 2, 2);
        set(small_desc_, 2, 2, 1, 1);
        set(channel_desc_, 1, 2, 1, 1);
        x_ = on_device(x_values_);
        dy_ = on_device(dy_values_);
        y_ = on_device(Floats(16));
    }

    void TearDown() override {
        for (cudnnTensorDescriptor_t tensor : {x_desc_, small_desc_, channel_desc_}) {
            cudnnDestroyTensorDescriptor(tensor);
        }
        cudnnDestroyActivationDescriptor(relu_);
        Cudnn::TearDown();
    }

    static void set(cudnnTensorDescriptor_t tensor, int n, int c, int h, int w) {
        EXPECT_EQ(
            cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w),
            CUDNN_STATUS_SUCCESS);
    }

    const Floats x_values_ = some_numbers(16, 1);
    const Floats dy_values_ = some_numbers(16, 2);
    cudnnTensorDescriptor_t x_desc_ = nullptr;
    cudnnTensorDescriptor_t small_desc_ = nullptr;
    cudnnTensorDescriptor_t channel_desc_ = nullptr;
    cudnnActivationDescriptor_t relu_ = nullptr;
    float* x_ = nullptr;
    float* dy_ = nullptr;
    float* y_ = nullptr;
};

TEST_F(CudnnOperations, ActivateThereAndBack) {
    ASSERT_EQ(cudnnActivationForward(handle_, relu_, &kOne, x_desc_, x_, &kZero, x_desc_, y_),
              CUDNN_STATUS_SUCCESS);
    const Floats y = on_host(y_, 16);
    float* dx = on_device(Floats(16));
    ASSERT_EQ(cudnnActivationBackward(handle_, relu_, &kOne, x_desc_, y_, x_desc_, dy_, x_desc_, x_,
                                      &kZero, x_desc_, dx),
              CUDNN_STATUS_SUCCESS);
    const Floats slopes = on_host(dx, 16);
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(y[i], std::max(x_values_[i], 0.0F));
        EXPECT_EQ(slopes[i], x_values_[i] > 0 ? dy_values_[i] : 0);
    }
    EXPECT_EQ(cudnnActivationForward(handle_, relu_, &kOne, x_desc_, x_, &kZero, small_desc_, y_),
              CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(cudnnActivationForward(handle_, nullptr, &kOne, x_desc_, x_, &kZero, x_desc_, y_),
              CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnOperations, PoolThereAndBack) {
    cudnnPoolingDescriptor_t pooling = nullptr;
    cudnnCreatePoolingDescriptor(&pooling);
    cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2);
    ASSERT_EQ(cudnnPoolingForward(handle_, pooling, &kOne, x_desc_, x_, &kZero, small_desc_, y_),
              CUDNN_STATUS_SUCCESS);
    const Floats y = on_host(y_, 4);
    for (std::size_t i = 0; i < 4; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < 4; ++j) sum += x_values_[i * 4 + j];
        EXPECT_NEAR(y[i], sum / 4, 1e-6F);
    }
    float* dx = on_device(Floats(16));
    ASSERT_EQ(cudnnPoolingBackward(handle_, pooling, &kOne, small_desc_, y_, small_desc_, dy_,
                                   x_desc_, x_, &kZero, x_desc_, dx),
              CUDNN_STATUS_SUCCESS);
    const Floats slopes = on_host(dx, 16);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(slopes[i], dy_values_[i / 4] / 4, 1e-6F);
    EXPECT_EQ(cudnnPoolingForward(handle_, pooling, &kOne, x_desc_, x_, &kZero, channel_desc_, y_),
              CUDNN_STATUS_BAD_PARAM);
    cudnnDestroyPoolingDescriptor(pooling);
}

TEST_F(CudnnOperations, SoftmaxThereAndBack) {
    const auto algorithm = CUDNN_SOFTMAX_ACCURATE;
    const auto mode = CUDNN_SOFTMAX_MODE_CHANNEL;
    ASSERT_EQ(
        cudnnSoftmaxForward(handle_, algorithm, mode, &kOne, x_desc_, x_, &kZero, x_desc_, y_),
        CUDNN_STATUS_SUCCESS);
    const Floats y = on_host(y_, 16);
    float* dx = on_device(Floats(16));
    ASSERT_EQ(cudnnSoftmaxBackward(handle_, algorithm, mode, &kOne, x_desc_, y_, x_desc_, dy_,
                                   &kZero, x_desc_, dx),
              CUDNN_STATUS_SUCCESS);
    const Floats slopes = on_host(dx, 16);
    for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t i = 0; i < 4; ++i) {
            const std::size_t a = n * 8 + i;
            const std::size_t b = a + 4;
            EXPECT_NEAR(y[a], 1 / (1 + std::exp(x_values_[b] - x_values_[a])), 1e-6F);
            const float product = y[a] * dy_values_[a] + y[b] * dy_values_[b];
            EXPECT_NEAR(slopes[b], y[b] * (dy_values_[b] - product), 1e-6F);
        }
    EXPECT_EQ(cudnnSoftmaxForward(handle_, static_cast<cudnnSoftmaxAlgorithm_t>(9), mode, &kOne,
                                  x_desc_, x_, &kZero, x_desc_, y_),
              CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnOperations, NormalizeBatches) {
    const auto mode = CUDNN_BATCHNORM_SPATIAL;
    cudnnTensorDescriptor_t derived = nullptr;
    cudnnCreateTensorDescriptor(&derived);
    ASSERT_EQ(cudnnDeriveBNTensorDescriptor(derived, x_desc_, mode), CUDNN_STATUS_SUCCESS);
    float* scale = on_device(Floats{2, 3});
    float* bias = on_device(Floats{0.5F, -0.5F});
    float* mean = on_device(Floats{0, 0});
    float* variance = on_device(Floats{1, 1});
    float* saved_mean = on_device(Floats(2));
    float* saved_inverse = on_device(Floats(2));
    const auto train = [&](double epsilon, cudnnTensorDescriptor_t params, void* running) {
        return cudnnBatchNormalizationForwardTraining(handle_, mode, &kOne, &kZero, x_desc_, x_,
                                                      x_desc_, y_, params, scale, bias, 1, running,
                                                      variance, epsilon, saved_mean, saved_inverse);
    };
    EXPECT_EQ(train(-1, derived, mean), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(train(1e-5, x_desc_, mean), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(train(1e-5, derived, nullptr), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(train(1e-5, derived, mean), CUDNN_STATUS_SUCCESS);
    const Floats means = on_host(saved_mean, 2);
    const Floats inverses = on_host(saved_inverse, 2);
    EXPECT_EQ(on_host(mean, 2), means);
    const Floats y = on_host(y_, 16);
    for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t c = i / 4 % 2;
        const float normal = (x_values_[i] - means[c]) * inverses[c];
        EXPECT_NEAR(y[i], c == 0 ? normal * 2 + 0.5F : normal * 3 - 0.5F, 1e-5F);
    }
    // By the running moments, whose variance is of the whole population: 8 / 7 of the batch's.
    ASSERT_EQ(
        cudnnBatchNormalizationForwardInference(handle_, mode, &kOne, &kZero, x_desc_, x_, x_desc_,
                                                y_, derived, scale, bias, mean, variance, 1e-5),
        CUDNN_STATUS_SUCCESS);
    EXPECT_NEAR((on_host(y_, 1)[0] - 0.5F) / (y[0] - 0.5F), std::sqrt(7.0F / 8), 1e-3F);
    float* dx = on_device(Floats(16));
    float* dscale = on_device(Floats(2));
    float* dbias = on_device(Floats(2));
    ASSERT_EQ(cudnnBatchNormalizationBackward(handle_, mode, &kOne, &kZero, &kOne, &kZero, x_desc_,
                                              x_, x_desc_, dy_, x_desc_, dx, derived, scale, dscale,
                                              dbias, 1e-5, saved_mean, saved_inverse),
              CUDNN_STATUS_SUCCESS);
    Floats right_scale(2);
    Floats right_bias(2);
    float sum = 0;
    for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t c = i / 4 % 2;
        right_scale[c] += dy_values_[i] * (x_values_[i] - means[c]) * inverses[c];
        right_bias[c] += dy_values_[i];
    }
    for (const float value : on_host(dx, 16)) sum += value;
    expect_close(on_host(dscale, 2), right_scale);
    expect_close(on_host(dbias, 2), right_bias);
    EXPECT_NEAR(sum, 0, 1e-4F);  // a shift of all inputs changes nothing
    cudnnDestroyTensorDescriptor(derived);
}

TEST_F(CudnnOperations, NormalizeAddAndActivateInTheSpaceThatTheyAskFor) {
    const auto mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
    const auto ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    std::size_t workspace_bytes = 0;
    std::size_t reserve_bytes = 0;
    ASSERT_EQ(
        cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
            handle_, mode, ops, x_desc_, x_desc_, x_desc_, channel_desc_, relu_, &workspace_bytes),
        CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle_, mode, ops, relu_,
                                                                   x_desc_, &reserve_bytes),
              CUDNN_STATUS_SUCCESS);
    EXPECT_GT(workspace_bytes, 0U);
    EXPECT_EQ(reserve_bytes, 2U);
    void* workspace = allocate(workspace_bytes);
    void* reserve = allocate(reserve_bytes);
    float* scale = on_device(Floats{1, 1});
    float* bias = on_device(Floats{0, 0});
    const auto forward = [&](std::size_t with_workspace, std::size_t with_reserve, const void* z) {
        return cudnnBatchNormalizationForwardTrainingEx(
            handle_, mode, ops, &kOne, &kZero, x_desc_, x_, x_desc_, z, x_desc_, y_, channel_desc_,
            scale, bias, 1, nullptr, nullptr, 1e-5, nullptr, nullptr, relu_, workspace,
            with_workspace, reserve, with_reserve);
    };
    EXPECT_EQ(forward(workspace_bytes - 1, reserve_bytes, dy_), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(workspace_bytes, reserve_bytes - 1, dy_), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(workspace_bytes, reserve_bytes, nullptr), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(forward(workspace_bytes, reserve_bytes, dy_), CUDNN_STATUS_SUCCESS);
    const Floats y = on_host(y_, 16);
    float* dx = on_device(Floats(16));
    float* dz = on_device(Floats(16));
    float* dscale = on_device(Floats(2));
    float* dbias = on_device(Floats(2));
    ASSERT_EQ(cudnnBatchNormalizationBackwardEx(handle_, mode, ops, &kOne, &kZero, &kOne, &kZero,
                                                x_desc_, x_, x_desc_, y_, x_desc_, dy_, x_desc_, dz,
                                                x_desc_, dx, channel_desc_, scale, bias, dscale,
                                                dbias, 1e-5, nullptr, nullptr, relu_, workspace,
                                                workspace_bytes, reserve, reserve_bytes),
              CUDNN_STATUS_SUCCESS);
    const Floats to_z = on_host(dz, 16);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(to_z[i], y[i] > 0 ? dy_values_[i] : 0);
}

TEST_F(CudnnOperations, DropWithStatesOfTheirOwn) {
    std::size_t states_bytes = 0;
    std::size_t reserve_bytes = 0;
    cudnnDropoutDescriptor_t dropout = nullptr;
    cudnnCreateDropoutDescriptor(&dropout);
    ASSERT_EQ(cudnnDropoutGetStatesSize(handle_, &states_bytes), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnDropoutGetReserveSpaceSize(x_desc_, &reserve_bytes), CUDNN_STATUS_SUCCESS);
    void* states = allocate(states_bytes);
    void* reserve = allocate(reserve_bytes);
    EXPECT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 0.5F, states, states_bytes - 1, 7),
              CUDNN_STATUS_INVALID_VALUE);
    EXPECT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 1.5F, states, states_bytes, 7),
              CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(cudnnSetDropoutDescriptor(dropout, handle_, 0.5F, states, states_bytes, 7),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(
        cudnnDropoutForward(handle_, dropout, x_desc_, x_, x_desc_, y_, reserve, reserve_bytes - 1),
        CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(
        cudnnDropoutForward(handle_, dropout, x_desc_, x_, x_desc_, y_, reserve, reserve_bytes),
        CUDNN_STATUS_SUCCESS);
    const Floats y = on_host(y_, 16);
    float* dx = on_device(Floats(16));
    ASSERT_EQ(
        cudnnDropoutBackward(handle_, dropout, x_desc_, dy_, x_desc_, dx, reserve, reserve_bytes),
        CUDNN_STATUS_SUCCESS);
    const Floats slopes = on_host(dx, 16);
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_TRUE(y[i] == 0 || y[i] == 2 * x_values_[i]);
        EXPECT_EQ(slopes[i], y[i] == 0 ? 0 : 2 * dy_values_[i]);
    }
    cudnnDestroyDropoutDescriptor(dropout);
}

TEST_F(CudnnOperations, CombineFillAndReduceTensors) {
    float* bias = on_device(Floats{10, 20});
    ASSERT_EQ(cudnnAddTensor(handle_, &kOne, channel_desc_, bias, &kOne, x_desc_, x_),
              CUDNN_STATUS_SUCCESS);
    Floats right = x_values_;
    for (std::size_t i = 0; i < 16; ++i) right[i] += i / 4 % 2 == 0 ? 10 : 20;
    expect_close(on_host(x_, 16), right);
    EXPECT_EQ(cudnnAddTensor(handle_, &kOne, x_desc_, x_, &kOne, channel_desc_, bias),
              CUDNN_STATUS_BAD_PARAM);
    const float half = 0.5F;
    ASSERT_EQ(cudnnScaleTensor(handle_, x_desc_, x_, &half), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnTransformTensor(handle_, &kOne, x_desc_, x_, &kZero, x_desc_, y_),
              CUDNN_STATUS_SUCCESS);
    for (float& value : right) value *= 0.5F;
    expect_close(on_host(y_, 16), right);
    ASSERT_EQ(cudnnSetTensor(handle_, x_desc_, x_, &half), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(on_host(x_, 16), Floats(16, 0.5F));

    cudnnOpTensorDescriptor_t op = nullptr;
    cudnnCreateOpTensorDescriptor(&op);
    cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN);
    ASSERT_EQ(cudnnOpTensor(handle_, op, &kOne, x_desc_, y_, &kOne, channel_desc_, bias, &kZero,
                            x_desc_, x_),
              CUDNN_STATUS_SUCCESS);
    for (std::size_t i = 0; i < 16; ++i) right[i] *= i / 4 % 2 == 0 ? 10 : 20;
    const Floats products = on_host(x_, 16);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(products[i], right[i], 1e-3F);
    cudnnDestroyOpTensorDescriptor(op);

    cudnnReduceTensorDescriptor_t reduction = nullptr;
    cudnnCreateReduceTensorDescriptor(&reduction);
    EXPECT_EQ(cudnnSetReduceTensorDescriptor(
                  reduction, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
                  CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_64BIT_INDICES),
              CUDNN_STATUS_NOT_SUPPORTED);
    cudnnSetReduceTensorDescriptor(reduction, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                   CUDNN_32BIT_INDICES);
    std::size_t index_bytes = 0;
    std::size_t workspace_bytes = 0;
    cudnnGetReductionIndicesSize(handle_, reduction, x_desc_, channel_desc_, &index_bytes);
    cudnnGetReductionWorkspaceSize(handle_, reduction, x_desc_, channel_desc_, &workspace_bytes);
    EXPECT_EQ(index_bytes, 8U);
    EXPECT_GT(workspace_bytes, 0U);
    void* workspace = allocate(workspace_bytes);
    auto* indices = on_device(std::vector<std::uint32_t>(2));
    const auto reduce = [&](std::size_t bytes) {
        return cudnnReduceTensor(handle_, reduction, indices, index_bytes, workspace, bytes, &kOne,
                                 x_desc_, x_, &kZero, channel_desc_, bias);
    };
    EXPECT_EQ(reduce(workspace_bytes - 1), CUDNN_STATUS_INVALID_VALUE);
    ASSERT_EQ(reduce(workspace_bytes), CUDNN_STATUS_SUCCESS);
    const Floats largest = on_host(bias, 2);
    const std::vector<std::uint32_t> at = on_host(indices, 2);
    for (std::size_t c = 0; c < 2; ++c) {
        const std::size_t place = at[c] / 4 * 8 + c * 4 + at[c] % 4;
        EXPECT_EQ(products[place], largest[c]);
    }
    cudnnDestroyReduceTensorDescriptor(reduction);
}

TEST_F(CudnnOperations, RunAnLstmThereAndBack) {
    constexpr int kSteps = 3;
    constexpr int kBatch = 2;
    const int lengths[kBatch] = {3, 2};
    cudnnRNNDescriptor_t rnn = nullptr;
    cudnnRNNDataDescriptor_t x_data = nullptr;
    cudnnRNNDataDescriptor_t y_data = nullptr;
    cudnnCreateRNNDescriptor(&rnn);
    cudnnCreateRNNDataDescriptor(&x_data);
    cudnnCreateRNNDataDescriptor(&y_data);
    ASSERT_EQ(
        cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                 CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                 CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 4, 3, 3, 1, nullptr, 0),
        CUDNN_STATUS_SUCCESS);
    const auto packed = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    ASSERT_EQ(cudnnSetRNNDataDescriptor(x_data, CUDNN_DATA_FLOAT, packed, kSteps, kBatch, 4,
                                        lengths, nullptr),
              CUDNN_STATUS_SUCCESS);
    const int unsorted[kBatch] = {2, 3};
    EXPECT_EQ(cudnnSetRNNDataDescriptor(y_data, CUDNN_DATA_FLOAT, packed, kSteps, kBatch, 3,
                                        unsorted, nullptr),
              CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(cudnnSetRNNDataDescriptor(y_data, CUDNN_DATA_FLOAT, packed, kSteps, kBatch, 3,
                                        lengths, nullptr),
              CUDNN_STATUS_SUCCESS);
    std::size_t weight_bytes = 0;
    std::size_t workspace_bytes = 0;
    std::size_t reserve_bytes = 0;
    cudnnGetRNNWeightSpaceSize(handle_, rnn, &weight_bytes);
    cudnnGetRNNTempSpaceSizes(handle_, rnn, CUDNN_FWD_MODE_TRAINING, x_data, &workspace_bytes,
                              &reserve_bytes);
    EXPECT_EQ(weight_bytes, 4U * (12 * 4 + 12 * 3 + 24));
    float* weights = on_device(some_numbers(weight_bytes / 4, 3));
    // All gates' matrices of a kind lie one behind the other, and so do the biases.
    void* before = nullptr;
    for (int linear = 0; linear < 8; ++linear) {
        void* matrix = nullptr;
        void* bias = nullptr;
        ASSERT_EQ(cudnnGetRNNWeightParams(handle_, rnn, 0, weight_bytes, weights, linear, x_desc_,
                                          &matrix, small_desc_, &bias),
                  CUDNN_STATUS_SUCCESS);
        if (linear % 4 != 0) {
            EXPECT_EQ(static_cast<char*>(matrix) - static_cast<char*>(before),
                      linear < 4 ? 3 * 4 * 4 : 3 * 3 * 4);
        }
        before = matrix;
    }
    void* workspace = allocate(workspace_bytes);
    void* reserve = allocate(reserve_bytes);
    float* x = on_device(some_numbers(20, 4));
    float* y = on_device(Floats(15, 9));
    const auto forward = [&](std::size_t with_workspace) {
        return cudnnRNNForward(handle_, rnn, CUDNN_FWD_MODE_TRAINING, nullptr, x_data, x, y_data, y,
                               nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, weight_bytes,
                               weights, with_workspace, workspace, reserve_bytes, reserve);
    };
    EXPECT_EQ(forward(workspace_bytes - 1), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(forward(workspace_bytes), CUDNN_STATUS_SUCCESS);
    for (const float value : on_host(y, 15)) EXPECT_LT(std::abs(value), 1);
    float* dx = on_device(Floats(20));
    float* dweights = on_device(Floats(weight_bytes / 4));
    ASSERT_EQ(
        cudnnRNNBackwardData_v8(handle_, rnn, nullptr, y_data, y, dy_, x_data, dx, nullptr, nullptr,
                                nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, weight_bytes,
                                weights, workspace_bytes, workspace, reserve_bytes, reserve),
        CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnRNNBackwardWeights_v8(handle_, rnn, CUDNN_WGRAD_MODE_ADD, nullptr, x_data, x,
                                         nullptr, nullptr, y_data, y, weight_bytes, dweights,
                                         workspace_bytes, workspace, reserve_bytes, reserve),
              CUDNN_STATUS_SUCCESS);
    EXPECT_NE(on_host(dx, 20), Floats(20));
    EXPECT_NE(on_host(dweights, weight_bytes / 4), Floats(weight_bytes / 4));
    cudnnDestroyRNNDescriptor(rnn);
    cudnnDestroyRNNDataDescriptor(x_data);
    cudnnDestroyRNNDataDescriptor(y_data);
}

}  // namespace
