// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "network.hpp"

#include <cmath>
#include <cstddef>

#include "digits.hpp"
#include "random.hpp"

namespace train_cnn {
namespace {

std::vector<float> random_weights(std::size_t count, int fan_in, double gain,
                                  std::uint64_t& state) {
    const double deviation = std::sqrt(gain / fan_in);
    std::vector<float> weights(count);
    for (float& weight : weights) {
        weight = static_cast<float>(deviation * next_normal(state));
    }
    return weights;
}

void add(std::uint64_t& hash, const std::vector<float>& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(float); ++i) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
}

}  // namespace

Network make_network(const Options& options) {
    Network network{{}, options.layers - 2};
    for (int i = 0; i < options.layers; ++i) {
        const int side = i < network.pooled_before ? kSide : kSide / 2;
        network.convolutions.push_back(
            {i == 0 ? 1 : options.channels, options.channels, side, options.filter});
    }
    return network;
}

Weights first_weights(const Network& network, std::uint64_t seed) {
    std::uint64_t state = seed;
    Weights weights;
    for (const Convolution& layer : network.convolutions) {
        weights.convolution.push_back(
            random_weights(layer.weight_count(), layer.taps() * layer.inputs,
                           layer.inputs == 1 ? 2.0 : 2.0 / network.convolutions.size(), state));
        weights.bias.emplace_back(layer.outputs, 0.0f);
    }
    weights.classifier = random_weights(static_cast<std::size_t>(kClasses) * network.features(),
                                        network.features(), 0.02, state);
    weights.classifier_bias.assign(kClasses, 0.0f);
    return weights;
}

std::uint64_t digest(const Weights& weights) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < weights.convolution.size(); ++i) {
        add(hash, weights.convolution[i]);
        add(hash, weights.bias[i]);
    }
    add(hash, weights.classifier);
    add(hash, weights.classifier_bias);
    return hash;
}

}  // namespace train_cnn
