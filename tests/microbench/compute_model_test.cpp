// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The model of operations' times on the stand-in driver: Roofline by the ceilings that the
// benchmarks measure, corrected by what kernels of some sizes took, against kernels of others.
#include <cublas_v2.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "cost/models/compute_model.hpp"
#include "microbench/device/suite.hpp"
#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {
namespace {

using cost::DataType;
using cost::KernelWork;

constexpr double kMostBefore = 15;
constexpr double kMostAfter = 5;
constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr std::uint64_t kMostBytes = std::uint64_t{24} << 20;  ///< of one operand

/// A kernel of some size: what it has to do by its shape, and how long it took.
struct Timed {
    KernelWork work;
    double us = 0;
};

void check(cublasStatus_t status) { ASSERT_EQ(status, CUBLAS_STATUS_SUCCESS); }
void check(cudnnStatus_t status) { ASSERT_EQ(status, CUDNN_STATUS_SUCCESS); }

class Kernels {
  public:
    explicit Kernels(Session& session)
        : session_(session),
          a_(session.driver(), kMostBytes),
          b_(session.driver(), kMostBytes),
          c_(session.driver(), kMostBytes),
          workspace_(session.driver(), kMostBytes) {
        check(cublasCreate(&blas_));
        check(cublasSetStream(blas_, session.stream()));
        check(cudnnCreate(&dnn_));
        check(cudnnSetStream(dnn_, session.stream()));
        for (auto* tensor : {&x_, &y_}) check(cudnnCreateTensorDescriptor(tensor));
        check(cudnnCreateFilterDescriptor(&w_));
        check(cudnnCreateConvolutionDescriptor(&convolution_));
        check(cudnnCreateActivationDescriptor(&relu_));
        check(
            cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
        check(cudnnCreateReduceTensorDescriptor(&sum_));
        check(cudnnSetReduceTensorDescriptor(sum_, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                             CUDNN_NOT_PROPAGATE_NAN,
                                             CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
    }
    ~Kernels() {
        cudnnDestroyReduceTensorDescriptor(sum_);
        cudnnDestroyActivationDescriptor(relu_);
        cudnnDestroyConvolutionDescriptor(convolution_);
        cudnnDestroyFilterDescriptor(w_);
        for (auto* tensor : {x_, y_}) cudnnDestroyTensorDescriptor(tensor);
        cudnnDestroy(dnn_);
        cublasDestroy(blas_);
    }

    Timed product(int m, int n, int k) {
        const double us = median_us([&] {
            check(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &kOne, at(a_), m, at(b_), k,
                              &kZero, at(c_), m));
        });
        return {cost::matrix_product(m, n, k, 1, DataType::Fp32), us};
    }

    enum class Way { Forward, Data, Filter };
    Timed convolution(Way way, const cost::ConvShape& s) {
        const auto i = [](std::int64_t value) { return static_cast<int>(value); };
        set(x_, i(s.batch), i(s.in_channels), i(s.in_height), i(s.in_width));
        set(y_, i(s.batch), i(s.out_channels), i(s.out_height()), i(s.out_width()));
        check(cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, i(s.out_channels),
                                         i(s.in_channels), i(s.kernel_height), i(s.kernel_width)));
        check(cudnnSetConvolution2dDescriptor(convolution_, i(s.padding), i(s.padding), i(s.stride),
                                              i(s.stride), 1, 1, CUDNN_CROSS_CORRELATION,
                                              CUDNN_DATA_FLOAT));
        switch (way) {
            case Way::Forward:
                return {cost::conv_forward(s, DataType::Fp32), median_us([&] {
                            check(cudnnConvolutionForward(
                                dnn_, &kOne, x_, at(a_), w_, at(b_), convolution_,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, at(workspace_),
                                kMostBytes, &kZero, y_, at(c_)));
                        })};
            case Way::Data:
                return {cost::conv_backward_data(s, DataType::Fp32), median_us([&] {
                            check(cudnnConvolutionBackwardData(
                                dnn_, &kOne, w_, at(b_), y_, at(c_), convolution_,
                                CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, at(workspace_), kMostBytes,
                                &kZero, x_, at(a_)));
                        })};
            case Way::Filter:
                break;
        }
        return {cost::conv_backward_filter(s, DataType::Fp32), median_us([&] {
                    check(cudnnConvolutionBackwardFilter(
                        dnn_, &kOne, x_, at(a_), y_, at(c_), convolution_,
                        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, at(workspace_), kMostBytes, &kZero, w_,
                        at(b_)));
                })};
    }

    Timed elementwise(int count) {
        set(x_, 1, 1, 1, count);
        const double us = median_us([&] {
            check(cudnnActivationForward(dnn_, relu_, &kOne, x_, at(a_), &kZero, x_, at(b_)));
        });
        return {cost::elementwise(count, 1, 1, 1, DataType::Fp32), us};
    }

    Timed reduction(int rows, int columns) {
        set(x_, rows, columns, 1, 1);
        set(y_, 1, columns, 1, 1);
        const double us = median_us([&] {
            check(cudnnReduceTensor(dnn_, sum_, nullptr, 0, at(workspace_), kMostBytes, &kOne, x_,
                                    at(a_), &kZero, y_, at(b_)));
        });
        return {cost::reduction(double(rows) * columns, columns, DataType::Fp32), us};
    }

  private:
    static float* at(const DeviceBuffer& buffer) {
        return reinterpret_cast<float*>(buffer.address);
    }
    static void set(cudnnTensorDescriptor_t tensor, int n, int c, int h, int w) {
        check(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
    }
    double median_us(const std::function<void()>& launch) {
        return median(session_.times_us(3, launch));
    }

    Session& session_;
    DeviceBuffer a_, b_, c_, workspace_;
    cublasHandle_t blas_ = nullptr;
    cudnnHandle_t dnn_ = nullptr;
    cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
    cudnnFilterDescriptor_t w_ = nullptr;
    cudnnConvolutionDescriptor_t convolution_ = nullptr;
    cudnnActivationDescriptor_t relu_ = nullptr;
    cudnnReduceTensorDescriptor_t sum_ = nullptr;
};

/// Kernels of random sizes, some of each kind.
class Sizes {
  public:
    explicit Sizes(unsigned seed) : random_(seed) {}

    std::vector<Timed> run(Kernels& kernels, int of_each) {
        std::vector<Timed> all;
        for (int k = 0; k < of_each; ++k) {
            all.push_back(kernels.product(size(6, 10), size(6, 10), size(6, 10)));
            for (const auto way : {Kernels::Way::Forward, Kernels::Way::Data, Kernels::Way::Filter})
                all.push_back(kernels.convolution(way, shape()));
            all.push_back(kernels.elementwise(size(16, 22)));
            all.push_back(kernels.reduction(size(6, 10), size(6, 11)));
        }
        return all;
    }

  private:
    /// Between two powers of two, as many of each doubling.
    int size(double least, double most) {
        return static_cast<int>(
            std::exp2(std::uniform_real_distribution<double>(least, most)(random_)));
    }
    cost::ConvShape shape() {
        const std::int64_t side = size(3, 5.5);
        const std::int64_t kernel = random_() % 2 == 0 ? 3 : 1;
        return {size(2, 4.5), size(3, 6.5), side, side,       size(3, 6.5),
                kernel,       kernel,       1,    kernel / 2, 1};
    }
    std::mt19937 random_;
};

cost::Ceilings measured_ceilings(Session& session) {
    Report report;
    Bench bench{session, Depth::Quick, report};
    measure_calls(bench);
    measure_memory(bench);
    measure_arithmetic(bench);
    return report.profile.machine.ceilings;
}

double error_percent(const cost::ComputeModel& model, const std::vector<Timed>& kernels,
                     const char* which) {
    std::map<cost::KernelClass, std::pair<double, int>> of_class;
    double sum = 0;
    for (const Timed& kernel : kernels) {
        const double error = std::abs(model.predict_us(kernel.work) - kernel.us) / kernel.us;
        sum += error;
        of_class[kernel.work.kind].first += error;
        ++of_class[kernel.work.kind].second;
    }
    for (const auto& [kind, errors] : of_class)
        testing::Test::RecordProperty(
            std::string(which) + "_class_" + std::to_string(static_cast<int>(kind)),
            std::to_string(100 * errors.first / errors.second));
    return 100 * sum / static_cast<double>(kernels.size());
}

TEST(ComputeModel, IsWithinBoundsOnSizesThatItHasNotSeen) {
    Session session;
    cost::ComputeModel model(measured_ceilings(session));
    Kernels kernels(session);
    const std::vector<Timed> seen = Sizes(1).run(kernels, 12);
    const std::vector<Timed> held_out = Sizes(2).run(kernels, 12);
    const double before = error_percent(model, held_out, "before");
    for (std::size_t k = 0; k < seen.size(); ++k) model.observe(k, seen[k].work, seen[k].us);
    const double after = error_percent(model, held_out, "after");
    RecordProperty("before_percent", std::to_string(before));
    RecordProperty("after_percent", std::to_string(after));
    EXPECT_LE(before, kMostBefore);
    EXPECT_LE(after, kMostAfter);
}

TEST(ComputeModel, OfADeviceHalfAsFastIsCorrectedTo) {
    Session session;
    cost::Ceilings ceilings = measured_ceilings(session);
    for (double* ceiling : {&ceilings.fp32_tflops, &ceilings.mem_gbps}) *ceiling *= 2;
    ceilings.launch_us /= 2;
    cost::ComputeModel model(ceilings);
    Kernels kernels(session);
    const std::vector<Timed> seen = Sizes(3).run(kernels, 8);
    const std::vector<Timed> held_out = Sizes(4).run(kernels, 8);
    EXPECT_GT(error_percent(model, held_out, "before"), 40);
    for (std::size_t k = 0; k < seen.size(); ++k) model.observe(k, seen[k].work, seen[k].us);
    EXPECT_LE(error_percent(model, held_out, "after"), kMostAfter);
}

}  // namespace
}  // namespace libswap::bench
