// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Recurrent networks of the stand-in against plain loops, sequence by sequence, and differences.

#include "simgpu/cudnn/rnn.hpp"

#include <cmath>
#include <ostream>

#include "tests/simgpu/cudnn/launched.hpp"

namespace libswap::simgpu::cudnn {
namespace {

using Doubles = std::vector<double>;

struct Case {
    const char* name;
    int cell, bias_mode, directions, layers;
    std::vector<std::int32_t> lengths;  ///< of at most kSteps
    int layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr int kSteps = 4;
constexpr int kInputs = 3;
constexpr int kHidden = 2;

const Case kCases[] = {
    {"Relu", CUDNN_RNN_RELU, CUDNN_RNN_DOUBLE_BIAS, 1, 1, {4, 4}},
    {"Tanh", CUDNN_RNN_TANH, CUDNN_RNN_SINGLE_INP_BIAS, 2, 2, {4, 4}},
    {"Lstm", CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, 1, 2, {4, 4}},
    {"LstmBothWays", CUDNN_LSTM, CUDNN_RNN_NO_BIAS, 2, 2, {4, 4, 4}},
    {"LstmPacked",
     CUDNN_LSTM,
     CUDNN_RNN_DOUBLE_BIAS,
     2,
     2,
     {4, 3, 1},
     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED},
    {"Gru", CUDNN_GRU, CUDNN_RNN_DOUBLE_BIAS, 1, 2, {4, 4}},
    {"GruPadded",
     CUDNN_GRU,
     CUDNN_RNN_SINGLE_REC_BIAS,
     2,
     2,
     {2, 4},
     CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED},
};

class Networks : public testing::TestWithParam<Case> {
  protected:
    Networks() {
        const Case& c = GetParam();
        batch_ = static_cast<int>(c.lengths.size());
        p_.shape = {c.cell,  c.bias_mode, c.directions,      c.layers,
                    kInputs, kHidden,     CUDNN_DATA_DOUBLE, 0};
        p_.x_layout = {c.layout, CUDNN_DATA_DOUBLE, kSteps, batch_, kInputs, 0};
        p_.y_layout = {c.layout, CUDNN_DATA_DOUBLE, kSteps, batch_, kHidden * c.directions, 0};
        p_.lengths = address(c.lengths);
        p_.training = 1;
        for (const std::int32_t length : c.lengths) total_ += length;
        const int rows =
            c.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ? total_ : kSteps * batch_;
        x_ = numbers<double>(rows * kInputs, 1);
        y_.resize(static_cast<std::size_t>(rows * kHidden * c.directions));
        weights_ = numbers<double>(p_.shape.weights_before(p_.shape.pseudo_layers()), 2);
        const std::int64_t states = p_.shape.pseudo_layers() * batch_ * kHidden;
        hx_ = numbers<double>(states, 3);
        cx_ = numbers<double>(states, 4);
        hy_.resize(hx_.size());
        cy_.resize(hx_.size());
        reserve_.resize(static_cast<std::size_t>(p_.shape.row_elements() *
                                                 p_.shape.pseudo_layers() * kSteps * batch_));
        p_.reserve = address(reserve_);
    }

    int place(int t, int b) const {
        const Case& c = GetParam();
        if (c.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return b * kSteps + t;
        if (c.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) return t * batch_ + b;
        int at = 0;
        for (int step = 0; step < kSteps; ++step)
            for (int other = 0; other < batch_; ++other) {
                if (step == t && other == b) return at;
                at += step < c.lengths[static_cast<std::size_t>(other)] ? 1 : 0;
            }
        return at;
    }

    void forward() {
        p_.x = address(x_);
        p_.y = address(y_);
        p_.hx = address(hx_);
        p_.cx = address(cx_);
        p_.hy = address(hy_);
        p_.cy = address(cy_);
        p_.weights = address(weights_);
        run(host_rnn_forward, p_);
    }

    /// One cell, by its formulas.
    void cell(int pseudo, const Doubles& in, Doubles& h, Doubles& c) const {
        const RnnShape& s = p_.shape;
        const double* w = weights_.data() + s.weights_before(pseudo);
        const auto input = [&](int row) {
            double sum = s.has_input_bias() ? w[s.input_bias_at(pseudo) + row] : 0;
            for (std::size_t i = 0; i < in.size(); ++i)
                sum += w[static_cast<std::size_t>(row) * in.size() + i] * in[i];
            return sum;
        };
        const Doubles before = h;
        const auto recurrent = [&](int row) {
            double sum = s.has_recurrent_bias() ? w[s.recurrent_bias_at(pseudo) + row] : 0;
            for (int i = 0; i < kHidden; ++i)
                sum += w[s.recurrent_at(pseudo) + row * kHidden + i] *
                       before[static_cast<std::size_t>(i)];
            return sum;
        };
        const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
        for (int j = 0; j < kHidden; ++j) {
            const auto all = [&](int gate) {
                return input(gate * kHidden + j) + recurrent(gate * kHidden + j);
            };
            double& out = h[static_cast<std::size_t>(j)];
            double& state = c[static_cast<std::size_t>(j)];
            if (s.cell == CUDNN_LSTM) {
                state = sigmoid(all(1)) * state + sigmoid(all(0)) * std::tanh(all(2));
                out = sigmoid(all(3)) * std::tanh(state);
            } else if (s.cell == CUDNN_GRU) {
                const double n = std::tanh(input(2 * kHidden + j) +
                                           sigmoid(all(0)) * recurrent(2 * kHidden + j));
                const double z = sigmoid(all(1));
                out = (1 - z) * n + z * out;
            } else {
                out = s.cell == CUDNN_RNN_TANH ? std::tanh(all(0)) : std::max(all(0), 0.0);
            }
        }
    }

    /// The outputs of sequence b, and its last states at their places in hy and cy.
    std::vector<Doubles> by_loops(int b, Doubles& hy, Doubles& cy) const {
        const int length = GetParam().lengths[static_cast<std::size_t>(b)];
        std::vector<Doubles> values;
        for (int t = 0; t < length; ++t) {
            const auto from = x_.begin() + place(t, b) * kInputs;
            values.emplace_back(from, from + kInputs);
        }
        for (int layer = 0; layer < p_.shape.layers; ++layer) {
            std::vector<Doubles> outputs(values.size());
            for (int d = 0; d < p_.shape.directions; ++d) {
                const int pseudo = layer * p_.shape.directions + d;
                const auto at = static_cast<std::ptrdiff_t>((pseudo * batch_ + b) * kHidden);
                Doubles h(hx_.begin() + at, hx_.begin() + at + kHidden);
                Doubles c(cx_.begin() + at, cx_.begin() + at + kHidden);
                std::vector<Doubles> of_direction(values.size());
                for (int i = 0; i < length; ++i) {
                    const auto t = static_cast<std::size_t>(d == 0 ? i : length - 1 - i);
                    cell(pseudo, values[t], h, c);
                    of_direction[t] = h;
                }
                for (std::size_t t = 0; t < values.size(); ++t)
                    outputs[t].insert(outputs[t].end(), of_direction[t].begin(),
                                      of_direction[t].end());
                std::copy(h.begin(), h.end(), hy.begin() + at);
                std::copy(c.begin(), c.end(), cy.begin() + at);
            }
            values = std::move(outputs);
        }
        return values;
    }

    /// A number that depends on all outputs.
    double verdict(const Doubles& dy, const Doubles& dhy, const Doubles& dcy) {
        forward();
        double sum = 0;
        for (std::size_t i = 0; i < y_.size(); ++i) sum += y_[i] * dy[i];
        for (std::size_t i = 0; i < hy_.size(); ++i) sum += hy_[i] * dhy[i];
        if (p_.shape.cell == CUDNN_LSTM)
            for (std::size_t i = 0; i < cy_.size(); ++i) sum += cy_[i] * dcy[i];
        return sum;
    }

    Doubles by_differences(Doubles& values, const Doubles& dy, const Doubles& dhy,
                           const Doubles& dcy) {
        constexpr double kStep = 1e-6;
        Doubles slopes;
        for (double& value : values) {
            const double at = value;
            value = at + kStep;
            const double above = verdict(dy, dhy, dcy);
            value = at - kStep;
            const double below = verdict(dy, dhy, dcy);
            value = at;
            slopes.push_back((above - below) / (2 * kStep));
        }
        return slopes;
    }

    RnnParams p_{};
    int batch_ = 0;
    int total_ = 0;
    Doubles x_, y_, weights_, hx_, cx_, hy_, cy_, reserve_;
};

TEST_P(Networks, AgreeWithPlainLoops) {
    forward();
    const int width = kHidden * p_.shape.directions;
    Doubles hy(hy_.size());
    Doubles cy(cy_.size());
    for (int b = 0; b < batch_; ++b) {
        const std::vector<Doubles> right = by_loops(b, hy, cy);
        for (std::size_t t = 0; t < right.size(); ++t)
            for (int j = 0; j < width; ++j)
                ASSERT_NEAR(y_[static_cast<std::size_t>(place(static_cast<int>(t), b) * width + j)],
                            right[t][static_cast<std::size_t>(j)], 1e-12);
    }
    expect_near(hy_, hy, 1e-12);
    if (p_.shape.cell == CUDNN_LSTM) expect_near(cy_, cy, 1e-12);
}

TEST_P(Networks, HaveTheGradientsOfTheirDifferences) {
    const Doubles dy = numbers<double>(static_cast<std::int64_t>(y_.size()), 5);
    const Doubles dhy = numbers<double>(static_cast<std::int64_t>(hy_.size()), 6);
    const Doubles dcy = numbers<double>(static_cast<std::int64_t>(cy_.size()), 7);
    const bool lstm = p_.shape.cell == CUDNN_LSTM;
    const Doubles right_x = by_differences(x_, dy, dhy, dcy);
    const Doubles right_h = by_differences(hx_, dy, dhy, dcy);
    const Doubles right_c = lstm ? by_differences(cx_, dy, dhy, dcy) : Doubles{};
    const Doubles right_w = by_differences(weights_, dy, dhy, dcy);
    forward();
    Doubles dx(x_.size());
    Doubles dhx(hx_.size());
    Doubles dcx(cx_.size());
    RnnParams back = p_;
    back.x = address(dx);
    back.dy = address(dy);
    back.hy = address(dhy);
    back.cy = address(dcy);
    back.dhx = address(dhx);
    back.dcx = address(dcx);
    run(host_rnn_backward_data, back);
    expect_near(dx, right_x, 1e-6);
    expect_near(dhx, right_h, 1e-6);
    if (lstm) expect_near(dcx, right_c, 1e-6);
    Doubles dw(weights_.size(), 1);
    RnnParams by_weights = p_;
    by_weights.weights = address(dw);
    by_weights.adds = 1;
    run(host_rnn_backward_weights, by_weights);
    for (double& value : dw) value -= 1;
    expect_near(dw, right_w, 1e-6);
}

TEST_P(Networks, NeedNoReserveToInfer) {
    forward();
    const Doubles y = y_;
    p_.reserve = 0;
    p_.training = 0;
    forward();
    EXPECT_EQ(y_, y);
}

INSTANTIATE_TEST_SUITE_P(All, Networks, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace libswap::simgpu::cudnn
