// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/generate/generate.hpp"

#include <array>

#include <fmt/format.h>

#include "cost/generate/models.hpp"

namespace libswap::cost {

namespace {

constexpr std::array<std::string_view, 13> kModels{
    "resnet50",   "resnet152", "vgg16", "densenet121", "unet", "gpt2", "gpt2-medium",
    "gpt2-large", "gpt2-xl",   "bert",  "vit",         "lstm", "mlp"};
constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostSequence = 1 << 16;

struct GptSize {
    std::string_view name;
    TransformerSize size;
};
constexpr std::array<GptSize, 4> kGpt2{{{"gpt2", {12, 768, 12}},
                                        {"gpt2-medium", {24, 1024, 16}},
                                        {"gpt2-large", {36, 1280, 20}},
                                        {"gpt2-xl", {48, 1600, 25}}}};

bool is_convolutional(std::string_view model) {
    return model == "resnet50" || model == "resnet152" || model == "vgg16" ||
           model == "densenet121" || model == "unet";
}

bool build(Network& net, std::string_view model, std::int64_t batch, std::int64_t sequence) {
    constexpr std::array<int, 4> kResnet50{3, 4, 6, 3};
    constexpr std::array<int, 4> kResnet152{3, 8, 36, 3};
    const auto tokens = [&](std::int64_t own) { return sequence > 0 ? sequence : own; };
    for (const GptSize& gpt : kGpt2) {
        if (gpt.name == model) {
            build_gpt2(net, batch, tokens(1024), gpt.size);
            return true;
        }
    }
    if (model == "resnet50") {
        build_resnet(net, batch, kResnet50);
    } else if (model == "resnet152") {
        build_resnet(net, batch, kResnet152);
    } else if (model == "vgg16") {
        build_vgg16(net, batch);
    } else if (model == "densenet121") {
        build_densenet121(net, batch);
    } else if (model == "unet") {
        build_unet(net, batch);
    } else if (model == "bert") {
        build_bert(net, batch, tokens(512));
    } else if (model == "vit") {
        build_vit(net, batch);
    } else if (model == "lstm") {
        build_lstm(net, batch, tokens(35));
    } else if (model == "mlp") {
        build_mlp(net, batch);
    } else {
        return false;
    }
    return true;
}

}  // namespace

std::span<const std::string_view> generated_models() { return kModels; }

tl::expected<Network, std::string> generate_network(std::string_view model,
                                                    const GenerateOptions& options) {
    if (options.batch < 1 || options.batch > kMostBatch) {
        return tl::unexpected(fmt::format("the batch must be 1 to {}", kMostBatch));
    }
    if (options.sequence < 0 || options.sequence > kMostSequence) {
        return tl::unexpected(fmt::format("the sequence must be 1 to {}", kMostSequence));
    }
    const auto steps = static_cast<std::int64_t>(options.accumulation);
    if (steps < 1 || steps > options.batch || options.batch % steps != 0) {
        return tl::unexpected(fmt::format("a batch of {} cannot be made of {} equal micro-batches",
                                          options.batch, options.accumulation));
    }
    Network net(options.frozen_layers);
    if (!build(net, model, options.batch / steps, options.sequence)) {
        return tl::unexpected(
            fmt::format("unknown model {} (known: {})", model, fmt::join(kModels, ", ")));
    }
    return net;
}

tl::expected<Workload, std::string> generate_workload(std::string_view model,
                                                      const GenerateOptions& options) {
    const auto net = generate_network(model, options);
    if (!net) return tl::unexpected(net.error());
    TrainingOptions training;
    training.type = options.type;
    training.optimizer = is_convolutional(model) ? Optimizer::Sgd : Optimizer::Adam;
    training.accumulation = options.accumulation;
    training.ceilings = options.ceilings;
    Workload workload = training_iteration(*net, training);
    if (!net->value(net->layers().back().outputs.front()).needs_grad) {
        return tl::unexpected(fmt::format("all of {} is frozen: nothing to train", model));
    }
    return workload;
}

}  // namespace libswap::cost
