// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// GRU and LSTM cells in float32 (torch 2.15's RNN.cu): what lies behind the two products.

#include <array>
#include <cmath>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One of the launch's tensors by the index of its elements; zeros where there is none.
class Tensor {
  public:
    /// False where the parameter is none.
    bool read(const NamedLaunch& launch, std::size_t parameter, std::uint64_t elements,
              bool writes) {
        if (!info_.read(launch, parameter, 4)) return false;
        there_ = info_.va() != 0;
        if (!there_ || elements == 0) return true;
        std::uint64_t end = 0;
        for (std::uint64_t i = 0; i < elements; ++i) end = std::max(end, info_.offset(i) + 1);
        data_ = writes ? launch.write<float>(info_.va(), end)
                       : const_cast<float*>(launch.read<float>(info_.va(), end));
        return true;
    }
    /// Whether it may be used: there and mapped, or not there.
    bool usable() const { return !there_ || data_ != nullptr; }
    double get(std::uint64_t i) const {
        return data_ == nullptr ? 0 : static_cast<double>(data_[info_.offset(i)]);
    }
    void set(std::uint64_t i, double x) {
        if (data_ != nullptr) data_[info_.offset(i)] = static_cast<float>(x);
    }

  private:
    TensorInfo info_;
    bool there_ = false;
    float* data_ = nullptr;
};

/// Of a tensor: how many elements it has per element of the state, or per unit of a row; whether it
/// is written.
struct Operand {
    std::uint64_t per_element;
    bool writes;
    bool row = false;
};

/// Reads the launch's tensors, behind which come the units of a row and the elements of the state,
/// and calls `cell(tensors, units, element, its row, its unit)` for each element. False if they
/// cannot be read; where one of them faults nothing is called.
template <std::size_t N, typename Cell>
bool for_each_element(const NamedLaunch& launch, const std::array<Operand, N>& operands,
                      const Cell& cell) {
    if (launch.count() != N + 2) return false;
    const std::uint64_t units = launch.get<std::uint32_t>(N);
    const std::uint64_t elements = launch.get<std::uint32_t>(N + 1);
    if (units == 0) return false;
    std::array<Tensor, N> tensors;
    bool usable = true;
    for (std::size_t i = 0; i < N; ++i) {
        const Operand& o = operands[i];
        if (!tensors[i].read(launch, i, o.per_element * (o.row ? units : elements), o.writes))
            return false;
        usable = usable && tensors[i].usable();
    }
    launch.cost(20.0 * static_cast<double>(elements), 48.0 * static_cast<double>(elements));
    for (std::uint64_t i = 0; usable && i < elements; ++i)
        cell(tensors, units, i, i / units, i % units);
    return true;
}

/// (input, hidden, two biases, state, new state out, workspace out): gates reset, update, new.
bool gru_forward(const NamedLaunch& launch) {
    constexpr std::array<Operand, 7> kOperands{{{3, false},
                                                {3, false},
                                                {3, false, true},
                                                {3, false, true},
                                                {1, false},
                                                {1, true},
                                                {5, true}}};
    return for_each_element(
        launch, kOperands,
        [](auto& t, std::uint64_t units, std::uint64_t i, std::uint64_t row, std::uint64_t unit) {
            const auto in = [&](std::uint64_t gate) {
                return t[0].get((row * 3 + gate) * units + unit) + t[2].get(gate * units + unit);
            };
            const auto hidden = [&](std::uint64_t gate) {
                return t[1].get((row * 3 + gate) * units + unit) + t[3].get(gate * units + unit);
            };
            const double reset = sigmoid(in(0) + hidden(0));
            const double update = sigmoid(in(1) + hidden(1));
            const double fresh = std::tanh(in(2) + reset * hidden(2));
            const double state = t[4].get(i);
            const std::array saved{reset, update, fresh, state, hidden(2)};
            t[5].set(i, fresh + update * (state - fresh));
            for (std::uint64_t k = 0; k < saved.size(); ++k)
                t[6].set((row * 5 + k) * units + unit, saved[k]);
        });
}

/// (gradients of input and hidden out, gradient, gradient of the state out, workspace)
bool gru_backward(const NamedLaunch& launch) {
    constexpr std::array<Operand, 5> kOperands{
        {{3, true}, {3, true}, {1, false}, {1, true}, {5, false}}};
    return for_each_element(
        launch, kOperands,
        [](auto& t, std::uint64_t units, std::uint64_t i, std::uint64_t row, std::uint64_t unit) {
            const auto saved = [&](std::uint64_t k) {
                return t[4].get((row * 5 + k) * units + unit);
            };
            const double reset = saved(0);
            const double update = saved(1);
            const double fresh = saved(2);
            const double grad = t[2].get(i);
            const double of_fresh = grad * (1 - update) * (1 - fresh * fresh);
            const double of_update = grad * (saved(3) - fresh) * (1 - update) * update;
            const double of_reset = of_fresh * saved(4) * (1 - reset) * reset;
            const std::array in{of_reset, of_update, of_fresh};
            const std::array hidden{of_reset, of_update, of_fresh * reset};
            for (std::uint64_t k = 0; k < 3; ++k) {
                t[0].set((row * 3 + k) * units + unit, in[k]);
                t[1].set((row * 3 + k) * units + unit, hidden[k]);
            }
            t[3].set(i, grad * update);
        });
}

/// (input, hidden, two biases, cell, new state, new cell and workspace out): gates input, forget,
/// cell, output.
bool lstm_forward(const NamedLaunch& launch) {
    constexpr std::array<Operand, 8> kOperands{{{4, false},
                                                {4, false},
                                                {4, false, true},
                                                {4, false, true},
                                                {1, false},
                                                {1, true},
                                                {1, true},
                                                {4, true}}};
    return for_each_element(
        launch, kOperands,
        [](auto& t, std::uint64_t units, std::uint64_t i, std::uint64_t row, std::uint64_t unit) {
            std::array<double, 4> gates{};
            for (std::uint64_t k = 0; k < 4; ++k) {
                const std::uint64_t at = (row * 4 + k) * units + unit;
                const double sum = t[0].get(at) + t[1].get(at) + t[2].get(k * units + unit) +
                                   t[3].get(k * units + unit);
                gates[k] = k == 2 ? std::tanh(sum) : sigmoid(sum);
            }
            const double cell = gates[1] * t[4].get(i) + gates[0] * gates[2];
            t[5].set(i, gates[3] * std::tanh(cell));
            t[6].set(i, cell);
            for (std::uint64_t k = 0; k < 4; ++k) t[7].set((row * 4 + k) * units + unit, gates[k]);
        });
}

/// (workspace, gradients of the gates out, cell, new cell, gradients of the new state and cell,
/// gradient of the cell out)
bool lstm_backward(const NamedLaunch& launch) {
    constexpr std::array<Operand, 7> kOperands{
        {{4, false}, {4, true}, {1, false}, {1, false}, {1, false}, {1, false}, {1, true}}};
    return for_each_element(
        launch, kOperands,
        [](auto& t, std::uint64_t units, std::uint64_t i, std::uint64_t row, std::uint64_t unit) {
            std::array<double, 4> g{};
            for (std::uint64_t k = 0; k < 4; ++k) g[k] = t[0].get((row * 4 + k) * units + unit);
            const double out = std::tanh(t[3].get(i));
            const double of_cell = t[4].get(i) * g[3] * (1 - out * out) + t[5].get(i);
            const std::array grads{
                of_cell * g[2] * (1 - g[0]) * g[0], of_cell * t[2].get(i) * (1 - g[1]) * g[1],
                of_cell * g[0] * (1 - g[2] * g[2]), t[4].get(i) * out * (1 - g[3]) * g[3]};
            for (std::uint64_t k = 0; k < 4; ++k) t[1].set((row * 4 + k) * units + unit, grads[k]);
            t[6].set(i, of_cell * g[1]);
        });
}

}  // namespace

NamedKernel find_recurrent_cells(const KernelName& name) {
    if (!name.mentions("_cell_") || !name.mentions("<float, float, int, ")) return {};
    if (name.base == "gru_cell_forward") return gru_forward;
    if (name.base == "gru_cell_backward") return gru_backward;
    if (name.base == "lstm_cell_forward") return lstm_forward;
    if (name.base == "lstm_cell_backward") return lstm_backward;
    return {};
}

}  // namespace simgpu::torch
