// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The models, from the layer shapes that their papers and reference implementations give. Each ends
// in the loss.
#pragma once

#include <span>

#include "cost/generate/network.hpp"

namespace libswap::cost {

/// He et al., CVPR 2016; stages of bottleneck blocks, ImageNet at 224 x 224 (stride in the 3 x 3).
void build_resnet(Network& net, std::int64_t batch, std::span<const int> blocks);
/// Simonyan and Zisserman, ICLR 2015; configuration D, no batch normalisation.
void build_vgg16(Network& net, std::int64_t batch);
/// Huang et al., CVPR 2017; growth 32, blocks of 6, 12, 24 and 16.
void build_densenet121(Network& net, std::int64_t batch);
/// Ronneberger et al., MICCAI 2015; padded convolutions with batch normalisation, 512 x 512, 3
/// channels in, 2 classes out.
void build_unet(Network& net, std::int64_t batch);

struct TransformerSize {
    std::int64_t layers = 12;
    std::int64_t width = 768;
    std::int64_t heads = 12;
};

/// Radford et al., 2019; vocabulary 50257, 1024 positions, the output layer shares the embedding.
void build_gpt2(Network& net, std::int64_t batch, std::int64_t sequence,
                const TransformerSize& size);
/// Devlin et al., NAACL 2019; base, masked language modelling at every position.
void build_bert(Network& net, std::int64_t batch, std::int64_t sequence);
/// Dosovitskiy et al., ICLR 2021; ViT-B/16 at 224 x 224.
void build_vit(Network& net, std::int64_t batch);

/// Zaremba, Sutskever and Vinyals, 2014; the large word model: 2 layers of 1500, vocabulary 10000.
void build_lstm(Network& net, std::int64_t batch, std::int64_t sequence);
/// 3072 inputs, four layers of 4096, 1000 classes.
void build_mlp(Network& net, std::int64_t batch);

}  // namespace libswap::cost
