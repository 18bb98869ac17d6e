// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Convolutions of the stand-in against plain loops.

#include "simgpu/cudnn/convolution.hpp"

#include <cmath>
#include <ostream>

#include "simgpu/cudnn/element.hpp"
#include "tests/simgpu/cudnn/launched.hpp"

namespace libswap::simgpu::cudnn {
namespace {

struct Case {
    const char* name;
    int n, c, k, groups;
    int size[3], filter[3], pad[3], stride[3], dilation[3];
    bool flip = false;
    int rank = 4;  ///< 4: the first of three extents is not there
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Plain", 2, 3, 4, 1, {1, 6, 7}, {1, 3, 3}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"OneImage", 1, 3, 5, 1, {1, 5, 5}, {1, 3, 3}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}},
    {"OneByOne", 3, 8, 6, 1, {1, 4, 4}, {1, 1, 1}, {0, 0, 0}, {1, 2, 2}, {1, 1, 1}},
    {"StridedDilated", 2, 2, 3, 1, {1, 11, 9}, {1, 3, 2}, {0, 2, 1}, {1, 2, 3}, {1, 2, 1}},
    {"Groups", 2, 4, 6, 2, {1, 5, 6}, {1, 3, 3}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"Depthwise", 3, 5, 5, 5, {1, 6, 6}, {1, 3, 3}, {0, 1, 1}, {1, 2, 2}, {1, 1, 1}},
    {"Flipped", 2, 3, 4, 1, {1, 6, 7}, {1, 3, 2}, {0, 1, 0}, {1, 1, 1}, {1, 1, 1}, true},
    {"ThreeDimensions",
     2,
     2,
     3,
     1,
     {4, 5, 6},
     {2, 3, 3},
     {1, 1, 0},
     {1, 2, 1},
     {1, 1, 1},
     false,
     5},
    {"Large", 4, 16, 24, 1, {1, 16, 16}, {1, 5, 5}, {0, 2, 2}, {1, 1, 1}, {1, 1, 1}},
};

/// The shapes of a case as the kernels take them, and the loops that say what is right.
class Model {
  public:
    explicit Model(const Case& c, cudnnDataType_t type = CUDNN_DATA_FLOAT) : case_(c) {
        const int skip = 5 - c.rank;
        params.shape.spatial = c.rank - 2;
        params.shape.groups = c.groups;
        params.shape.flip = c.flip ? 1 : 0;
        int x[5] = {c.n, c.c};
        int w[5] = {c.k, c.c / c.groups};
        int y[5] = {c.n, c.k};
        for (int i = 0; i < 3; ++i) {
            out_[i] =
                (c.size[i] + 2 * c.pad[i] - (c.filter[i] - 1) * c.dilation[i] - 1) / c.stride[i] +
                1;
        }
        for (int i = skip; i < 3; ++i) {
            x[2 + i - skip] = c.size[i];
            w[2 + i - skip] = c.filter[i];
            y[2 + i - skip] = out_[i];
            params.shape.pad_before[i - skip] = params.shape.pad_after[i - skip] = c.pad[i];
            params.shape.stride[i - skip] = c.stride[i];
            params.shape.dilation[i - skip] = c.dilation[i];
        }
        params.x_desc = dense_tensor(type, c.rank, x);
        params.w_desc = dense_tensor(type, c.rank, w);
        params.y_desc = params.z_desc = dense_tensor(type, c.rank, y);
        params.alpha = 1;
        params.work_factor = 1;
    }

    /// Calls visit(place in x, in w, in y) for each product.
    template <typename Visit>
    void for_each_product(const Visit& visit) const {
        const Case& c = case_;
        const int per_group = c.c / c.groups;
        for (int n = 0; n < c.n; ++n)
            for (int k = 0; k < c.k; ++k)
                for (int oz = 0; oz < out_[0]; ++oz)
                    for (int oy = 0; oy < out_[1]; ++oy)
                        for (int ox = 0; ox < out_[2]; ++ox)
                            for (int i = 0; i < per_group; ++i)
                                for (int fz = 0; fz < c.filter[0]; ++fz)
                                    for (int fy = 0; fy < c.filter[1]; ++fy)
                                        for (int fx = 0; fx < c.filter[2]; ++fx) {
                                            const int at[3] = {place(0, oz, fz), place(1, oy, fy),
                                                               place(2, ox, fx)};
                                            if (!inside(at)) continue;
                                            const int channel =
                                                k / (c.k / c.groups) * per_group + i;
                                            visit(flat(n * c.c + channel, at, c.size),
                                                  tap(k * per_group + i, fz, fy, fx),
                                                  flat(n * c.k + k, {oz, oy, ox}, out_));
                                        }
    }

    ConvolutionParams params{};

  private:
    int place(int axis, int out, int filter) const {
        return out * case_.stride[axis] - case_.pad[axis] + filter * case_.dilation[axis];
    }
    bool inside(const int (&at)[3]) const {
        for (int i = 0; i < 3; ++i)
            if (at[i] < 0 || at[i] >= case_.size[i]) return false;
        return true;
    }
    static std::size_t flat(int plane, const int (&at)[3], const int (&size)[3]) {
        return static_cast<std::size_t>(((plane * size[0] + at[0]) * size[1] + at[1]) * size[2] +
                                        at[2]);
    }
    std::size_t tap(int filter, int z, int y, int x) const {
        const int(&f)[3] = case_.filter;
        return case_.flip ? flat(filter, {f[0] - 1 - z, f[1] - 1 - y, f[2] - 1 - x}, f)
                          : flat(filter, {z, y, x}, f);
    }

    const Case& case_;
    int out_[3];
};

class Convolutions : public testing::TestWithParam<Case> {};

template <typename T>
void check_all_directions(const Case& c, cudnnDataType_t type, double tolerance) {
    Model model(c, type);
    ConvolutionParams& p = model.params;
    std::vector<T> x = numbers<T>(p.x_desc.elements(), 1);
    std::vector<T> w = numbers<T>(p.w_desc.elements(), 2);
    std::vector<T> y = numbers<T>(p.y_desc.elements(), 3);
    std::vector<T> right_x(x.size());
    std::vector<T> right_w(w.size());
    std::vector<T> right_y(y.size());
    model.for_each_product([&](std::size_t i, std::size_t j, std::size_t k) {
        right_y[k] += x[i] * w[j];
        right_x[i] += y[k] * w[j];
        right_w[j] += x[i] * y[k];
    });
    std::vector<T> out_x(x.size(), std::nan(""));
    std::vector<T> out_w(w.size(), std::nan(""));
    std::vector<T> out_y(y.size(), std::nan(""));
    p.x = address(x);
    p.w = address(w);
    p.y = p.z = address(out_y);
    run(host_convolution_forward, p);
    expect_near(out_y, right_y, tolerance);
    p.y = address(y);
    p.x = address(out_x);
    run(host_convolution_backward_data, p);
    expect_near(out_x, right_x, tolerance);
    p.x = address(x);
    p.w = address(out_w);
    run(host_convolution_backward_filter, p);
    expect_near(out_w, right_w, tolerance * 4);
}

TEST_P(Convolutions, AgreeWithPlainLoops) {
    check_all_directions<float>(GetParam(), CUDNN_DATA_FLOAT, 1e-4);
}

TEST_P(Convolutions, AgreeWithPlainLoopsInDoubles) {
    check_all_directions<double>(GetParam(), CUDNN_DATA_DOUBLE, 1e-12);
}

TEST_P(Convolutions, BlendWithWhatIsThere) {
    Model model(GetParam());
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    const std::vector<float> w = numbers(p.w_desc.elements(), 2);
    const std::vector<float> before = numbers(p.y_desc.elements(), 3);
    std::vector<float> right(before.size());
    model.for_each_product(
        [&](std::size_t i, std::size_t j, std::size_t k) { right[k] += x[i] * w[j]; });
    for (std::size_t i = 0; i < right.size(); ++i) {
        right[i] = 0.5F * right[i] - 2 * before[i];
    }
    std::vector<float> y = before;
    p.x = address(x);
    p.w = address(w);
    p.y = p.z = address(y);
    p.alpha = 0.5;
    p.beta = -2;
    run(host_convolution_forward, p);
    expect_near(y, right, 1e-4);
}

TEST_P(Convolutions, GiveTheSameBitsEachTime) {
    Model model(GetParam());
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    const std::vector<float> y = numbers(p.y_desc.elements(), 3);
    std::vector<float> first(static_cast<std::size_t>(p.w_desc.elements()));
    std::vector<float> again(first.size());
    p.x = address(x);
    p.y = address(y);
    p.w = address(first);
    run(host_convolution_backward_filter, p);
    p.w = address(again);
    run(host_convolution_backward_filter, p);
    EXPECT_EQ(first, again);
}

INSTANTIATE_TEST_SUITE_P(All, Convolutions, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(ConvolutionForward, AddsAndActivatesInOneLaunch) {
    Model model(kCases[0]);
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    const std::vector<float> w = numbers(p.w_desc.elements(), 2);
    const std::vector<float> z = numbers(p.y_desc.elements(), 3);
    const std::vector<float> bias = {0.5F, -0.5F, 1, -1};
    std::vector<float> right(z.size());
    model.for_each_product(
        [&](std::size_t i, std::size_t j, std::size_t k) { right[k] += x[i] * w[j]; });
    const std::size_t pixels = right.size() / 2 / bias.size();
    for (std::size_t i = 0; i < right.size(); ++i) {
        right[i] = std::max(2 * right[i] + 3 * z[i] + bias[i / pixels % bias.size()], 0.0F);
    }
    std::vector<float> y(z.size());
    p.x = address(x);
    p.w = address(w);
    p.y = address(y);
    p.z = address(z);
    p.bias = address(bias);
    p.bias_desc = dense({1, 4, 1, 1});
    p.alpha = 2;
    p.beta = 3;
    p.activation.mode = CUDNN_ACTIVATION_RELU;
    p.has_activation = 1;
    run(host_convolution_forward, p);
    expect_near(y, right, 1e-4);
}

TEST(ConvolutionForward, ReadsHalvesAndWritesThemRounded) {
    Model model(kCases[0], CUDNN_DATA_HALF);
    ConvolutionParams& p = model.params;
    std::vector<std::uint16_t> x;
    std::vector<std::uint16_t> w;
    for (const float value : numbers(p.x_desc.elements(), 1)) x.push_back(half_of_float(value));
    for (const float value : numbers(p.w_desc.elements(), 2)) w.push_back(half_of_float(value));
    std::vector<float> right(static_cast<std::size_t>(p.y_desc.elements()));
    model.for_each_product([&](std::size_t i, std::size_t j, std::size_t k) {
        right[k] += float_of_half(x[i]) * float_of_half(w[j]);
    });
    std::vector<std::uint16_t> y(right.size());
    p.x = address(x);
    p.w = address(w);
    p.y = p.z = address(y);
    run(host_convolution_forward, p);
    for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(float_of_half(y[i]), right[i], 4e-3);
    }
}

TEST(ConvolutionForward, WritesPixelsOnlyWhereATensorHasGaps) {
    Model model(kCases[0]);
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    const std::vector<float> w = numbers(p.w_desc.elements(), 2);
    std::vector<float> packed(static_cast<std::size_t>(p.y_desc.elements()));
    p.x = address(x);
    p.w = address(w);
    p.y = p.z = address(packed);
    run(host_convolution_forward, p);
    // Channels outermost, a column of gaps in each row.
    const int width = p.y_desc.dims[3];
    const int height = p.y_desc.dims[2];
    p.y_desc.strides[2] = width + 1;
    p.y_desc.strides[0] = (width + 1) * height;
    p.y_desc.strides[1] = p.y_desc.strides[0] * p.y_desc.dims[0];
    p.z_desc = p.y_desc;
    std::vector<float> spread(static_cast<std::size_t>(p.y_desc.strides[1] * p.y_desc.dims[1]), 77);
    p.y = p.z = address(spread);
    run(host_convolution_forward, p);
    std::size_t gaps = 0;
    for (std::size_t i = 0; i < spread.size(); ++i) {
        const std::size_t column = i % static_cast<std::size_t>(width + 1);
        if (column == static_cast<std::size_t>(width)) {
            EXPECT_EQ(spread[i], 77);
            ++gaps;
        }
    }
    EXPECT_GT(gaps, 0U);
    for (int n = 0; n < p.y_desc.dims[0]; ++n)
        for (int k = 0; k < p.y_desc.dims[1]; ++k)
            for (int i = 0; i < height; ++i)
                for (int j = 0; j < width; ++j)
                    EXPECT_EQ(spread[static_cast<std::size_t>(n * p.y_desc.strides[0] +
                                                              k * p.y_desc.strides[1] +
                                                              i * (width + 1) + j)],
                              packed[static_cast<std::size_t>(
                                  ((n * p.y_desc.dims[1] + k) * height + i) * width + j)]);
}

TEST(ConvolutionForward, CostsItsArithmeticTimesTheAlgorithms) {
    Model model(kCases[0]);
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    const std::vector<float> w = numbers(p.w_desc.elements(), 2);
    std::vector<float> y(static_cast<std::size_t>(p.y_desc.elements()));
    std::vector<unsigned char> workspace(100);
    p.x = address(x);
    p.w = address(w);
    p.y = p.z = address(y);
    p.workspace = address(workspace);
    p.workspace_bytes = workspace.size();
    p.work_factor = 1.5;
    const Cost cost = run(host_convolution_forward, p);
    EXPECT_EQ(cost.flops, 1.5 * 2 * 3 * 3 * 3 * static_cast<double>(y.size()));
    EXPECT_EQ(cost.bytes, 4.0 * static_cast<double>(x.size() + w.size() + y.size()) + 200);
    EXPECT_NE(workspace, std::vector<unsigned char>(100));
}

TEST(ConvolutionForward, FaultsWhereAnOperandIsMissing) {
    Model model(kCases[0]);
    ConvolutionParams& p = model.params;
    const std::vector<float> x = numbers(p.x_desc.elements(), 1);
    std::vector<float> y(static_cast<std::size_t>(p.y_desc.elements()), 5);
    p.x = address(x);
    p.w = 16;
    p.y = p.z = address(y);
    run(host_convolution_forward, p);
    EXPECT_EQ(y, std::vector<float>(y.size(), 5));
}

TEST(ConvolutionBackwardBias, SumsOverAllButTheChannels) {
    const Tensor dy_desc = dense({3, 4, 2, 5});
    const std::vector<float> dy = numbers(dy_desc.elements(), 1);
    std::vector<float> right(4);
    for (std::size_t i = 0; i < dy.size(); ++i) right[i / 10 % 4] += dy[i];
    std::vector<float> db(4, 7);
    BiasGradientParams p{};
    p.dy = address(dy);
    p.db = address(db);
    p.alpha = 1;
    p.dy_desc = dy_desc;
    p.db_desc = dense({1, 4, 1, 1});
    run(host_convolution_backward_bias, p);
    expect_near(db, right, 1e-5);
}

TEST(Halves, SurviveTheWayToFloatAndBack) {
    for (unsigned bits = 0; bits <= 0xffffU; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        if ((bits & 0x7c00U) == 0x7c00U && (bits & 0x3ffU) != 0) {
            EXPECT_TRUE(std::isnan(float_of_half(half)));
            EXPECT_TRUE(std::isnan(float_of_half(half_of_float(float_of_half(half)))));
        } else {
            ASSERT_EQ(half_of_float(float_of_half(half)), half) << bits;
        }
    }
    EXPECT_EQ(half_of_float(65519.0F), 0x7bffU);
    EXPECT_EQ(half_of_float(65520.0F), 0x7c00U);
    EXPECT_EQ(half_of_float(1 + 0x1p-11F), 0x3c00U);  // a tie goes to even
    EXPECT_EQ(half_of_float(1 + 3 * 0x1p-11F), 0x3c02U);
}

}  // namespace
}  // namespace libswap::simgpu::cudnn
