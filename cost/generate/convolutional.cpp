// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <array>
#include <vector>

#include "cost/generate/models.hpp"

namespace libswap::cost {

namespace {

constexpr std::int64_t kImage = 224;
constexpr std::int64_t kClasses = 1000;

ValueId conv_norm(Network& net, ValueId x, std::int64_t channels, std::int64_t kernel,
                  std::int64_t stride) {
    return net.batch_norm(net.conv(x, channels, kernel, stride, kernel / 2, false));
}

ValueId bottleneck(Network& net, ValueId x, std::int64_t width, std::int64_t stride) {
    const std::int64_t out = 4 * width;
    ValueId y = net.relu(conv_norm(net, x, width, 1, 1));
    y = net.relu(conv_norm(net, y, width, 3, stride));
    y = conv_norm(net, y, out, 1, 1);
    const bool same = net.value(x).c == out && stride == 1;
    const ValueId shortcut = same ? x : conv_norm(net, x, out, 1, stride);
    return net.relu(net.add(y, shortcut));
}

ValueId dense_layer(Network& net, ValueId features) {
    constexpr std::int64_t kGrowth = 32;
    ValueId y = net.relu(net.batch_norm(features));
    y = net.relu(net.batch_norm(net.conv(y, 4 * kGrowth, 1, 1, 0, false)));
    y = net.conv(y, kGrowth, 3, 1, 1, false);
    return y;
}

/// Every layer reads all before it, joined: the copy that the joining makes is what the network is
/// known to need memory for.
ValueId dense_block(Network& net, ValueId x, int layers) {
    std::vector<ValueId> parts{x};
    for (int l = 0; l < layers; ++l) {
        const ValueId all = parts.size() == 1 ? x : net.concat(parts);
        parts.push_back(dense_layer(net, all));
    }
    return net.concat(parts);
}

ValueId double_conv(Network& net, ValueId x, std::int64_t channels) {
    for (int i = 0; i < 2; ++i) x = net.relu(conv_norm(net, x, channels, 3, 1));
    return x;
}

void classify(Network& net, ValueId x, std::int64_t batch) {
    const ValueId pooled = net.global_average_pool(x);
    const ValueId flat = net.reshape(pooled, batch, net.value(x).c);
    net.cross_entropy(net.linear(flat, kClasses, true));
}

}  // namespace

void build_resnet(Network& net, std::int64_t batch, std::span<const int> blocks) {
    ValueId x = net.input(batch, 3, kImage, kImage);
    x = net.relu(net.batch_norm(net.conv(x, 64, 7, 2, 3, false)));
    x = net.max_pool(x, 3, 2, 1);
    std::int64_t width = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        for (int b = 0; b < blocks[stage]; ++b) {
            x = bottleneck(net, x, width, stage > 0 && b == 0 ? 2 : 1);
        }
        width *= 2;
    }
    classify(net, x, batch);
}

void build_vgg16(Network& net, std::int64_t batch) {
    constexpr std::array<std::pair<int, std::int64_t>, 5> kStages{
        {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};
    ValueId x = net.input(batch, 3, kImage, kImage);
    for (const auto& [convs, channels] : kStages) {
        for (int i = 0; i < convs; ++i) x = net.relu(net.conv(x, channels, 3, 1, 1, true));
        x = net.max_pool(x, 2, 2, 0);
    }
    x = net.reshape(x, batch, 512 * 7 * 7);
    for (int i = 0; i < 2; ++i) x = net.dropout(net.relu(net.linear(x, 4096, true)));
    net.cross_entropy(net.linear(x, kClasses, true));
}

void build_densenet121(Network& net, std::int64_t batch) {
    constexpr std::array<int, 4> kBlocks{6, 12, 24, 16};
    ValueId x = net.input(batch, 3, kImage, kImage);
    x = net.relu(net.batch_norm(net.conv(x, 64, 7, 2, 3, false)));
    x = net.max_pool(x, 3, 2, 1);
    for (std::size_t b = 0; b < kBlocks.size(); ++b) {
        x = dense_block(net, x, kBlocks[b]);
        x = net.relu(net.batch_norm(x));
        if (b + 1 == kBlocks.size()) break;
        x = net.average_pool(net.conv(x, net.value(x).c / 2, 1, 1, 0, false), 2, 2);
    }
    classify(net, x, batch);
}

void build_unet(Network& net, std::int64_t batch) {
    constexpr std::int64_t kSide = 512;
    ValueId x = net.input(batch, 3, kSide, kSide);
    std::vector<ValueId> skips;
    std::int64_t channels = 64;
    for (int level = 0; level < 4; ++level) {
        x = double_conv(net, x, channels);
        skips.push_back(x);
        x = net.max_pool(x, 2, 2, 0);
        channels *= 2;
    }
    x = double_conv(net, x, channels);
    for (int level = 4; level-- > 0;) {
        channels /= 2;
        const ValueId up = net.conv_transposed(x, channels, 2, 2);
        const std::array<ValueId, 2> both{skips[static_cast<std::size_t>(level)], up};
        x = double_conv(net, net.concat(both), channels);
    }
    x = net.conv(x, 2, 1, 1, 0, true);
    net.cross_entropy(net.reshape(x, batch * kSide * kSide, 2));
}

}  // namespace libswap::cost
