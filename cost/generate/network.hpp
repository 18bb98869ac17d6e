// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A network's forward pass as a list of layers, with what the backward pass needs to know of each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost/models/kernel_work.hpp"

namespace libswap::cost {

using ValueId = std::uint32_t;
using ParamId = std::uint32_t;

/// An activation. Dimensions: batch, channels, height, width; or rows, features, 1, 1.
struct Value {
    std::int64_t n = 1, c = 1, h = 1, w = 1;
    ValueId storage = 0;           ///< the value whose memory it is in: its own, or that of a view
    std::uint64_t bytes_each = 0;  ///< of an element; 0: the network's data type
    bool needs_grad = false;

    double elements() const { return static_cast<double>(n * c) * static_cast<double>(h * w); }
};

struct Param {
    double elements = 0;
    bool trainable = true;
    bool optimised = true;  ///< false: a buffer, such as running statistics
};

/// How the gradients of a layer's inputs come about.
enum class Backward : std::uint8_t {
    None,         ///< no gradients pass
    Fused,        ///< one kernel writes all gradients
    Split,        ///< one kernel per input's gradient, one for the parameters'
    PassThrough,  ///< the output's gradient is each input's: no kernel
};

struct Layer {
    std::string name;
    KernelClass kind = KernelClass::Elementwise;
    Backward backward = Backward::Fused;
    std::vector<ValueId> inputs;
    std::vector<ParamId> params;
    std::vector<ValueId> outputs;  ///< the first is the result; others may carry gradients too
    std::vector<ValueId> saved;    ///< values that a fused backward kernel reads
    double flops = 0;              ///< forward; each backward kernel of a split layer has as many
    double workspace_bytes = 0;
    bool view = false;  ///< no kernel, the output lies in the input's memory
};

/// Adds layers one after another. Dimensions that do not fit together are a programming error.
class Network {
  public:
    /// Parameters of the first `frozen_layers` layers that have any get no gradient.
    explicit Network(std::size_t frozen_layers) : frozen_layers_(frozen_layers) {}

    ValueId input(std::int64_t n, std::int64_t c, std::int64_t h = 1, std::int64_t w = 1,
                  std::uint64_t bytes_each = 0);

    ValueId conv(ValueId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                 std::int64_t padding, bool bias);
    ValueId conv_transposed(ValueId x, std::int64_t channels, std::int64_t kernel,
                            std::int64_t stride);
    ValueId batch_norm(ValueId x);
    ValueId relu(ValueId x);  ///< in place
    ValueId max_pool(ValueId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding);
    ValueId average_pool(ValueId x, std::int64_t kernel, std::int64_t stride);
    ValueId global_average_pool(ValueId x);
    ValueId add(ValueId a, ValueId b);
    ValueId concat(std::span<const ValueId> parts);
    ValueId reshape(ValueId x, std::int64_t n, std::int64_t c, std::int64_t h = 1,
                    std::int64_t w = 1);

    ParamId param(double elements);
    /// y = x W + b over the features (c) of every row (n). `weights`: W, and b where it has one.
    ValueId linear(ValueId x, std::int64_t features, bool bias);
    ValueId linear_with(ValueId x, std::int64_t features, std::vector<ParamId> weights);
    ValueId layer_norm(ValueId x);
    ValueId gelu(ValueId x);
    ValueId dropout(ValueId x);
    ValueId softmax(ValueId x);
    ValueId embedding(ValueId tokens, std::int64_t features, ParamId table);
    /// x + a parameter that is the same for all of the batch.
    ValueId add_param(ValueId x, ParamId param);
    /// `batches` products of (m x k) by (k x n); a and b may be parts of one value.
    ValueId matmul(ValueId a, ValueId b, std::int64_t batches, std::int64_t m, std::int64_t n,
                   std::int64_t k);
    /// A cell of an LSTM: gates (4 x hidden, two summands) and the cell before it. `cell` becomes
    /// the new one; returns the new hidden state.
    ValueId lstm_cell(ValueId gates_x, ValueId gates_h, ValueId& cell);
    /// Ends the forward pass with the loss: its value, a number.
    ValueId cross_entropy(ValueId logits);

    const std::vector<Value>& values() const { return values_; }
    const std::vector<Param>& params() const { return params_; }
    const std::vector<Layer>& layers() const { return layers_; }
    const Value& value(ValueId v) const { return values_[v]; }
    /// Parameters without buffers.
    double param_count() const;
    /// Forward operations, a multiplication and an addition being two.
    double forward_flops() const;

  private:
    ValueId add_value(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                      std::uint64_t bytes_each = 0);
    /// Freezes its parameters if its turn has not come yet, and finds out whether gradients flow.
    ValueId add_layer(Layer layer);
    ValueId like(ValueId x) { return add_value(value(x).n, value(x).c, value(x).h, value(x).w); }

    std::size_t frozen_layers_;
    std::size_t layers_with_params_ = 0;
    std::vector<Value> values_;
    std::vector<Param> params_;
    std::vector<Layer> layers_;
};

}  // namespace libswap::cost
