// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <vector>

#include "cost/generate/models.hpp"

namespace libswap::cost {

namespace {

struct Block {
    std::int64_t batch;
    std::int64_t sequence;
    TransformerSize size;
    bool dropout;
};

ValueId maybe_dropout(Network& net, ValueId x, const Block& b) {
    return b.dropout ? net.dropout(x) : x;
}

/// Queries, keys and values are products of their own: GPT-2's one product of all three has the
/// same parameters, operations and bytes.
ValueId attention(Network& net, ValueId x, const Block& b) {
    const std::int64_t rows = b.batch * b.sequence;
    const std::int64_t heads = b.batch * b.size.heads;
    const std::int64_t each = b.size.width / b.size.heads;
    const ValueId q = net.linear(x, b.size.width, true);
    const ValueId k = net.linear(x, b.size.width, true);
    const ValueId v = net.linear(x, b.size.width, true);
    ValueId scores = net.softmax(net.matmul(q, k, heads, b.sequence, b.sequence, each));
    scores = maybe_dropout(net, scores, b);
    const ValueId context = net.matmul(scores, v, heads, b.sequence, each, b.sequence);
    const ValueId joined = net.reshape(context, rows, b.size.width);
    return maybe_dropout(net, net.linear(joined, b.size.width, true), b);
}

ValueId feed_forward(Network& net, ValueId x, const Block& b) {
    const ValueId wide = net.gelu(net.linear(x, 4 * b.size.width, true));
    return maybe_dropout(net, net.linear(wide, b.size.width, true), b);
}

/// Normalisation before attention and product (GPT-2, ViT).
ValueId pre_norm_block(Network& net, ValueId x, const Block& b) {
    x = net.add(x, attention(net, net.layer_norm(x), b));
    return net.add(x, feed_forward(net, net.layer_norm(x), b));
}

/// Normalisation after them (BERT).
ValueId post_norm_block(Network& net, ValueId x, const Block& b) {
    x = net.layer_norm(net.add(x, attention(net, x, b)));
    return net.layer_norm(net.add(x, feed_forward(net, x, b)));
}

ValueId tokens(Network& net, std::int64_t count) { return net.input(count, 1, 1, 1, 8); }

}  // namespace

void build_gpt2(Network& net, std::int64_t batch, std::int64_t sequence,
                const TransformerSize& size) {
    constexpr std::int64_t kWords = 50257;
    constexpr std::int64_t kPositions = 1024;
    const auto width = static_cast<double>(size.width);
    const ParamId words = net.param(static_cast<double>(kWords) * width);
    const ParamId positions = net.param(static_cast<double>(kPositions) * width);
    const Block b{batch, sequence, size, true};
    ValueId x = net.embedding(tokens(net, batch * sequence), size.width, words);
    x = net.dropout(net.add_param(x, positions));
    for (std::int64_t l = 0; l < size.layers; ++l) x = pre_norm_block(net, x, b);
    net.cross_entropy(net.linear_with(net.layer_norm(x), kWords, {words}));
}

void build_bert(Network& net, std::int64_t batch, std::int64_t sequence) {
    constexpr std::int64_t kWords = 30522;
    constexpr std::int64_t kPositions = 512;
    constexpr std::int64_t kSegments = 2;
    const TransformerSize size{12, 768, 12};
    const auto width = static_cast<double>(size.width);
    const ParamId words = net.param(static_cast<double>(kWords) * width);
    const ParamId positions = net.param(static_cast<double>(kPositions) * width);
    const ParamId segments = net.param(static_cast<double>(kSegments) * width);
    const Block b{batch, sequence, size, true};
    ValueId x = net.embedding(tokens(net, batch * sequence), size.width, words);
    x = net.add_param(net.add_param(x, positions), segments);
    x = net.dropout(net.layer_norm(x));
    for (std::int64_t l = 0; l < size.layers; ++l) x = post_norm_block(net, x, b);
    x = net.layer_norm(net.gelu(net.linear(x, size.width, true)));
    const ParamId bias = net.param(static_cast<double>(kWords));
    net.cross_entropy(net.linear_with(x, kWords, {words, bias}));
}

void build_vit(Network& net, std::int64_t batch) {
    constexpr std::int64_t kPatches = 14 * 14;
    constexpr std::int64_t kTokens = kPatches + 1;  // and one for the class
    const TransformerSize size{12, 768, 12};
    const auto width = static_cast<double>(size.width);
    const ValueId image = net.input(batch, 3, 224, 224);
    const ValueId patches =
        net.reshape(net.conv(image, size.width, 16, 16, 0, true), batch, kPatches * size.width);
    // The class token is a parameter that is joined to each sample's patches.
    const ParamId class_token = net.param(width);
    const ValueId classes = net.add_param(net.input(batch, size.width), class_token);
    const std::vector<ValueId> parts{classes, patches};
    ValueId x = net.reshape(net.concat(parts), batch * kTokens, size.width);
    x = net.add_param(x, net.param(static_cast<double>(kTokens) * width));
    const Block b{batch, kTokens, size, false};
    for (std::int64_t l = 0; l < size.layers; ++l) x = pre_norm_block(net, x, b);
    x = net.layer_norm(x);
    const ValueId first =
        net.average_pool(net.reshape(x, batch, size.width, kTokens, 1), 1, kTokens);
    net.cross_entropy(net.linear(net.reshape(first, batch, size.width), 1000, true));
}

void build_lstm(Network& net, std::int64_t batch, std::int64_t sequence) {
    constexpr std::int64_t kWords = 10000;
    constexpr std::int64_t kHidden = 1500;
    constexpr int kLayers = 2;
    const auto hidden = static_cast<double>(kHidden);
    const ParamId words = net.param(static_cast<double>(kWords) * hidden);
    std::vector<ValueId> steps;
    for (std::int64_t t = 0; t < sequence; ++t) {
        steps.push_back(net.dropout(net.embedding(tokens(net, batch), kHidden, words)));
    }
    for (int layer = 0; layer < kLayers; ++layer) {
        const std::vector<ParamId> of_input{net.param(4 * hidden * hidden), net.param(4 * hidden)};
        const std::vector<ParamId> of_hidden{net.param(4 * hidden * hidden), net.param(4 * hidden)};
        ValueId h = net.input(batch, kHidden);
        ValueId cell = net.input(batch, kHidden);
        for (ValueId& x : steps) {
            const ValueId gates_x = net.linear_with(x, 4 * kHidden, of_input);
            const ValueId gates_h = net.linear_with(h, 4 * kHidden, of_hidden);
            h = net.lstm_cell(gates_x, gates_h, cell);
            x = net.dropout(h);
        }
    }
    const ValueId all = net.reshape(net.concat(steps), batch * sequence, kHidden);
    net.cross_entropy(net.linear(all, kWords, true));
}

void build_mlp(Network& net, std::int64_t batch) {
    ValueId x = net.input(batch, 3072);
    for (int l = 0; l < 4; ++l) x = net.relu(net.linear(x, 4096, true));
    net.cross_entropy(net.linear(x, 1000, true));
}

}  // namespace libswap::cost
