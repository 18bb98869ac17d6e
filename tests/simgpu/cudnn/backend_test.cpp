// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The backend (graph) interface as cuDNN's frontend uses it, on the stand-in driver.

#include <cmath>
#include <initializer_list>
#include <memory>

#include "tests/simgpu/cudnn/library.hpp"

namespace {

/// A backend descriptor and what tests set of it.
class Descriptor {
  public:
    explicit Descriptor(cudnnBackendDescriptorType_t type) {
        EXPECT_EQ(cudnnBackendCreateDescriptor(type, &handle_), CUDNN_STATUS_SUCCESS);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { EXPECT_EQ(cudnnBackendDestroyDescriptor(handle_), CUDNN_STATUS_SUCCESS); }

    template <typename T>
    cudnnStatus_t try_set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          const std::vector<T>& values) {
        return cudnnBackendSetAttribute(handle_, name, type,
                                        static_cast<std::int64_t>(values.size()), values.data());
    }
    template <typename T>
    Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    const std::vector<T>& values) {
        EXPECT_EQ(try_set(name, type, values), CUDNN_STATUS_SUCCESS) << "attribute " << name;
        return *this;
    }
    Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& numbers) {
        return set(name, CUDNN_TYPE_INT64, numbers);
    }
    Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
        return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   std::vector<cudnnBackendDescriptor_t>{other.handle_});
    }
    Descriptor& set_float(cudnnBackendAttributeName_t name, float value) {
        return set(name, CUDNN_TYPE_FLOAT, std::vector<float>{value});
    }
    cudnnStatus_t finalize() { return cudnnBackendFinalize(handle_); }
    Descriptor& finalized() {
        EXPECT_EQ(finalize(), CUDNN_STATUS_SUCCESS);
        return *this;
    }
    std::int64_t number(cudnnBackendAttributeName_t name) const {
        std::int64_t value = -1;
        std::int64_t count = 0;
        EXPECT_EQ(cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_INT64, 1, &count, &value),
                  CUDNN_STATUS_SUCCESS);
        EXPECT_EQ(count, 1);
        return value;
    }
    cudnnBackendDescriptor_t get() const { return handle_; }

  private:
    cudnnBackendDescriptor_t handle_ = nullptr;
};

/// A packed tensor of floats.
class TensorOf : public Descriptor {
  public:
    TensorOf(std::int64_t uid, const std::vector<std::int64_t>& dims, bool is_virtual = false,
             bool by_value = false)
        : Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        std::vector<std::int64_t> strides(dims.size(), 1);
        for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
        set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
            std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
        set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
        set(CUDNN_ATTR_TENSOR_STRIDES, strides);
        set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {uid});
        set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16});
        if (is_virtual) set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, std::vector<char>{1});
        if (by_value) set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, std::vector<char>{1});
        finalized();
    }
};

class PointwiseOf : public Descriptor {
  public:
    explicit PointwiseOf(cudnnPointwiseMode_t mode)
        : Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR) {
        set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
            std::vector<cudnnPointwiseMode_t>{mode});
        set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
            std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
        finalized();
    }
};

/// Padded by one pixel, as all convolutions here.
class ConvolutionOf : public Descriptor {
  public:
    ConvolutionOf() : Descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {
        set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
            std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
        set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
            std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION});
        set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
        set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {1, 1});
        set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {1, 1});
        set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
        set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1});
        finalized();
    }
};

class CudnnBackend : public Cudnn {
  protected:
    static constexpr std::int64_t kX = 'x';
    static constexpr std::int64_t kW = 'w';
    static constexpr std::int64_t kY = 'y';

    void make_graph(Descriptor& graph, std::initializer_list<const Descriptor*> operations) {
        std::vector<cudnnBackendDescriptor_t> handles;
        for (const Descriptor* operation : operations) handles.push_back(operation->get());
        graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
                  std::vector<cudnnHandle_t>{handle_});
        graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles);
        graph.finalized();
    }

    /// The plans that heuristics give, each executed with its workspace.
    void execute_all(const Descriptor& graph, const std::vector<std::int64_t>& uids,
                     const std::vector<void*>& pointers, std::int64_t plans) {
        Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                       std::vector<cudnnBackendHeurMode_t>{CUDNN_HEUR_MODE_INSTANT});
        heuristics.finalized();
        std::int64_t count = 0;
        ASSERT_EQ(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                  CUDNN_STATUS_SUCCESS);
        ASSERT_EQ(count, plans);
        EXPECT_EQ(graph.number(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT), plans);
        std::vector<std::unique_ptr<Descriptor>> configs;
        std::vector<cudnnBackendDescriptor_t> handles;
        for (std::int64_t i = 0; i < count; ++i) {
            configs.push_back(std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
            handles.push_back(configs.back()->get());
        }
        ASSERT_EQ(
            cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
            CUDNN_STATUS_SUCCESS);
        for (const auto& config : configs) execute(*config, uids, pointers);
        // Who asks for the best one is told of one.
        ASSERT_EQ(
            cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, handles.data()),
            CUDNN_STATUS_SUCCESS);
        EXPECT_EQ(count, 1);
    }

    void execute(const Descriptor& config, const std::vector<std::int64_t>& uids,
                 const std::vector<void*>& pointers) {
        Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                 std::vector<cudnnHandle_t>{handle_});
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        plan.finalized();
        const std::int64_t bytes = plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        void* workspace = bytes == 0 ? nullptr : allocate(static_cast<std::size_t>(bytes));
        Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
        pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
        pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                 std::vector<void*>{workspace});
        pack.finalized();
        EXPECT_EQ(cudnnBackendExecute(handle_, plan.get(), pack.get()), CUDNN_STATUS_SUCCESS);
    }

    /// x 1 x 2 x 4 x 4, w 3 x 2 x 3 x 3, y 1 x 3 x 4 x 4.
    std::vector<float> convolved(const std::vector<float>& x, const std::vector<float>& w) {
        std::vector<float> y(48);
        for_each_product([&](std::size_t i, std::size_t j, std::size_t k) { y[k] += x[i] * w[j]; });
        return y;
    }
    template <typename Visit>
    static void for_each_product(const Visit& visit) {
        for (int k = 0; k < 3; ++k)
            for (int c = 0; c < 2; ++c)
                for (int i = 0; i < 16; ++i)
                    for (int t = 0; t < 9; ++t) {
                        const int row = i / 4 + t / 3 - 1;
                        const int column = i % 4 + t % 3 - 1;
                        if (row < 0 || row >= 4 || column < 0 || column >= 4) continue;
                        visit(static_cast<std::size_t>((c * 4 + row) * 4 + column),
                              static_cast<std::size_t>((k * 2 + c) * 9 + t),
                              static_cast<std::size_t>(k * 16 + i));
                    }
    }

    const TensorOf x_{kX, {1, 2, 4, 4}};
    const TensorOf w_{kW, {3, 2, 3, 3}};
    const TensorOf y_{kY, {1, 3, 4, 4}};
    const ConvolutionOf convolution_;
    const std::vector<float> x_values_ = some_numbers(32, 1);
    const std::vector<float> w_values_ = some_numbers(54, 2);
    const std::vector<float> y_values_ = some_numbers(48, 3);
};

TEST_F(CudnnBackend, ConvolvesForward) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y_)
        .set_float(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1)
        .set_float(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&operation});
    float* y = on_device(std::vector<float>(48));
    execute_all(graph, {kX, kW, kY}, {on_device(x_values_), on_device(w_values_), y}, 3);
    expect_close(on_host(y, 48), convolved(x_values_, w_values_));
}

TEST_F(CudnnBackend, ConvolvesBackwardByDataAndByFilter) {
    std::vector<float> dx(32);
    std::vector<float> dw(54);
    for_each_product([&](std::size_t i, std::size_t j, std::size_t k) {
        dx[i] += y_values_[k] * w_values_[j];
        dw[j] += y_values_[k] * x_values_[i];
    });
    float* x = on_device(x_values_);
    float* w = on_device(w_values_);
    float* y = on_device(y_values_);
    float* out = on_device(std::vector<float>(54));
    {
        Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution_)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x_)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, w_)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y_)
            .finalized();
        Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        make_graph(graph, {&operation});
        execute_all(graph, {kX, kW, kY}, {x, out, y}, 3);
        expect_close(on_host(out, 54), dw);
    }
    Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y_)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&operation});
    execute_all(graph, {kX, kW, kY}, {out, w, y}, 2);
    expect_close(on_host(out, 32), dx);
}

TEST_F(CudnnBackend, FusesBiasAndActivation) {
    const TensorOf bias('b', {1, 3, 1, 1});
    const TensorOf convolved_y('1', {1, 3, 4, 4}, true);
    const TensorOf biased_y('2', {1, 3, 4, 4}, true);
    Descriptor convolve(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, convolved_y)
        .finalized();
    const PointwiseOf add(CUDNN_POINTWISE_ADD);
    Descriptor shift(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    shift.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, convolved_y)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, biased_y)
        .finalized();
    const PointwiseOf relu(CUDNN_POINTWISE_RELU_FWD);
    Descriptor clip(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    clip.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, relu)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, biased_y)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y_)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&clip, &shift, &convolve});  // in any order
    const std::vector<float> bias_values = {0.5F, -0.5F, 0};
    float* y = on_device(std::vector<float>(48));
    execute_all(graph, {'b', kX, kW, kY},
                {on_device(bias_values), on_device(x_values_), on_device(w_values_), y}, 1);
    std::vector<float> right = convolved(x_values_, w_values_);
    for (std::size_t i = 0; i < right.size(); ++i) {
        right[i] = std::max(right[i] + bias_values[i / 16], 0.0F);
    }
    expect_close(on_host(y, 48), right);
}

TEST_F(CudnnBackend, MultipliesScalesAndReduces) {
    const TensorOf a('a', {2, 3, 4});
    const TensorOf b('b', {1, 4, 5});
    const TensorOf product('p', {2, 3, 5}, true);
    const TensorOf factor('f', {1, 1, 1}, false, true);
    const TensorOf scaled('s', {2, 3, 5});
    const TensorOf largest('m', {2, 3, 1});
    Descriptor matmul(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    matmul
        .set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT})
        .finalized();
    Descriptor multiply(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    multiply.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, product)
        .finalized();
    const PointwiseOf times(CUDNN_POINTWISE_MUL);
    Descriptor scale(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    scale.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, times)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, product)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, factor)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, scaled)
        .finalized();
    Descriptor maximum(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    maximum
        .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
             std::vector<cudnnReduceTensorOp_t>{CUDNN_REDUCE_TENSOR_MAX})
        .finalized();
    Descriptor reduce(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    reduce.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, maximum)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, scaled)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, largest)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&multiply, &scale, &reduce});
    const std::vector<float> a_values = some_numbers(24, 7);
    const std::vector<float> b_values = some_numbers(20, 8);
    float two = 2;
    float* s = on_device(std::vector<float>(30));
    float* m = on_device(std::vector<float>(6));
    execute_all(graph, {'a', 'b', 'f', 's', 'm'},
                {on_device(a_values), on_device(b_values), &two, s, m}, 1);
    std::vector<float> right(30);
    std::vector<float> right_largest(6, -1e9F);
    for (std::size_t row = 0; row < 6; ++row)
        for (std::size_t column = 0; column < 5; ++column) {
            for (std::size_t k = 0; k < 4; ++k)
                right[row * 5 + column] += 2 * a_values[row * 4 + k] * b_values[k * 5 + column];
            right_largest[row] = std::max(right_largest[row], right[row * 5 + column]);
        }
    expect_close(on_host(s, 30), right);
    expect_close(on_host(m, 6), right_largest);
}

TEST_F(CudnnBackend, NormalizesLayersThereAndBack) {
    const TensorOf x('x', {2, 6, 1, 1});
    const TensorOf y('y', {2, 6, 1, 1});
    const TensorOf scale('s', {1, 6, 1, 1});
    const TensorOf bias('b', {1, 6, 1, 1});
    const TensorOf mean('m', {2, 1, 1, 1});
    const TensorOf inverse('i', {2, 1, 1, 1});
    const TensorOf epsilon('e', {1, 1, 1, 1}, false, true);
    Descriptor forward(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    forward
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE,
             std::vector<cudnnBackendNormMode_t>{CUDNN_LAYER_NORM})
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
             std::vector<cudnnBackendNormFwdPhase_t>{CUDNN_NORM_FWD_TRAINING})
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, epsilon)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inverse)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&forward});
    const std::vector<float> x_values = some_numbers(12, 1);
    const std::vector<float> scale_values = some_numbers(6, 2);
    const std::vector<float> bias_values = some_numbers(6, 3);
    float small = 1e-3F;
    float* device_x = on_device(x_values);
    float* device_scale = on_device(scale_values);
    float* device_y = on_device(std::vector<float>(12));
    float* device_mean = on_device(std::vector<float>(2));
    float* device_inverse = on_device(std::vector<float>(2));
    execute_all(graph, {'x', 's', 'b', 'e', 'm', 'i', 'y'},
                {device_x, device_scale, on_device(bias_values), &small, device_mean,
                 device_inverse, device_y},
                1);
    const auto normalized = [&](const std::vector<float>& at) {
        std::vector<float> result;
        for (std::size_t n = 0; n < 2; ++n) {
            double sum = 0;
            double squares = 0;
            for (std::size_t i = 0; i < 6; ++i) sum += static_cast<double>(at[n * 6 + i]) / 6;
            for (std::size_t i = 0; i < 6; ++i)
                squares += std::pow(static_cast<double>(at[n * 6 + i]) - sum, 2) / 6;
            for (std::size_t i = 0; i < 6; ++i)
                result.push_back(static_cast<float>((static_cast<double>(at[n * 6 + i]) - sum) /
                                                        std::sqrt(squares + 1e-3) *
                                                        static_cast<double>(scale_values[i]) +
                                                    static_cast<double>(bias_values[i])));
        }
        return result;
    };
    expect_close(on_host(device_y, 12), normalized(x_values));

    const TensorOf dy('g', {2, 6, 1, 1});
    const TensorOf dx('d', {2, 6, 1, 1});
    const TensorOf dscale('t', {1, 6, 1, 1});
    const TensorOf dbias('c', {1, 6, 1, 1});
    Descriptor backward(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    backward
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE,
             std::vector<cudnnBackendNormMode_t>{CUDNN_LAYER_NORM})
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, scale)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, mean)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, inverse)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, dscale)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, dbias)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx)
        .finalized();
    Descriptor back_graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(back_graph, {&backward});
    const std::vector<float> dy_values = some_numbers(12, 4);
    float* device_dx = on_device(std::vector<float>(12));
    float* device_dbias = on_device(std::vector<float>(6));
    execute_all(back_graph, {'x', 'g', 's', 'm', 'i', 't', 'c', 'd'},
                {device_x, on_device(dy_values), device_scale, device_mean, device_inverse,
                 on_device(std::vector<float>(6)), device_dbias, device_dx},
                1);
    const std::vector<float> got = on_host(device_dx, 12);
    for (std::size_t i = 0; i < 12; ++i) {
        std::vector<float> above = x_values;
        std::vector<float> below = x_values;
        above[i] += 1e-2F;
        below[i] -= 1e-2F;
        const std::vector<float> high = normalized(above);
        const std::vector<float> low = normalized(below);
        float slope = 0;
        for (std::size_t j = 0; j < 12; ++j) slope += dy_values[j] * (high[j] - low[j]) / 2e-2F;
        EXPECT_NEAR(got[i], slope, 2e-2F);
    }
    const std::vector<float> sums = on_host(device_dbias, 6);
    for (std::size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(sums[i], dy_values[i] + dy_values[6 + i], 1e-5F);
}

TEST_F(CudnnBackend, KeepsWhatIsReferredToAlive) {
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    {
        const TensorOf x(kX, {1, 2, 4, 4});
        const ConvolutionOf convolution;
        Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w_)
            .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y_)
            .finalized();
        make_graph(graph, {&operation});
    }
    float* y = on_device(std::vector<float>(48));
    execute_all(graph, {kX, kW, kY}, {on_device(x_values_), on_device(w_values_), y}, 3);
    expect_close(on_host(y, 48), convolved(x_values_, w_values_));
}

TEST_F(CudnnBackend, RefusesAttributesThatDoNotBelong) {
    Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    EXPECT_EQ(tensor.finalize(), CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(tensor.try_set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                             std::vector<std::int64_t>{2}),
              CUDNN_STATUS_BAD_PARAM);
    EXPECT_EQ(
        tensor.try_set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_DOUBLE, std::vector<double>{2}),
        CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    EXPECT_EQ(tensor.try_set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                             std::vector<std::int64_t>(9, 1)),
              CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    std::int64_t value = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(tensor.get(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64,
                                       1, nullptr, &value),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    const TensorOf done(5, {1, 2, 3});
    EXPECT_EQ(cudnnBackendSetAttribute(done.get(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                       &value),
              CUDNN_STATUS_BAD_PARAM);
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    EXPECT_EQ(operation.try_set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                std::vector<cudnnBackendDescriptor_t>{tensor.get()}),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    EXPECT_EQ(cudnnBackendFinalize(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST_F(CudnnBackend, HasNoEngineForWhatItCannotCompute) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
    operation.finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    make_graph(graph, {&operation});
    EXPECT_EQ(graph.number(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT), 0);
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                   std::vector<cudnnBackendHeurMode_t>{CUDNN_HEUR_MODE_A});
    EXPECT_EQ(heuristics.finalize(), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnBackend, RefusesGraphsThatMakeNoSense) {
    const TensorOf wrong('z', {1, 3, 4, 5});
    Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w_)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, wrong)
        .finalized();
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    EXPECT_EQ(graph.finalize(), CUDNN_STATUS_BAD_PARAM);
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 1});
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             std::vector<void*>{nullptr, nullptr});
    EXPECT_EQ(pack.finalize(), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
}

}  // namespace
