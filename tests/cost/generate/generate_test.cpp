// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/generate/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cost/machine.hpp"
#include "cost/replay.hpp"

namespace libswap::cost {
namespace {

Network network(std::string_view model, std::int64_t batch = 1, std::int64_t sequence = 0) {
    auto net = generate_network(model, {.batch = batch, .sequence = sequence});
    EXPECT_TRUE(net) << net.error();
    return std::move(*net);
}

Workload workload(std::string_view model, const GenerateOptions& options) {
    auto w = generate_workload(model, options);
    EXPECT_TRUE(w) << w.error();
    return std::move(*w);
}

std::uint64_t persistent_bytes(const Workload& w) {
    std::uint64_t sum = 0;
    for (const Tensor& t : w.tensors()) sum += t.persistent ? t.bytes : 0;
    return sum;
}

struct Published {
    const char* model;
    double params;
};

/// Parameters: torchvision's and Hugging Face's model pages; Zaremba et al. for the LSTM (66
/// million).
TEST(Generate, HasThePublishedNumbersOfParameters) {
    const Published exact[] = {{"resnet50", 25'557'032},     {"resnet152", 60'192'808},
                               {"vgg16", 138'357'544},       {"densenet121", 7'978'856},
                               {"vit", 86'567'656},          {"gpt2", 124'439'808},
                               {"gpt2-medium", 354'823'168}, {"gpt2-large", 774'030'080},
                               {"gpt2-xl", 1'557'611'200},   {"bert", 109'514'298}};
    for (const Published& p : exact) {
        EXPECT_DOUBLE_EQ(network(p.model).param_count(), p.params) << p.model;
    }
    EXPECT_NEAR(network("unet").param_count(), 31.04e6, 0.01e6);
    EXPECT_NEAR(network("lstm").param_count(), 66e6, 0.5e6);
}

/// Multiplications and additions of one image, half of our count: torchvision's model pages, which
/// count convolutions and products only.
TEST(Generate, ComputesWhatIsPublished) {
    const Published macs[] = {{"resnet50", 4.09e9},
                              {"resnet152", 11.51e9},
                              {"vgg16", 15.47e9},
                              {"densenet121", 2.83e9},
                              {"vit", 17.56e9}};
    for (const auto& [model, published] : macs) {
        EXPECT_NEAR(network(model).forward_flops() / 2 / published, 1, 0.03) << model;
    }
}

/// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022: each
/// layer holds s b h (34 + 5 a s / h) bytes of activations in 16 bits.
TEST(Generate, TransformersHoldThePublishedActivations) {
    constexpr double kSequence = 1024;
    constexpr double kBatch = 4;
    const auto peak = [&](const char* model) {
        const Workload w = workload(model, {.batch = 4, .sequence = 1024, .type = DataType::Fp16});
        return static_cast<double>(w.peak_bytes() - persistent_bytes(w));
    };
    const auto of_layers = [&](double layers, double h, double a) {
        return layers * kSequence * kBatch * h * (34 + 5 * a * kSequence / h);
    };
    EXPECT_GT(peak("gpt2-medium"), of_layers(24, 1024, 16));
    // Beside the layers: embedding, last normalisation, logits and their gradient.
    const double logits = kSequence * kBatch * 50257 * 2;
    EXPECT_LT(peak("gpt2-medium"), 1.08 * of_layers(24, 1024, 16) + 3 * logits);
    EXPECT_GT(peak("gpt2-large"), of_layers(36, 1280, 20));
    EXPECT_LT(peak("gpt2-large"), 1.08 * of_layers(36, 1280, 20) + 3 * logits);
}

/// Rajbhandari et al., "ZeRO", SC 2020: parameters and Adam's states of 1.5 billion parameters take
/// 16 bytes each with their gradients, 24 GB.
TEST(Generate, AdamHoldsSixteenBytesPerParameter) {
    for (const DataType type : {DataType::Fp32, DataType::Fp16}) {
        const Workload w = workload("gpt2-xl", {.batch = 1, .sequence = 64, .type = type});
        const double gradients = 1'557'611'200.0 * static_cast<double>(element_bytes(type));
        const double states = static_cast<double>(persistent_bytes(w)) + gradients;
        EXPECT_NEAR(states / 1'557'611'200.0, 16, 0.01);
        EXPECT_GE(w.peak_bytes(), 24e9);
    }
}

/// Rhu et al., "vDNN", MICRO 2016: VGG-16 with a batch of 256 needs 28 GB where every layer's
/// output, gradients included, has memory of its own. Eager execution, ReLU in place, needs less
/// than that, but more than the outputs of convolutions and pooling alone (58 MB per image).
TEST(Generate, VggNeedsWhatVdnnReports) {
    const Workload w = workload("vgg16", {.batch = 256});
    EXPECT_LT(w.peak_bytes(), 28e9);
    EXPECT_GT(w.peak_bytes(), 256 * 58e6);
}

TEST(Generate, EveryWorkloadIsAStoryThatAddsUp) {
    const Machine& machine = *find_machine("pcie4-a100");
    for (const std::string_view model : generated_models()) {
        const Workload w = workload(model, {.batch = 2, .sequence = model == "lstm" ? 5 : 0});
        const auto replayed = replay(w, machine, w.peak_bytes(), {});
        ASSERT_TRUE(replayed) << model << ": " << replayed.error().message;
        EXPECT_NEAR(replayed->iteration_us / w.compute_us(), 1, 1e-9) << model;
        EXPECT_EQ(replayed->peak_used_bytes, w.peak_bytes()) << model;
        // All that does not persist is freed.
        std::vector<bool> freed(w.tensors().size());
        for (std::size_t i = 0; i < w.op_count(); ++i) {
            for (const TensorIndex t : w.frees(i)) freed[t] = true;
        }
        for (TensorIndex t = 0; t < freed.size(); ++t) {
            EXPECT_NE(freed[t], w.tensors()[t].persistent) << model;
        }
    }
}

TEST(Generate, PeakGrowsWithTheBatchAndShrinksWithAccumulation) {
    for (const char* model : {"resnet50", "bert"}) {  // activations are most of their memory
        const GenerateOptions one{.batch = 8};
        GenerateOptions two{.batch = 16};
        GenerateOptions steps{.batch = 16, .accumulation = 2};
        EXPECT_GT(workload(model, two).peak_bytes(), workload(model, one).peak_bytes()) << model;
        const Workload accumulated = workload(model, steps);
        EXPECT_LT(accumulated.peak_bytes(), workload(model, two).peak_bytes()) << model;
        EXPECT_GT(accumulated.compute_us(), 1.5 * workload(model, one).compute_us()) << model;
        EXPECT_EQ(persistent_bytes(accumulated), persistent_bytes(workload(model, one))) << model;
    }
}

TEST(Generate, FrozenLayersAreNotTrainedAndKeepNoActivations) {
    const Workload all = workload("resnet50", {.batch = 8});
    const Workload some = workload("resnet50", {.batch = 8, .frozen_layers = 53});
    EXPECT_LT(some.peak_bytes(), all.peak_bytes());
    EXPECT_LT(persistent_bytes(some), persistent_bytes(all));
    EXPECT_LT(some.compute_us(), all.compute_us());
    EXPECT_LT(some.op_count(), all.op_count());
    const auto none = generate_workload("mlp", {.batch = 8, .frozen_layers = 99});
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().find("frozen"), std::string::npos);
}

TEST(Generate, SaysWhatCannotBe) {
    EXPECT_FALSE(generate_workload("resnet51", {.batch = 8}));
    EXPECT_FALSE(generate_workload("resnet50", {.batch = 0}));
    EXPECT_FALSE(generate_workload("resnet50", {.batch = 8, .accumulation = 3}));
    EXPECT_FALSE(generate_workload("gpt2", {.batch = 8, .sequence = -1}));
}

}  // namespace
}  // namespace libswap::cost
