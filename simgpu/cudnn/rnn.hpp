// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Recurrent networks: how weights and reserve space lie, and the kernels' parameters.
//
// Weights of a pseudo layer (a layer's direction), one after the other:
//   | input matrices, gate by gate | recurrent matrices | input biases | recurrent biases |
// so that all gates' matrices are one matrix of gates x hidden rows.
//
// Reserve space, as floats, or doubles where the data are: for each pseudo layer a block of T x B
// rows, see Row.
#pragma once

#include <cstdint>

#include "simgpu/cudnn/api.hpp"
#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

struct RnnShape {
    std::int32_t cell;       ///< cudnnRNNMode_t
    std::int32_t bias_mode;  ///< cudnnRNNBiasMode_t
    std::int32_t directions;
    std::int32_t layers;
    std::int32_t inputs;
    std::int32_t hidden;
    std::int32_t type;  ///< of data and weights: cudnnDataType_t
    std::int32_t unused;

    int gates() const { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }
    bool has_input_bias() const {
        return bias_mode == CUDNN_RNN_SINGLE_INP_BIAS || bias_mode == CUDNN_RNN_DOUBLE_BIAS;
    }
    bool has_recurrent_bias() const {
        return bias_mode == CUDNN_RNN_SINGLE_REC_BIAS || bias_mode == CUDNN_RNN_DOUBLE_BIAS;
    }
    int pseudo_layers() const { return layers * directions; }
    std::int64_t inputs_of(int pseudo_layer) const {
        return pseudo_layer < directions ? inputs : std::int64_t{directions} * hidden;
    }
    std::int64_t rows() const { return std::int64_t{gates()} * hidden; }

    /// Elements of the weight space before the pseudo layer; of all of it for pseudo_layers().
    std::int64_t weights_before(int pseudo_layer) const;
    /// Within the weights of a pseudo layer.
    std::int64_t recurrent_at(int pseudo_layer) const { return rows() * inputs_of(pseudo_layer); }
    std::int64_t input_bias_at(int pseudo_layer) const {
        return recurrent_at(pseudo_layer) + rows() * hidden;
    }
    std::int64_t recurrent_bias_at(int pseudo_layer) const {
        return input_bias_at(pseudo_layer) + (has_input_bias() ? rows() : 0);
    }

    /// A row of the reserve space, for one sequence at one time: the gates behind their activations
    /// (on the way back: the gradients before them), the cell's state (LSTM) or the candidate's
    /// recurrent part (GRU; on the way back: its gradient), the output, and the factor that dropout
    /// multiplies the output with.
    std::int64_t state_at() const { return rows(); }
    std::int64_t output_at() const { return rows() + hidden; }
    std::int64_t mask_at() const { return rows() + 2 * std::int64_t{hidden}; }
    std::int64_t row_elements() const { return rows() + 3 * std::int64_t{hidden}; }
};

/// How sequences lie in memory.
struct SequenceLayout {
    std::int32_t layout;  ///< cudnnRNNDataLayout_t
    std::int32_t type;
    std::int32_t steps;
    std::int32_t batch;
    std::int32_t width;
    std::int32_t unused;
};

/// The kernels rnn_forward, rnn_backward_data and rnn_backward_weights; what one does not have is
/// 0.
struct RnnParams {
    std::uint64_t x;  ///< dx on the way back by data
    std::uint64_t y;
    std::uint64_t dy;
    std::uint64_t hx;
    std::uint64_t hy;  ///< dhy on the way back
    std::uint64_t dhx;
    std::uint64_t cx;
    std::uint64_t cy;  ///< dcy on the way back
    std::uint64_t dcx;
    std::uint64_t weights;  ///< dweights on the way back by weights
    std::uint64_t lengths;  ///< of the sequences, int32, on the device; 0: all have all steps
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    std::uint64_t reserve;
    std::uint64_t states;  ///< dropout's
    double dropout;
    double padding;
    RnnShape shape;
    SequenceLayout x_layout;
    SequenceLayout y_layout;
    std::int32_t training;
    std::int32_t adds;  ///< to the weights' gradients
};

}  // namespace libswap::simgpu::cudnn
