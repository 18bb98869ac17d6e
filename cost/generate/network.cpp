// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/generate/network.hpp"

#include <algorithm>
#include <utility>

namespace libswap::cost {

namespace {

double square(std::int64_t x) { return static_cast<double>(x) * static_cast<double>(x); }

}  // namespace

ValueId Network::add_value(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                           std::uint64_t bytes_each) {
    const auto id = static_cast<ValueId>(values_.size());
    values_.push_back({n, c, h, w, id, bytes_each, false});
    return id;
}

ParamId Network::param(double elements) {
    params_.push_back({elements});
    return static_cast<ParamId>(params_.size() - 1);
}

ValueId Network::add_layer(Layer layer) {
    if (!layer.params.empty() && ++layers_with_params_ <= frozen_layers_) {
        for (const ParamId p : layer.params) params_[p].trainable = false;
    }
    const bool flows = layer.backward != Backward::None &&
                       (std::any_of(layer.inputs.begin(), layer.inputs.end(),
                                    [&](ValueId v) { return values_[v].needs_grad; }) ||
                        std::any_of(layer.params.begin(), layer.params.end(), [&](ParamId p) {
                            return params_[p].trainable && params_[p].optimised;
                        }));
    const ValueId result = layer.outputs.front();
    for (const ValueId v : layer.outputs)
        values_[v].needs_grad = flows && values_[v].bytes_each == 0;
    layers_.push_back(std::move(layer));
    return result;
}

ValueId Network::input(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                       std::uint64_t bytes_each) {
    const ValueId v = add_value(n, c, h, w, bytes_each);
    return add_layer({"load_data", KernelClass::Elementwise, Backward::None, {}, {}, {v}, {}});
}

ValueId Network::conv(ValueId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                      std::int64_t padding, bool bias) {
    const Value in = value(x);
    const ConvShape s{in.n, in.c, in.h, in.w, channels, kernel, kernel, stride, padding, 1};
    std::vector<ParamId> params{param(s.filter_elements())};
    if (bias) params.push_back(param(static_cast<double>(channels)));
    const ValueId y = add_value(in.n, channels, s.out_height(), s.out_width());
    return add_layer({"conv2d",
                      KernelClass::ConvForward,
                      Backward::Split,
                      {x},
                      std::move(params),
                      {y},
                      {},
                      s.flops()});
}

ValueId Network::conv_transposed(ValueId x, std::int64_t channels, std::int64_t kernel,
                                 std::int64_t stride) {
    const Value in = value(x);
    const ValueId y =
        add_value(in.n, channels, (in.h - 1) * stride + kernel, (in.w - 1) * stride + kernel);
    std::vector<ParamId> params{param(static_cast<double>(in.c * channels) * square(kernel)),
                                param(static_cast<double>(channels))};
    const double flops = 2 * in.elements() * static_cast<double>(channels) * square(kernel);
    return add_layer({"conv_transpose2d",
                      KernelClass::ConvBackwardData,
                      Backward::Split,
                      {x},
                      std::move(params),
                      {y},
                      {},
                      flops});
}

ValueId Network::batch_norm(ValueId x) {
    const std::int64_t c = value(x).c;
    const auto each = static_cast<double>(c);
    std::vector<ParamId> params{param(each), param(each)};
    const ParamId running = param(2 * each);
    params_[running] = {2 * each, false, false};
    params.push_back(running);
    const ValueId y = like(x);
    const ValueId statistics = add_value(2, c, 1, 1, 4);
    return add_layer({"batch_norm",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      std::move(params),
                      {y, statistics},
                      {x, statistics},
                      7 * value(x).elements()});
}

ValueId Network::relu(ValueId x) {
    const ValueId y = like(x);
    values_[y].storage = values_[x].storage;
    return add_layer({"relu_",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {x},
                      {},
                      {y},
                      {y},
                      value(x).elements()});
}

ValueId Network::max_pool(ValueId x, std::int64_t kernel, std::int64_t stride,
                          std::int64_t padding) {
    const Value in = value(x);
    const std::int64_t h = (in.h + 2 * padding - kernel) / stride + 1;
    const std::int64_t w = (in.w + 2 * padding - kernel) / stride + 1;
    const ValueId y = add_value(in.n, in.c, h, w);
    const ValueId indices = add_value(in.n, in.c, h, w, 8);
    return add_layer({"max_pool2d",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      {},
                      {y, indices},
                      {x, indices},
                      value(y).elements() * square(kernel)});
}

ValueId Network::average_pool(ValueId x, std::int64_t kernel, std::int64_t stride) {
    const Value in = value(x);
    const ValueId y =
        add_value(in.n, in.c, (in.h - kernel) / stride + 1, (in.w - kernel) / stride + 1);
    return add_layer({"avg_pool2d",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      {},
                      {y},
                      {},
                      value(y).elements() * square(kernel)});
}

ValueId Network::global_average_pool(ValueId x) {
    const Value in = value(x);
    const ValueId y = add_value(in.n, in.c, 1, 1);
    return add_layer({"global_avg_pool",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      {},
                      {y},
                      {},
                      in.elements()});
}

ValueId Network::add(ValueId a, ValueId b) {
    return add_layer({"add",
                      KernelClass::Elementwise,
                      Backward::PassThrough,
                      {a, b},
                      {},
                      {like(a)},
                      {},
                      value(a).elements()});
}

ValueId Network::concat(std::span<const ValueId> parts) {
    Value sum = value(parts.front());
    for (const ValueId part : parts.subspan(1)) sum.c += value(part).c;
    const ValueId y = add_value(sum.n, sum.c, sum.h, sum.w);
    return add_layer({"concat",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {parts.begin(), parts.end()},
                      {},
                      {y},
                      {},
                      0});
}

ValueId Network::reshape(ValueId x, std::int64_t n, std::int64_t c, std::int64_t h,
                         std::int64_t w) {
    const ValueId y = add_value(n, c, h, w);
    values_[y].storage = values_[x].storage;
    Layer layer{"view", KernelClass::Elementwise, Backward::PassThrough, {x}, {}, {y}, {}};
    layer.view = true;
    return add_layer(std::move(layer));
}

ValueId Network::linear(ValueId x, std::int64_t features, bool bias) {
    const auto out = static_cast<double>(features);
    std::vector<ParamId> weights{param(static_cast<double>(value(x).c) * out)};
    if (bias) weights.push_back(param(out));
    return linear_with(x, features, std::move(weights));
}

ValueId Network::linear_with(ValueId x, std::int64_t features, std::vector<ParamId> weights) {
    const Value in = value(x);
    const ValueId y = add_value(in.n, features, 1, 1);
    return add_layer({"linear",
                      KernelClass::MatrixProduct,
                      Backward::Split,
                      {x},
                      std::move(weights),
                      {y},
                      {},
                      2 * in.elements() * static_cast<double>(features)});
}

ValueId Network::layer_norm(ValueId x) {
    const Value in = value(x);
    const auto each = static_cast<double>(in.c);
    std::vector<ParamId> params{param(each), param(each)};
    const ValueId y = like(x);
    const ValueId statistics = add_value(2, in.n, 1, 1, 4);
    return add_layer({"layer_norm",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      std::move(params),
                      {y, statistics},
                      {x, statistics},
                      8 * in.elements()});
}

ValueId Network::gelu(ValueId x) {
    return add_layer({"gelu",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {x},
                      {},
                      {like(x)},
                      {x},
                      8 * value(x).elements()});
}

ValueId Network::dropout(ValueId x) {
    const Value in = value(x);
    const ValueId y = like(x);
    const ValueId mask = add_value(in.n, in.c, in.h, in.w, 1);
    return add_layer({"dropout",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {x},
                      {},
                      {y, mask},
                      {mask},
                      2 * in.elements()});
}

ValueId Network::softmax(ValueId x) {
    const ValueId y = like(x);
    return add_layer({"softmax",
                      KernelClass::Reduction,
                      Backward::Fused,
                      {x},
                      {},
                      {y},
                      {y},
                      5 * value(x).elements()});
}

ValueId Network::embedding(ValueId tokens, std::int64_t features, ParamId table) {
    const ValueId y = add_value(value(tokens).n, features, 1, 1);
    return add_layer({"embedding",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {tokens},
                      {table},
                      {y},
                      {tokens},
                      0});
}

ValueId Network::add_param(ValueId x, ParamId param) {
    return add_layer({"add_param",
                      KernelClass::Elementwise,
                      Backward::Fused,
                      {x},
                      {param},
                      {like(x)},
                      {},
                      value(x).elements()});
}

ValueId Network::matmul(ValueId a, ValueId b, std::int64_t batches, std::int64_t m, std::int64_t n,
                        std::int64_t k) {
    const ValueId y = add_value(batches, m, n, 1);
    const double flops = 2 * static_cast<double>(batches * m) * static_cast<double>(n * k);
    return add_layer(
        {"matmul", KernelClass::MatrixProduct, Backward::Split, {a, b}, {}, {y}, {}, flops});
}

ValueId Network::lstm_cell(ValueId gates_x, ValueId gates_h, ValueId& cell) {
    const Value before = value(cell);
    const ValueId hidden = like(cell);
    const ValueId next = like(cell);
    const ValueId gates = add_value(before.n, 4 * before.c, 1, 1);
    const ValueId old = cell;
    cell = next;
    add_layer({"lstm_cell",
               KernelClass::Elementwise,
               Backward::Fused,
               {gates_x, gates_h, old},
               {},
               {hidden, next, gates},
               {old, next, gates},
               30 * before.elements()});
    values_[gates].needs_grad = false;
    return hidden;
}

ValueId Network::cross_entropy(ValueId logits) {
    const Value in = value(logits);
    const ValueId loss = add_value(1, 1, 1, 1);
    const ValueId log_probabilities = like(logits);
    add_layer({"cross_entropy",
               KernelClass::Reduction,
               Backward::Fused,
               {logits},
               {},
               {loss, log_probabilities},
               {log_probabilities},
               5 * in.elements()});
    values_[log_probabilities].needs_grad = false;
    return loss;
}

double Network::param_count() const {
    double sum = 0;
    for (const Param& p : params_) sum += p.optimised ? p.elements : 0;
    return sum;
}

double Network::forward_flops() const {
    double sum = 0;
    for (const Layer& l : layers_) sum += l.flops;
    return sum;
}

}  // namespace libswap::cost
