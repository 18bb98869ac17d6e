// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The legacy calls as a program uses them, on the stand-in driver.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "tests/simgpu/cudnn/library.hpp"

namespace {

/// A convolution of 2 images of 3 channels of 5 x 5 pixels by 4 filters of 3 x 3, padded.
class CudnnConvolution : public Cudnn {
  protected:
    void SetUp() override {
        Cudnn::SetUp();
        cudnnCreateTensorDescriptor(&x_desc_);
        cudnnCreateTensorDescriptor(&y_desc_);
        cudnnCreateTensorDescriptor(&bias_desc_);
        cudnnCreateFilterDescriptor(&w_desc_);
        cudnnCreateConvolutionDescriptor(&convolution_);
        const auto float32 = CUDNN_DATA_FLOAT;
        cudnnSetTensor4dDescriptor(x_desc_, CUDNN_TENSOR_NCHW, float32, 2, 3, 5, 5);
        cudnnSetTensor4dDescriptor(y_desc_, CUDNN_TENSOR_NCHW, float32, 2, 4, 5, 5);
        cudnnSetTensor4dDescriptor(bias_desc_, CUDNN_TENSOR_NCHW, float32, 1, 4, 1, 1);
        cudnnSetFilter4dDescriptor(w_desc_, float32, CUDNN_TENSOR_NCHW, 4, 3, 3, 3);
        cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        float32);
        x_ = some_numbers(150, 1);
        w_ = some_numbers(108, 2);
        for (int n = 0; n < 2; ++n)
            for (int k = 0; k < 4; ++k)
                for (int i = 0; i < 25; ++i) y_.push_back(pixel(n, k, i / 5, i % 5));
        device_x_ = on_device(x_);
        device_w_ = on_device(w_);
        device_y_ = on_device(std::vector<float>(200, 9));
    }

    void TearDown() override {
        cudnnDestroyTensorDescriptor(x_desc_);
        cudnnDestroyTensorDescriptor(y_desc_);
        cudnnDestroyTensorDescriptor(bias_desc_);
        cudnnDestroyFilterDescriptor(w_desc_);
        cudnnDestroyConvolutionDescriptor(convolution_);
        Cudnn::TearDown();
    }

    float pixel(int n, int k, int y, int x) const {
        float sum = 0;
        for (int c = 0; c < 3; ++c)
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) {
                    const int row = y + i - 1;
                    const int column = x + j - 1;
                    if (row < 0 || row >= 5 || column < 0 || column >= 5) continue;
                    sum += x_[static_cast<std::size_t>(((n * 3 + c) * 5 + row) * 5 + column)] *
                           w_[static_cast<std::size_t>(((k * 3 + c) * 3 + i) * 3 + j)];
                }
        return sum;
    }

    std::size_t workspace_of(cudnnConvolutionFwdAlgo_t algorithm) {
        std::size_t bytes = 0;
        EXPECT_EQ(cudnnGetConvolutionForwardWorkspaceSize(handle_, x_desc_, w_desc_, convolution_,
                                                          y_desc_, algorithm, &bytes),
                  CUDNN_STATUS_SUCCESS);
        return bytes;
    }

    cudnnStatus_t forward(cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t bytes) {
        return cudnnConvolutionForward(handle_, &kOne, x_desc_, device_x_, w_desc_, device_w_,
                                       convolution_, algorithm, workspace, bytes, &kZero, y_desc_,
                                       device_y_);
    }

    static constexpr float kOne = 1;
    static constexpr float kZero = 0;
    cudnnTensorDescriptor_t x_desc_ = nullptr;
    cudnnTensorDescriptor_t y_desc_ = nullptr;
    cudnnTensorDescriptor_t bias_desc_ = nullptr;
    cudnnFilterDescriptor_t w_desc_ = nullptr;
    cudnnConvolutionDescriptor_t convolution_ = nullptr;
    std::vector<float> x_;
    std::vector<float> w_;
    std::vector<float> y_;
    float* device_x_ = nullptr;
    float* device_w_ = nullptr;
    float* device_y_ = nullptr;
};

TEST_F(CudnnConvolution, GivesTheSameByEveryAlgorithm) {
    std::vector<float> first;
    for (const auto algorithm :
         {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
          CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM}) {
        const std::size_t bytes = workspace_of(algorithm);
        void* workspace = bytes == 0 ? nullptr : allocate(bytes);
        ASSERT_EQ(forward(algorithm, workspace, bytes), CUDNN_STATUS_SUCCESS);
        const std::vector<float> y = on_host(device_y_, 200);
        expect_close(y, y_);
        EXPECT_TRUE(first.empty() || first == y);
        first = y;
    }
}

TEST_F(CudnnConvolution, ConvolvesHalvesOfImagesWithChannelsInnermost) {
    cudnnSetTensor4dDescriptor(x_desc_, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 5, 5);
    cudnnSetFilter4dDescriptor(w_desc_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 4, 3, 3, 3);
    std::vector<float> x(150);
    std::vector<float> w(108);
    for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t c = 0; c < 3; ++c)
            for (std::size_t i = 0; i < 25; ++i) x[(n * 25 + i) * 3 + c] = x_[(n * 3 + c) * 25 + i];
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t c = 0; c < 3; ++c)
            for (std::size_t i = 0; i < 9; ++i) w[(k * 9 + i) * 3 + c] = w_[(k * 3 + c) * 9 + i];
    device_x_ = on_device(x);
    device_w_ = on_device(w);
    ASSERT_EQ(forward(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0), CUDNN_STATUS_SUCCESS);
    expect_close(on_host(device_y_, 200), y_);
}

TEST_F(CudnnConvolution, RunsInTheOrderOfItsStream) {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cudnnSetStream(handle_, stream), CUDNN_STATUS_SUCCESS);
    cudaStream_t set = nullptr;
    EXPECT_EQ(cudnnGetStream(handle_, &set), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set, stream);
    ASSERT_EQ(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(device_x_), 0, 150, stream),
              CUDA_SUCCESS);
    ASSERT_EQ(forward(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(on_host(device_y_, 200), std::vector<float>(200));
    cudnnSetStream(handle_, nullptr);
    cuStreamDestroy(stream);
}

TEST_F(CudnnConvolution, NeedsTheWorkspaceThatItAsksFor) {
    const auto precomputed = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    EXPECT_EQ(workspace_of(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM), 0U);
    const std::size_t bytes = workspace_of(precomputed);
    EXPECT_GT(bytes, 0U);
    EXPECT_GT(workspace_of(CUDNN_CONVOLUTION_FWD_ALGO_GEMM), bytes);
    void* workspace = allocate(bytes);
    EXPECT_EQ(forward(precomputed, workspace, bytes - 1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(precomputed, nullptr, bytes), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(precomputed, workspace, bytes), CUDNN_STATUS_SUCCESS);
}

TEST_F(CudnnConvolution, OverwritesItsWorkspace) {
    const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    const std::size_t bytes = workspace_of(algorithm);
    auto* workspace = on_device(std::vector<unsigned char>(bytes));
    ASSERT_EQ(forward(algorithm, workspace, bytes), CUDNN_STATUS_SUCCESS);
    EXPECT_NE(on_host(workspace, bytes), std::vector<unsigned char>(bytes));
}

TEST_F(CudnnConvolution, RefusesWhatIsMissingOrDoesNotFit) {
    const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    const auto call = [&](cudnnHandle_t handle, const void* alpha, const void* x, void* y) {
        return cudnnConvolutionForward(handle, alpha, x_desc_, x, w_desc_, device_w_, convolution_,
                                       algorithm, nullptr, 0, &kZero, y_desc_, y);
    };
    EXPECT_EQ(call(nullptr, &kOne, device_x_, device_y_), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(call(handle_, nullptr, device_x_, device_y_), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(call(handle_, &kOne, nullptr, device_y_), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(call(handle_, &kOne, device_x_, nullptr), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(static_cast<cudnnConvolutionFwdAlgo_t>(99), nullptr, 0),
              CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(forward(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, nullptr, 0), CUDNN_STATUS_NOT_SUPPORTED);
    cudnnSetTensor4dDescriptor(y_desc_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 5, 4);
    EXPECT_EQ(forward(algorithm, nullptr, 0), CUDNN_STATUS_BAD_PARAM);
    char why[200];
    cudnnGetLastErrorString(why, sizeof(why));
    EXPECT_NE(std::string(why), "");
    cudnnSetTensor4dDescriptor(y_desc_, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 4, 5, 5);
    EXPECT_EQ(forward(algorithm, nullptr, 0), CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(on_host(device_y_, 200), std::vector<float>(200, 9));
}

TEST_F(CudnnConvolution, FindsTheFastestByTrying) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, 8> found{};
    int count = 0;
    const std::size_t bytes = workspace_of(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
    ASSERT_EQ(cudnnFindConvolutionForwardAlgorithmEx(handle_, x_desc_, device_x_, w_desc_,
                                                     device_w_, convolution_, y_desc_, device_y_, 8,
                                                     &count, found.data(), allocate(bytes), bytes),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(count, 8);
    EXPECT_EQ(found[0].status, CUDNN_STATUS_SUCCESS);
    EXPECT_GT(found[0].time, 0);
    int ran = 0;
    for (const auto& perf : found) {
        ran += perf.status == CUDNN_STATUS_SUCCESS ? 1 : 0;
        EXPECT_TRUE(perf.status != CUDNN_STATUS_SUCCESS || perf.memory <= bytes);
        EXPECT_TRUE(perf.algo != CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
                    perf.status != CUDNN_STATUS_SUCCESS);  // its workspace is larger
    }
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(std::is_sorted(found.begin(), found.begin() + ran,
                               [](const auto& a, const auto& b) { return a.time < b.time; }));
    expect_close(on_host(device_y_, 200), y_);
    ASSERT_EQ(cudnnFindConvolutionForwardAlgorithm(handle_, x_desc_, w_desc_, convolution_, y_desc_,
                                                   8, &count, found.data()),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(std::count_if(found.begin(), found.end(),
                            [](const auto& perf) { return perf.status == CUDNN_STATUS_SUCCESS; }),
              3);
}

TEST_F(CudnnConvolution, KnowsAlgorithmsOfAllDirections) {
    int count = 0;
    EXPECT_EQ(cudnnGetConvolutionForwardAlgorithmMaxCount(handle_, &count), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(count, 8);
    cudnnConvolutionBwdDataAlgoPerf_t data[2];
    ASSERT_EQ(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_desc_, y_desc_, convolution_,
                                                          x_desc_, 2, &count, data),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(data[0].algo, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
    EXPECT_EQ(data[0].determinism, CUDNN_DETERMINISTIC);
    EXPECT_EQ(data[1].determinism, CUDNN_NON_DETERMINISTIC);
    cudnnConvolutionBwdFilterAlgoPerf_t filter[7];
    ASSERT_EQ(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_desc_, y_desc_, convolution_,
                                                            w_desc_, 7, &count, filter),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(count, 7);
    EXPECT_EQ(filter[0].algo, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
    EXPECT_EQ(filter[6].status, CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_desc_, y_desc_, convolution_,
                                                            w_desc_, 0, &count, filter),
              CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnConvolution, GoesBackInAllDirections) {
    const std::vector<float> dy = some_numbers(200, 5);
    float* device_dy = on_device(dy);
    std::vector<float> dx(150);
    std::vector<float> dw(108);
    std::vector<float> db(4);
    for (int n = 0; n < 2; ++n)
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < 25; ++i) {
                const float g = dy[static_cast<std::size_t>((n * 4 + k) * 25 + i)];
                db[static_cast<std::size_t>(k)] += g;
                for (int c = 0; c < 3; ++c)
                    for (int t = 0; t < 9; ++t) {
                        const int row = i / 5 + t / 3 - 1;
                        const int column = i % 5 + t % 3 - 1;
                        if (row < 0 || row >= 5 || column < 0 || column >= 5) continue;
                        const auto at =
                            static_cast<std::size_t>(((n * 3 + c) * 5 + row) * 5 + column);
                        const auto tap = static_cast<std::size_t>((k * 3 + c) * 9 + t);
                        dx[at] += g * w_[tap];
                        dw[tap] += g * x_[at];
                    }
            }
    ASSERT_EQ(cudnnConvolutionBackwardData(handle_, &kOne, w_desc_, device_w_, y_desc_, device_dy,
                                           convolution_, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr,
                                           0, &kZero, x_desc_, device_x_),
              CUDNN_STATUS_SUCCESS);
    expect_close(on_host(device_x_, 150), dx);
    device_x_ = on_device(x_);
    ASSERT_EQ(cudnnConvolutionBackwardFilter(handle_, &kOne, x_desc_, device_x_, y_desc_, device_dy,
                                             convolution_, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                             nullptr, 0, &kZero, w_desc_, device_w_),
              CUDNN_STATUS_SUCCESS);
    expect_close(on_host(device_w_, 108), dw);
    float* device_db = on_device(std::vector<float>(4));
    ASSERT_EQ(cudnnConvolutionBackwardBias(handle_, &kOne, y_desc_, device_dy, &kZero, bias_desc_,
                                           device_db),
              CUDNN_STATUS_SUCCESS);
    expect_close(on_host(device_db, 4), db);
}

TEST_F(CudnnConvolution, FaultsWhereMemoryIsMissing) {
    device_w_ = reinterpret_cast<float*>(0x10000);
    ASSERT_EQ(forward(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    allocated_.clear();
    EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
}

TEST_F(Cudnn, SaysWhichItIs) {
    // No older than PyTorch's.
    EXPECT_GE(cudnnGetVersion(), std::max<std::size_t>(CUDNN_VERSION, 92600));
    int value = 0;
    EXPECT_EQ(cudnnGetProperty(MAJOR_VERSION, &value), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(value, 9);
    EXPECT_EQ(cudnnGetProperty(MINOR_VERSION, &value), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(static_cast<std::size_t>(value), cudnnGetVersion() / 100 % 100);
    EXPECT_STREQ(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM), "CUDNN_STATUS_BAD_PARAM");
    EXPECT_STREQ(cudnnGetErrorString(static_cast<cudnnStatus_t>(77)), "CUDNN_UNKNOWN_STATUS");
    EXPECT_EQ(cudnnCreate(nullptr), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(cudnnDestroy(nullptr), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(cudnnSetStream(nullptr, nullptr), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(Cudnn, SaysWhatIsNotBuilt) {
    if (const char* strict = getenv("SIMGPU_STRICT"); strict != nullptr && *strict != 0)
        GTEST_SKIP() << "SIMGPU_STRICT aborts";
    testing::internal::CaptureStderr();
    cudnnLRNDescriptor_t descriptor = nullptr;
    EXPECT_EQ(cudnnCreateLRNDescriptor(&descriptor), CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(cudnnCreateLRNDescriptor(&descriptor), CUDNN_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "simgpu: cudnn: cudnnCreateLRNDescriptor is not built, NOT_SUPPORTED\n");
}

}  // namespace
