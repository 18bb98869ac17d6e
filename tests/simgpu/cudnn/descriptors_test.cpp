// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Descriptors of the legacy interface: what they keep and what they refuse.

#include <array>
#include <climits>

#include "tests/simgpu/cudnn/library.hpp"

namespace {

constexpr auto kFloat = CUDNN_DATA_FLOAT;
const auto kNoFormat = static_cast<cudnnTensorFormat_t>(9);
const auto kNoType = static_cast<cudnnDataType_t>(99);

TEST(TensorDescriptor, KeepsDimensionsAndStridesOfEachFormat) {
    cudnnTensorDescriptor_t tensor = nullptr;
    ASSERT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
    cudnnDataType_t type;
    std::array<int, 8> v{};
    const auto get = [&] {
        return cudnnGetTensor4dDescriptor(tensor, &type, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
                                          &v[6], &v[7]);
    };
    EXPECT_EQ(get(), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, kFloat, 2, 3, 4, 5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(get(), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(v, (std::array<int, 8>{2, 3, 4, 5, 60, 20, 5, 1}));
    std::size_t bytes = 0;
    EXPECT_EQ(cudnnGetTensorSizeInBytes(tensor, &bytes), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(bytes, 480U);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 4, 5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(get(), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(v, (std::array<int, 8>{2, 3, 4, 5, 60, 1, 15, 3}));
    EXPECT_EQ(type, CUDNN_DATA_HALF);
    ASSERT_EQ(cudnnSetTensor4dDescriptorEx(tensor, kFloat, 2, 3, 4, 5, 100, 30, 7, 1),
              CUDNN_STATUS_SUCCESS);
    cudnnGetTensorSizeInBytes(tensor, &bytes);
    EXPECT_EQ(bytes, (100U + 2 * 30 + 3 * 7 + 4 + 1) * 4);
    int rank = 0;
    std::array<int, 2> dims{};
    EXPECT_EQ(cudnnGetTensorNdDescriptor(tensor, 2, &type, &rank, dims.data(), nullptr),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(rank, 4);
    EXPECT_EQ(dims, (std::array<int, 2>{2, 3}));
    EXPECT_EQ(cudnnDestroyTensorDescriptor(tensor), CUDNN_STATUS_SUCCESS);
}

TEST(TensorDescriptor, RefusesWhatMakesNoTensor) {
    EXPECT_EQ(cudnnCreateTensorDescriptor(nullptr), CUDNN_STATUS_BAD_PARAM);
    cudnnTensorDescriptor_t tensor = nullptr;
    ASSERT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
    const auto set = [&](cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c) {
        return cudnnSetTensor4dDescriptor(tensor, format, type, n, c, 1, 1);
    };
    EXPECT_EQ(set(CUDNN_TENSOR_NCHW, kFloat, 0, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(CUDNN_TENSOR_NCHW, kFloat, 1, -1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(kNoFormat, kFloat, 1, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(CUDNN_TENSOR_NCHW, kNoType, 1, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(CUDNN_TENSOR_NCHW_VECT_C, kFloat, 1, 4), CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(set(CUDNN_TENSOR_NCHW, kFloat, INT_MAX, 2), CUDNN_STATUS_NOT_SUPPORTED);
    const int dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int negative[4] = {1, 1, -1, 1};
    EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, kFloat, 9, dims, dims),
              CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, kFloat, 4, dims, negative),
              CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, kFloat, 4, nullptr, dims), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(cudnnSetTensorNdDescriptor(nullptr, kFloat, 4, dims, dims), CUDNN_STATUS_BAD_PARAM);
    cudnnDestroyTensorDescriptor(tensor);
}

TEST(FilterDescriptor, KeepsWhatItWasGiven) {
    cudnnFilterDescriptor_t filter = nullptr;
    ASSERT_EQ(cudnnCreateFilterDescriptor(&filter), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetFilter4dDescriptor(filter, kFloat, CUDNN_TENSOR_NHWC, 8, 3, 5, 4),
              CUDNN_STATUS_SUCCESS);
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    std::array<int, 4> v{};
    ASSERT_EQ(cudnnGetFilter4dDescriptor(filter, &type, &format, &v[0], &v[1], &v[2], &v[3]),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(v, (std::array<int, 4>{8, 3, 5, 4}));
    EXPECT_EQ(format, CUDNN_TENSOR_NHWC);
    std::size_t bytes = 0;
    cudnnGetFilterSizeInBytes(filter, &bytes);
    EXPECT_EQ(bytes, 8U * 3 * 5 * 4 * 4);
    EXPECT_EQ(cudnnSetFilter4dDescriptor(filter, kFloat, CUDNN_TENSOR_NCHW, 8, 0, 5, 4),
              CUDNN_STATUS_BAD_PARAM);
    int rank = 0;
    EXPECT_EQ(cudnnGetFilterNdDescriptor(filter, 4, &type, &format, &rank, v.data()),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(rank, 4);
    cudnnDestroyFilterDescriptor(filter);
}

TEST(ConvolutionDescriptor, KeepsWhatItWasGivenAndCountsPixels) {
    cudnnConvolutionDescriptor_t convolution = nullptr;
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolutionGroupCount(convolution, 2), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolutionGroupCount(convolution, 0), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(cudnnSetConvolution2dDescriptor(convolution, 1, 2, 2, 3, 1, 2,
                                              CUDNN_CROSS_CORRELATION, kFloat),
              CUDNN_STATUS_SUCCESS);
    std::array<int, 6> v{};
    cudnnConvolutionMode_t mode;
    cudnnDataType_t type;
    ASSERT_EQ(cudnnGetConvolution2dDescriptor(convolution, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
                                              &mode, &type),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(v, (std::array<int, 6>{1, 2, 2, 3, 1, 2}));
    int groups = 0;
    cudnnGetConvolutionGroupCount(convolution, &groups);
    EXPECT_EQ(groups, 2);
    EXPECT_EQ(cudnnSetConvolutionMathType(convolution, CUDNN_TENSOR_OP_MATH), CUDNN_STATUS_SUCCESS);
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnGetConvolutionMathType(convolution, &math);
    EXPECT_EQ(math, CUDNN_TENSOR_OP_MATH);
    EXPECT_EQ(cudnnSetConvolutionMathType(convolution, static_cast<cudnnMathType_t>(9)),
              CUDNN_STATUS_BAD_PARAM);

    cudnnTensorDescriptor_t x = nullptr;
    cudnnFilterDescriptor_t w = nullptr;
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateFilterDescriptor(&w);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, kFloat, 7, 4, 11, 13);
    cudnnSetFilter4dDescriptor(w, kFloat, CUDNN_TENSOR_NCHW, 6, 2, 3, 3);
    std::array<int, 4> out{};
    ASSERT_EQ(cudnnGetConvolution2dForwardOutputDim(convolution, x, w, &out[0], &out[1], &out[2],
                                                    &out[3]),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(out, (std::array<int, 4>{7, 6, 6, 5}));
    cudnnSetFilter4dDescriptor(w, kFloat, CUDNN_TENSOR_NCHW, 6, 3, 3, 3);
    EXPECT_EQ(cudnnGetConvolutionNdForwardOutputDim(convolution, x, w, 4, out.data()),
              CUDNN_STATUS_BAD_PARAM);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(convolution);
}

TEST(ConvolutionDescriptor, RefusesWhatMakesNoConvolution) {
    cudnnConvolutionDescriptor_t convolution = nullptr;
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution), CUDNN_STATUS_SUCCESS);
    const auto set = [&](int pad, int stride, int dilation) {
        return cudnnSetConvolution2dDescriptor(convolution, pad, 0, stride, 1, dilation, 1,
                                               CUDNN_CONVOLUTION, kFloat);
    };
    EXPECT_EQ(set(-1, 1, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(0, 0, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(0, 1, 0), CUDNN_STATUS_BAD_PARAM);
    const int ones[7] = {1, 1, 1, 1, 1, 1, 1};
    EXPECT_EQ(cudnnSetConvolutionNdDescriptor(convolution, 7, ones, ones, ones, CUDNN_CONVOLUTION,
                                              kFloat),
              CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(cudnnSetConvolutionNdDescriptor(convolution, 2, ones, ones, ones,
                                              static_cast<cudnnConvolutionMode_t>(5), kFloat),
              CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(0, 1, 1), CUDNN_STATUS_SUCCESS);
    cudnnDestroyConvolutionDescriptor(convolution);
}

TEST(PoolingDescriptor, KeepsWhatItWasGivenAndCountsPixels) {
    cudnnPoolingDescriptor_t pooling = nullptr;
    ASSERT_EQ(cudnnCreatePoolingDescriptor(&pooling), CUDNN_STATUS_SUCCESS);
    const auto set = [&](int window, int pad, int stride) {
        return cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN,
                                           window, 2, pad, 1, stride, 2);
    };
    EXPECT_EQ(set(0, 0, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(2, -1, 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(set(2, 0, 0), CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(set(3, 1, 2), CUDNN_STATUS_SUCCESS);
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    std::array<int, 6> v{};
    ASSERT_EQ(
        cudnnGetPooling2dDescriptor(pooling, &mode, &nan, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]),
        CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(v, (std::array<int, 6>{3, 2, 1, 1, 2, 2}));
    cudnnTensorDescriptor_t x = nullptr;
    cudnnCreateTensorDescriptor(&x);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, kFloat, 2, 3, 7, 6);
    std::array<int, 4> out{};
    ASSERT_EQ(cudnnGetPooling2dForwardOutputDim(pooling, x, &out[0], &out[1], &out[2], &out[3]),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(out, (std::array<int, 4>{2, 3, 4, 4}));
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyPoolingDescriptor(pooling);
}

TEST(ActivationDescriptor, KeepsWhatItWasGiven) {
    cudnnActivationDescriptor_t activation = nullptr;
    ASSERT_EQ(cudnnCreateActivationDescriptor(&activation), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetActivationDescriptor(activation, static_cast<cudnnActivationMode_t>(9),
                                           CUDNN_PROPAGATE_NAN, 1),
              CUDNN_STATUS_BAD_PARAM);
    ASSERT_EQ(
        cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_ELU, CUDNN_PROPAGATE_NAN, 0.5),
        CUDNN_STATUS_SUCCESS);
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coefficient = 0;
    ASSERT_EQ(cudnnGetActivationDescriptor(activation, &mode, &nan, &coefficient),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(mode, CUDNN_ACTIVATION_ELU);
    EXPECT_EQ(coefficient, 0.5);
    cudnnDestroyActivationDescriptor(activation);
}

}  // namespace
