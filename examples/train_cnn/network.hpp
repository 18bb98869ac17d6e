// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "options.hpp"

namespace train_cnn {

/// A convolution of `inputs` to `outputs` channels over images of `side` x `side` pixels
/// with filters of `filter` x `filter` taps, with bias and ReLU. Weights lie as
/// [tap][output][input], the taps row by row.
struct Convolution {
    int inputs;
    int outputs;
    int side;
    int filter;
    int taps() const { return filter * filter; }
    /// Zeros that the filters see around an image.
    int border() const { return filter / 2; }
    bool adds_input() const { return inputs == outputs; }
    int weight_count() const { return taps() * inputs * outputs; }
};

/// The network: `convolutions`, with a 2 x 2 maximum pooling before number `pooled_before`; then
/// the average over each channel's pixels and a fully connected layer to the ten classes, trained
/// on their cross-entropy.
struct Network {
    std::vector<Convolution> convolutions;
    int pooled_before;
    /// Numbers that the fully connected layer gets of an image.
    int features() const {
        const Convolution& last = convolutions.back();
        return last.outputs * last.side * last.side;
    }
};

Network make_network(const Options& options);

/// All that is learned, layer by layer. The classifier's weights lie as [class][feature].
struct Weights {
    std::vector<std::vector<float>> convolution;
    std::vector<std::vector<float>> bias;
    std::vector<float> classifier;
    std::vector<float> classifier_bias;
};

/// Random weights (He et al.), zero biases; the same on every machine.
Weights first_weights(const Network& network, std::uint64_t seed);

/// 64-bit FNV-1a over the bytes of all weights.
std::uint64_t digest(const Weights& weights);

}  // namespace train_cnn
